"""Drawn answers: what the oracle says with each draw of what is not known of a machine and a model.

For what is no time and has no spread of its own: shares of a time, which PE count is the fastest,
which bandwidth a goal takes. One dimension more, the last, is that of the draws.
"""

from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
from jax import Array

from kernels.arrays import Cells
from kernels.case import Case
from kernels.compiled import compiled, fetch
from kernels.oracle import Answer, evaluate
from kernels.uncertainty import move_case


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Errors:
    """The model's own errors, spreads of logarithms [cells, 1].

    Of computing, of the exchange of gradients, and of all else that is communicated.
    """

    computing: Cells
    reducing: Cells
    exchanging: Cells


def answer_draws(case: Case) -> tuple[Answer, Errors]:
    """The answer [cells, draw] of a case without choices that has an uncertainty, and its errors.

    The errors are no part of the answer, nor is there any spread in it.
    """
    assert not case.choices  # what was chosen stays as it is
    return fetch(_answer_draws(case))


@compiled()
def _answer_draws(case: Case) -> tuple[Answer, Errors]:
    return evaluate(_add_draws(case)), _find_errors(_add_dimension(case))


def _add_dimension(case: Case) -> Case:
    """The case with one dimension more of cells, the last, of size 1."""
    rank = jnp.ndim(case.run.p)

    def append(leaf: Cells) -> Array:
        # Constants, such as a network's spans, have fewer dimensions than the cells.
        return jnp.asarray(leaf)[..., None] if jnp.ndim(leaf) >= rank else jnp.asarray(leaf)

    wider: Case = jax.tree.map(append, case)
    return wider


def _add_draws(case: Case) -> Case:
    """The case with each draw along a last dimension, and with no uncertainty left."""
    uncertainty = case.uncertainty
    assert uncertainty is not None
    drawn = (uncertainty.factors, uncertainty.serial)
    factors, serial = jax.tree.map(lambda leaf: jnp.moveaxis(jnp.asarray(leaf), 0, -1), drawn)
    return move_case(_add_dimension(replace(case, uncertainty=None)), factors, serial)


def _find_errors(case: Case) -> Errors:
    run, uncertainty = case.run, case.uncertainty
    assert uncertainty is not None
    # As `kernels.uncertainty` adds them up: a spatial group's gradients go through host memory.
    rings = jnp.greater(run.p1, 1) & jnp.equal(case.work.replicated, 0)
    return Errors(
        computing=uncertainty.widening
        * jnp.where(jnp.equal(run.p2, 1), uncertainty.whole, uncertainty.group),
        reducing=uncertainty.widening * jnp.where(rings, uncertainty.reduce, uncertainty.exchange),
        exchanging=uncertainty.widening * uncertainty.exchange,
    )
