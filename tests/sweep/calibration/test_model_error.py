"""Model errors: found again in made-up residuals, and wide enough to cover them."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from paradl.grids.entries.calibration import ASSUMED, ModelError
from paradl.kernels.names.stored import PERCENTILES
from paradl.sweep.calibration.residuals import (
    LEVEL,
    NEAR,
    SCALES,
    Residuals,
    find_model_error,
    find_unseen_spread,
)

RUNS = 400
TRUE = ModelError(serial=0.02, group=0.1, reduce=0.1, exchange=0.3, unseen=1.0, distance=0.5)


def make_residuals(scale: float = 1.0, scheme: str = "configuration") -> Residuals:
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
        unseen=(np.arange(RUNS) % 4 < 2).astype(float),
        away=(np.arange(RUNS) % 3).astype(float),
        computing=np.zeros((3, RUNS)),
        schemes=np.repeat(scheme, RUNS),
        rows=np.arange(RUNS),
    )
    noise = random.standard_t(4, size=(3, RUNS))
    return replace(exact, off=scale * noise * exact.spread(TRUE))


@pytest.fixture(scope="module")
def found() -> ModelError:
    return find_model_error(make_residuals())


def test_errors_are_found_again(found) -> None:
    for name, value in TRUE:
        assert getattr(found, name) == pytest.approx(value, rel=0.35), name


def test_errors_do_not_hang_on_rounding(found) -> None:
    residuals = make_residuals()
    moved = find_model_error(replace(residuals, off=residuals.off * (1 + 1e-6)))
    for name, value in found:
        assert getattr(moved, name) == pytest.approx(value, rel=1e-4), name


def test_a_spread_is_of_independent_causes() -> None:
    residuals = make_residuals()
    widening = 1 + TRUE.unseen * residuals.unseen + TRUE.distance * residuals.away
    expected = np.sqrt(1e-4 + (widening * np.where(np.arange(RUNS) % 2, 0.1, 0.02)) ** 2)
    assert residuals.spread(TRUE)[1] == pytest.approx(expected)
    assert PERCENTILES[90] == pytest.approx(1.5332)


def test_intervals_cover_what_they_should() -> None:
    residuals = make_residuals(2.0)
    within = residuals.within(find_model_error(residuals))
    assert (np.nanmean(within, axis=1) >= LEVEL).all()
    assert np.nanmean(within) < 0.95


@cache
def find_before(odd_too: bool) -> ModelError:
    """Errors of the usual runs, or of both kinds as if they were alike."""
    both = join(make_residuals(scheme="usual"), make_odd("usual"))
    return find_model_error(both if odd_too else both.select(np.arange(both.rows.size) < RUNS))


def make_odd(scheme: str) -> Residuals:
    """A few runs that are off by far more; all are unseen, and far away: what is widened covers
    them.
    """
    few = make_residuals(1.7, scheme).select(np.arange(RUNS) < 40)
    return replace(few, unseen=np.ones(40), away=np.full(40, 2.0))


def join(one: Residuals, other: Residuals) -> Residuals:
    """Runs of both."""
    return Residuals(
        **{
            name: np.concatenate([getattr(one, name), getattr(other, name)], axis=-1)
            for name in vars(one)
        }
    )


@pytest.mark.parametrize(
    ("scheme", "widened"),
    [
        ("configuration", {"reduce", "exchange"}),  # communication is what is off
        ("series", {"unseen"}),
        ("model", {"unseen"}),
        ("strategy", {"unseen"}),
        ("largest scales", {"distance"}),
        ("all but one scale", {"distance"}),
    ],
)
def test_intervals_that_are_too_narrow_are_widened_by_what_is_at_fault(scheme, widened) -> None:
    """Two kinds of runs: those that are left out so are off by far more than the others."""
    odd = make_odd(scheme)
    # Runs whose neighbours were fitted widen errors, but are not what these are found from.
    before = find_before(scheme not in NEAR)
    after = find_model_error(join(make_residuals(scheme="usual"), odd))
    # By more than one step of 5 %, which 400 usual runs need or not by chance.
    wider = {name for name, value in after if value > 1.1 * getattr(before, name)}
    assert wider == widened
    assert (np.nanmean(odd.within(after), axis=1) >= LEVEL).all()


@pytest.mark.parametrize(
    ("part", "widened"), [(1, {"serial", "group"}), (2, {"reduce", "exchange"})]
)
def test_a_part_that_is_off_widens_its_own_errors(part, widened) -> None:
    """Computing and communication, of runs left out one by one; totals were not measured."""
    usual, odd = make_residuals(scheme="series"), make_residuals(1.0, "configuration")
    off = np.full((3, RUNS), np.nan)
    off[part] = 2 * odd.off[part]
    odd = replace(odd, off=off)
    before, after = find_before(False), find_model_error(join(usual, odd))
    assert {name for name, value in after if value > 1.01 * getattr(before, name)} == widened


def test_outliers_of_communication_widen_it_alone(found) -> None:
    residuals = make_residuals()
    off = residuals.off.copy()
    off[2, ::3] = 5.0
    odd = find_model_error(replace(residuals, off=off))
    assert odd.exchange > 2 * found.exchange
    assert odd.group < 2 * found.group


def make_networks(factor: float, scheme: str = "model") -> Residuals:
    """Two networks, whose computing is a factor away from what each says of the other."""
    residuals = make_residuals(0.6, scheme)
    computing = np.ones((3, RUNS))
    computing[2] = 0  # communication
    computing[0] = 0.6  # of a total that is mostly compute
    sign = np.where(np.arange(RUNS) < RUNS / 2, 1.0, -1.0)
    off = residuals.off + sign * np.log(factor) * np.sqrt(computing)
    return replace(residuals, off=off, computing=computing)


@pytest.mark.parametrize("factor", [1.5, 3.0, 10.0])
def test_networks_that_err_differently_widen_the_intervals_of_others_alone(factor) -> None:
    apart = make_networks(factor)
    spread = find_unseen_spread(apart)
    assert spread == pytest.approx(np.log(factor) / PERCENTILES[90], rel=0.3)
    wide = apart.widen(spread)
    after, usual = find_model_error(join(make_residuals(scheme="usual"), wide)), find_before(False)
    assert (np.nanmean(wide.within(after), axis=1) >= LEVEL).all()
    # The errors of networks that ran stay what they were.
    for name, value in after:
        assert value < 1.3 * getattr(usual, name), name


def test_networks_that_err_as_all_runs_do_widen_nothing() -> None:
    assert find_unseen_spread(make_networks(1.0)) == 0
    # Nor do runs that were left out for another reason.
    assert find_unseen_spread(make_networks(3.0, "strategy")) == 0


def test_the_spread_of_unseen_networks_is_one_that_a_file_takes() -> None:
    assert find_unseen_spread(make_networks(1e12)) == 10


def test_without_runs_the_errors_are_the_assumed_ones() -> None:
    nothing = replace(make_residuals(), off=np.full((3, RUNS), np.nan))
    assert vars(find_model_error(nothing)) == pytest.approx(vars(ASSUMED), rel=1e-3)


def test_some_are_selected() -> None:
    residuals = make_residuals()
    odd = residuals.select(np.arange(RUNS) % 2 == 1)
    assert odd.rows.tolist() == list(range(1, RUNS, 2))
    assert odd.off.tolist() == residuals.off[:, 1::2].tolist()
    assert odd.errors.shape == (len(SCALES), 3, RUNS // 2)
