"""Draws: answers for each draw of what is not known of a machine and a model.

Thirty-two draws, the same for every cell. The model's own error is drawn, too: one number each for
compute, gradients and all other exchanges, so that a slowdown of one PE and many alike does not
count. Where two strategies are compared, each has errors of its own.
"""

from collections.abc import Sequence

import numpy as np

from grids.convergence.entry import Convergence
from grids.inputs.draws import draw_normals
from grids.models.layers import Floats
from kernels.compiled import compiled, fetch
from kernels.configuration.case import Case
from kernels.configuration.convergence import count_epochs
from kernels.names.terms import list_terms
from kernels.namespace import xp
from kernels.oracle.answer import Answer, evaluate, settle_choices
from kernels.oracle.uncertainty import Errors, add_dimension, add_draws, find_errors

PARTS = (*list_terms("compute"), *list_terms("communication"))
# Draws of the model's own errors: compute, gradients and all other exchanges.
OWN = ("compute", "gradients", "exchange")
RIVALS = ("rival_compute", "rival_gradients", "rival_exchange")
EPOCHS = ("fewest_epochs", "critical_batch")


def draw_terms(case: Case) -> dict[str, Floats]:
    """Seconds per epoch by term [cells, draw], for a case with an uncertainty; NaN as in answers.

    Chosen groups and segments stay as they are.
    """
    return _add_errors(*answer_draws(settle_choices(case)), OWN)


def draw_times(case: Case) -> Floats:
    """Seconds per epoch [cells, draw]."""
    return _add_terms(draw_terms(case))


def draw_both_times(case: Case) -> tuple[Floats, Floats]:
    """Seconds per epoch [cells, draw] of a strategy, and of the same as another's rival."""
    drawn = answer_draws(settle_choices(case))
    own, rival = (_add_terms(_add_errors(*drawn, errors)) for errors in (OWN, RIVALS))
    return own, rival


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


def _add_errors(answer: Answer, own: Errors, errors: Sequence[str]) -> dict[str, Floats]:
    """The terms of each draw with the model's own errors, drawn by the names `errors`."""
    normals = draw_normals(errors).T
    spreads = (own.computing, own.reducing, own.exchanging)
    computing, reducing, exchanging = (
        np.exp(own.widening * each * column) for each, column in zip(spreads, normals, strict=True)
    )
    factors = dict.fromkeys(PARTS, exchanging) | dict.fromkeys(list_terms("compute"), computing)
    factors["gradient_exchange"] = np.where(own.rings, reducing, exchanging)
    terms = {name: getattr(answer.terms, name) * factors[name] for name in PARTS}
    # Flags vary with every axis, also with the batch alone.
    whole = np.broadcast_shapes(np.shape(answer.limit), *map(np.shape, terms.values()))
    return {name: np.broadcast_to(times, whole) for name, times in terms.items()}


def _add_terms(terms: dict[str, Floats]) -> Floats:
    total: Floats = np.sum([*terms.values()], axis=0)
    return total


def draw_epochs(convergence: Convergence, batches: Floats) -> Floats:
    """Ratio of the epochs to the target to the expected ones, by global batch [cells, draw]."""
    laws = convergence.draw_laws(draw_normals(EPOCHS))
    drawn: Floats = count_epochs(laws, batches[..., None])
    expected: Floats = count_epochs(convergence.law, batches[..., None])
    return drawn / expected
