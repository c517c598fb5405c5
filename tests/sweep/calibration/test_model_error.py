"""Model errors: found again in made-up residuals, and wide enough to cover them."""

import numpy as np
import pytest

from grids.entries.calibration import ModelError
from kernels.percentiles import PERCENTILES
from sweep.calibration.model_error import DEFAULT, LEVEL, SCALES, Residuals, find_model_error

RUNS = 400
TRUE = ModelError(serial=0.02, group=0.1, reduce=0.1, exchange=0.3, unseen=1.0, distance=0.5)


def made_up(scale: float = 1.0) -> Residuals:
    """Runs whose times are off by TRUE: a half of whole models, all of them known or unseen."""
    random = np.random.default_rng(1)
    whole = np.arange(RUNS) % 2 == 0
    errors = np.zeros((len(SCALES), 3, RUNS))
    errors[0, 1] = errors[2, 2] = whole
    errors[1, 1] = errors[3, 2] = ~whole
    errors[:, 0] = (errors[:, 1] + errors[:, 2]) / 4  # of a total that is half of each
    exact = Residuals(
        off=np.zeros((3, RUNS)),
        sure=np.full((3, RUNS), 1e-4),
        errors=errors,
        unseen=np.arange(RUNS) % 4 < 2,
        away=np.arange(RUNS) % 3,
        schemes=np.repeat("configuration", RUNS),
        runs=RUNS,
    )
    noise = random.standard_t(4, size=(3, RUNS))
    return Residuals(**vars(exact) | {"off": scale * noise * exact.spread(TRUE)})


def test_errors_are_found_again() -> None:
    found = find_model_error(made_up())
    for name, value in TRUE:
        assert getattr(found, name) == pytest.approx(value, rel=0.35), name


def test_a_spread_is_of_independent_causes() -> None:
    given = made_up()
    widening = 1 + TRUE.unseen * given.unseen + TRUE.distance * given.away
    expected = np.sqrt(1e-4 + (widening * np.where(np.arange(RUNS) % 2, 0.1, 0.02)) ** 2)
    assert given.spread(TRUE)[1] == pytest.approx(expected)
    assert PERCENTILES[90] == pytest.approx(1.5332)


@pytest.mark.parametrize("scale", [1.0, 2.0])
def test_intervals_cover_what_they_should(scale) -> None:
    given = made_up(scale)
    within = given.within(find_model_error(given))
    assert (np.nanmean(within[[0, 2]], axis=1) >= LEVEL).all()
    assert np.nanmean(within) < 0.95


def test_outliers_of_communication_widen_it_alone() -> None:
    given = made_up()
    off = given.off.copy()
    off[2, ::3] = 5.0
    found, usual = (
        find_model_error(Residuals(**vars(given) | {"off": off})),
        find_model_error(given),
    )
    assert found.exchange > 2 * usual.exchange
    assert found.group < 2 * usual.group


def test_without_runs_the_errors_are_the_assumed_ones() -> None:
    given = made_up()
    nothing = Residuals(**vars(given) | {"off": np.full((3, RUNS), np.nan)})
    assert vars(find_model_error(nothing)) == pytest.approx(vars(DEFAULT), rel=1e-3)
