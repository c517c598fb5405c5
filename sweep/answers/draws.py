"""Draws: what an answer becomes with each draw of what is not known of a machine and a model.

Thirty-two of them, the same for every cell. The model's own error is drawn, too: one number for
computing, gradients and all other exchanges each, so that what slows one PE and many alike does not
count. Of two strategies that are compared the second's errors are others than the first's.
"""

from collections.abc import Sequence

import numpy as np

from grids.convergence.entry import Convergence
from grids.inputs.draws import draw_normals
from grids.models.layers import Floats
from kernels.case import Case
from kernels.convergence import count_epochs
from kernels.drawn import answer_draws
from kernels.oracle import Answer, settle_choices
from kernels.terms import list_terms
from kernels.uncertainty import Errors

PARTS = (*list_terms("compute"), *list_terms("communication"))
# Draws of the model's own errors: of computing, gradients and all other exchanges.
OWN = ("compute", "gradients", "exchange")
RIVALS = ("rival_compute", "rival_gradients", "rival_exchange")
EPOCHS = ("fewest_epochs", "critical_batch")


def draw_terms(case: Case) -> dict[str, Floats]:
    """Seconds an epoch by term [cells, draw] of a case that has an uncertainty; NaN as always.

    Groups and segments that were chosen stay as they are.
    """
    return _add_errors(*answer_draws(settle_choices(case)), OWN)


def draw_times(case: Case) -> Floats:
    """Seconds an epoch [cells, draw]."""
    return _add_terms(draw_terms(case))


def draw_both_times(case: Case) -> tuple[Floats, Floats]:
    """Seconds an epoch [cells, draw] of a strategy, and of the same as a rival of another."""
    drawn = answer_draws(settle_choices(case))
    own, rival = (_add_terms(_add_errors(*drawn, errors)) for errors in (OWN, RIVALS))
    return own, rival


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
    # Flags vary with every axis, of the batch alone, too.
    whole = np.broadcast_shapes(np.shape(answer.limit), *map(np.shape, terms.values()))
    return {name: np.broadcast_to(each, whole) for name, each in terms.items()}


def _add_terms(terms: dict[str, Floats]) -> Floats:
    total: Floats = np.sum([*terms.values()], axis=0)
    return total


def draw_epochs(convergence: Convergence, batches: Floats) -> Floats:
    """Epochs to the target by global batch, over those that are expected [cells, draw]."""
    laws = convergence.draw_laws(draw_normals(EPOCHS))
    drawn: Floats = count_epochs(laws, batches[..., None])
    expected: Floats = count_epochs(convergence.law, batches[..., None])
    return drawn / expected
