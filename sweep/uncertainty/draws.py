"""Draws: answers for 32 draws of the uncertain parameters of a machine and a network.

The draws are the same for every cell. The oracle's own error is drawn as well, with one number each
for compute, gradients and other exchanges, so that errors common to one PE and many cancel. When
two strategies are compared, their errors are independent.
"""

from collections.abc import Sequence

import numpy as np

from paradl.grids.grid import Grid, Index
from paradl.grids.inputs.draws import draw_normals
from paradl.kernels.arrays import xp
from paradl.kernels.compiled import compiled, fetch
from paradl.kernels.configuration.answers import Answer
from paradl.kernels.configuration.case import Case
from paradl.kernels.configuration.convergence import count_epochs
from paradl.kernels.names.arrays import Floats
from paradl.kernels.names.terms import list_terms
from paradl.kernels.oracle.answer import evaluate, settle_choices
from paradl.kernels.oracle.uncertainty import Errors, add_dimension, add_draws, find_errors
from paradl.sweep.configurations.row_cases import answer_expected

PARTS = (*list_terms("compute"), *list_terms("communication"))
# Names of the draws of the oracle's own errors, and of those of a rival in a comparison.
ERRORS = ("compute", "gradients", "exchange")
RIVAL_ERRORS = ("rival_compute", "rival_gradients", "rival_exchange")
EPOCHS = ("fewest_epochs", "critical_batch")


def draw_terms(case: Case) -> dict[str, Floats]:
    """Seconds per epoch by term [cells, draw]; NaN as in answers. The case needs an uncertainty.

    Groups and segments stay as chosen for the expected parameters.
    """
    return _draw_terms(case, ERRORS)


def draw_times(case: Case) -> Floats:
    """Seconds per epoch [cells, draw]."""
    return _add_terms(draw_terms(case))


def draw_both_times(case: Case) -> tuple[Floats, Floats]:
    """Seconds per epoch [cells, draw] of a strategy by itself, and as the rival of another."""
    times, rival = (_add_terms(_draw_terms(case, errors)) for errors in (ERRORS, RIVAL_ERRORS))
    return times, rival


def _draw_terms(case: Case, errors: Sequence[str]) -> dict[str, Floats]:
    """Seconds per epoch by term [cells, draw], with the oracle's errors named `errors`."""
    return _add_errors(*answer_draws(settle_choices(case)), errors)


def answer_draws(case: Case) -> tuple[Answer, Errors]:
    """Answer [cells, draw] of a case with an uncertainty, and the oracle's own errors [cells, 1],
    which the answer does not include.
    """
    assert not case.choices  # choices are made once, for the expected parameters
    return fetch(_answer_draws(case))


@compiled(numpy=True)
def _answer_draws(case: Case) -> tuple[Answer, Errors]:
    errors = add_dimension(find_errors(case), xp.ndim(case.run.p))
    return evaluate(add_draws(case)), errors


def _add_errors(answer: Answer, errors: Errors, names: Sequence[str]) -> dict[str, Floats]:
    """Terms of each draw multiplied by the oracle's own errors, whose draws have these names."""
    normals = draw_normals(names).T
    if errors.joint is not None:
        factor = np.exp(errors.joint * normals[0])
        return {name: seconds * factor for name, seconds in vars(answer.terms).items()}
    spreads = (errors.computing, errors.reducing, errors.exchanging)
    computing, reducing, exchanging = (
        np.exp(errors.widening * spread * column)
        for spread, column in zip(spreads, normals, strict=True)
    )
    factors = dict.fromkeys(PARTS, exchanging) | dict.fromkeys(list_terms("compute"), computing)
    factors["gradient_exchange"] = np.where(errors.rings, reducing, exchanging)
    terms = {name: getattr(answer.terms, name) * factors[name] for name in PARTS}
    # Flags vary along every axis, while a term may not depend on the batch.
    whole = np.broadcast_shapes(np.shape(answer.limit), *map(np.shape, terms.values()))
    return {name: np.broadcast_to(times, whole) for name, times in terms.items()}


def _add_terms(terms: dict[str, Floats]) -> Floats:
    total: Floats = np.sum([*terms.values()], axis=0)
    return total


def weigh_draws(grid: Grid, index: Index, case: Case) -> Floats:
    """Factor on drawn times per epoch [cells, draw]: the drawn epochs to a target, or 1."""
    if case.training is None:
        return np.ones((1, 1))
    answer, labels = answer_expected(case), grid.labels
    assert answer.epochs is not None  # the case has a law
    law = grid.convergences[labels["model"][index[0]], labels["dataset"][index[1]]]
    batches, epochs = np.ravel(answer.global_batch)[:, None], np.ravel(answer.epochs)[:, None]
    ratios = count_epochs(law.draw_laws(draw_normals(EPOCHS)), batches) / count_epochs(
        law.law, batches
    )
    factor: Floats = epochs * ratios
    return factor
