"""Drawn answers: what the oracle says with each draw of what is not known of a machine and a model.

For what is no time and has no spread of its own: shares of a time, which PE count is the fastest,
which bandwidth a goal takes. One dimension more, the last, is that of the draws.
"""

from kernels.case import Case
from kernels.compiled import compiled, fetch
from kernels.namespace import xp
from kernels.oracle import Answer, evaluate
from kernels.uncertainty import Errors, add_dimension, add_draws, find_errors


def answer_draws(case: Case) -> tuple[Answer, Errors]:
    """The answer [cells, draw] of a case without choices, and the model's own errors [cells, 1].

    The case has an uncertainty. These errors are no part of the answer, nor is there any spread.
    """
    assert not case.choices  # what was chosen stays as it is
    return fetch(_answer_draws(case))


@compiled(numpy=True)
def _answer_draws(case: Case) -> tuple[Answer, Errors]:
    errors = add_dimension(find_errors(case), xp.ndim(case.run.p))
    return evaluate(add_draws(case)), errors
