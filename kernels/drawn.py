"""Drawn answers: what the oracle says with each draw of what is not known of a machine and a model.

For what is no time and has no spread of its own: shares of a time, which PE count is the fastest,
which bandwidth a goal takes. One dimension more, the last, is that of the draws.
"""

from dataclasses import replace

import jax

from kernels.arrays import AnyArray
from kernels.case import Case
from kernels.compiled import compiled, fetch
from kernels.namespace import xp
from kernels.oracle import Answer, evaluate
from kernels.uncertainty import Errors, find_errors, move_case


def answer_draws(case: Case) -> tuple[Answer, Errors]:
    """The answer [cells, draw] of a case without choices, and the model's own errors [cells, 1].

    The case has an uncertainty. These errors are no part of the answer, nor is there any spread.
    """
    assert not case.choices  # what was chosen stays as it is
    return fetch(_answer_draws(case))


@compiled(numpy=True)
def _answer_draws(case: Case) -> tuple[Answer, Errors]:
    return evaluate(_add_draws(case)), find_errors(_add_dimension(case))


def _add_dimension(case: Case) -> Case:
    """The case with one dimension more of cells, the last, of size 1."""
    rank = xp.ndim(case.run.p)

    def append(leaf: AnyArray | float) -> AnyArray:
        # Constants, such as a network's spans, have fewer dimensions than the cells.
        return xp.asarray(leaf)[..., None] if xp.ndim(leaf) >= rank else xp.asarray(leaf)

    wider: Case = jax.tree.map(append, case)
    return wider


def _add_draws(case: Case) -> Case:
    """The case with each draw along a last dimension, and with no uncertainty left."""
    uncertainty = case.uncertainty
    assert uncertainty is not None
    drawn = (uncertainty.factors, uncertainty.serial)
    factors, serial = jax.tree.map(lambda leaf: xp.moveaxis(xp.asarray(leaf), 0, -1), drawn)
    return move_case(_add_dimension(replace(case, uncertainty=None)), factors, serial)
