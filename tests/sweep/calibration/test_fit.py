"""Fit: known parameters are found again, and what no run tells stays at its prior."""

import math
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from jax import Array
from measured_runs import predict_rows, set_parameters

from paradl.grids.entries.calibration import (
    ASSUMED,
    CALIBRATED,
    CalibrationFile,
    SerialTime,
    list_priors,
)
from paradl.kernels.derivatives.density import FitData, apply_parameters, find_surprise, log_times
from paradl.sweep.calibration.fit import (
    MACHINE,
    PROFILE,
    build_root,
    calibrate_machine,
    fit,
    predict_unseen,
)
from paradl.sweep.calibration.observations import Observations
from paradl.sweep.errors import RunError
from paradl.sweep.measured.runs import MeasuredRun, RunTimes

PRIORS = list_priors("fp32", "plain")
SEVEN = [
    ("resnet50", "serial", 1, 64),
    *(("resnet50", "data", p, 64) for p in (4, 16, 64)),
    ("resnet50", "filter", 16, 64),
    ("resnet50", "channel", 16, 64),
    ("resnet50", "data+spatial:group=4", 16, 64),
]
SPLIT = ("filter", "channel", "data+filter:group=4", "data+spatial:group=4", "data+channel:group=4")
# As many runs and networks as the catalogue has of ABCI, whose program then fits them.
RUNS = [
    ("resnet50", "serial", 1, 64),
    ("vgg16", "serial", 1, 32),
    ("cosmoflow", "serial", 1, 1),
    *(("alexnet", "data", p, 32) for p in (1, 4)),
    *(("resnet50", "data", 2**n, 64) for n in (2, 3, 4, 6, 8, 10)),
    *(("vgg16", "data", 2**n, 32) for n in (1, 2, 4, 6, 8)),
    *(("resnet50", strategy, p, 64) for strategy, p in product(SPLIT, (4, 8, 16, 64))),
    *(("vgg16", strategy, p, 32) for strategy, p in product(SPLIT, (4, 8, 16))),
    *(("cosmoflow", "data+spatial:group=4", p, 1) for p in (4, 8, 16, 32, 128)),
]
FACTORS = {"resnet50": 1.12, "vgg16": 0.95, "cosmoflow": 1.05, "alexnet": 1.08}
# Of runs that are data parallel only; all that divides layers is out of their reach.
DATA_TELLS = {"layer_overhead", "rail", "flow", "log_open"}


def choose_parameters() -> dict[str, float]:
    """Half a spread from each prior's median, up and down, within the bounds.

    Hosts are fast: launches that take as long as a pass would hide what devices take.
    """
    signs = np.resize([-1, -1, 1], len(PRIORS)).tolist()
    values = {
        name: prior.median * math.exp(0.5 * sign * prior.spread)
        for sign, (name, prior) in zip(signs, PRIORS.items(), strict=True)
    }
    assert all(PRIORS[name].low < value < PRIORS[name].high for name, value in values.items())
    return values


TRUE = choose_parameters()
TRUE_PREDICTIONS = [
    set_parameters(
        TRUE, serial={model: {"factor": factor, "spread": 0.1} for model, factor in FACTORS.items()}
    )
]


ALL = np.ones(len(RUNS), bool)
OF_SEVEN = np.array([run in SEVEN for run in RUNS])
OF_DATA = np.array([strategy in ("serial", "data") for _, strategy, *_ in RUNS])


def replace_times(
    observations: Observations, change: Callable[[MeasuredRun], RunTimes]
) -> Observations:
    """The same runs with other times."""
    runs = tuple(replace(run, measured=change(run)) for run in observations.runs)
    return replace(observations, runs=runs)


def predict_totals(observations: Observations, file: CalibrationFile) -> np.ndarray:
    """Seconds of each run by a calibration."""
    values = {name: parameter.value for name, parameter in file.parameters.items()}
    factors = np.array([file.serial[run.model].factor for run in observations.runs])
    moved = apply_parameters(observations.case, observations.layers, values, factors)
    return np.exp(np.asarray(log_times(moved))[0])


@pytest.fixture(scope="module")
def observations(observed) -> Observations:
    """Runs of a machine of TRUE, without any noise."""
    return observed(predict_rows(RUNS, "abci", TRUE_PREDICTIONS))


@pytest.fixture(scope="module")
def calibrated(observations) -> CalibrationFile:
    """The calibration by all of them."""
    return calibrate_machine(observations, ALL, ASSUMED, starts=1)


def test_many_runs_tell_all_parameters(calibrated) -> None:
    file = calibrated
    for name, parameter in file.parameters.items():
        assert abs(math.log(parameter.value / TRUE[name])) < parameter.spread, name
    determined = {name for name, parameter_ in file.parameters.items() if parameter_.determined}
    assert determined >= set(CALIBRATED) - {"part_overhead", "host_jitter"}
    for name in determined:
        # The priors' medians are off by 14 to 82 %.
        assert file.parameters[name].value == pytest.approx(TRUE[name], rel=0.12), name
    for model, factor in FACTORS.items():
        assert file.serial[model].factor == pytest.approx(factor, rel=0.01)


def test_seven_runs_tell_what_they_can(observations) -> None:
    """And predict themselves, with the priors' word for the rest."""
    file = calibrate_machine(observations, OF_SEVEN, ASSUMED, starts=1)
    for name, parameter in file.parameters.items():
        assert abs(math.log(parameter.value / TRUE[name])) < 1.5 * parameter.spread, name
        assert parameter.spread <= PRIORS[name].spread * 1.001, name
    assert list(file.serial) == ["resnet50"]
    assert file.serial["resnet50"].factor == pytest.approx(1.12, rel=0.03)
    everywhere = dict.fromkeys(FACTORS, file.serial["resnet50"])
    totals = predict_totals(observations, file.model_copy(update={"serial": everywhere}))
    np.testing.assert_allclose(totals[OF_SEVEN], observations.seconds[0, OF_SEVEN], rtol=0.05)


def test_what_no_run_tells_stays_at_its_prior(observations) -> None:
    file = calibrate_machine(observations, OF_DATA, ASSUMED, starts=0)
    assert file.parameters["flow"].determined
    for name, prior in PRIORS.items():
        if name not in DATA_TELLS:
            values = file.parameters[name]
            assert not values.determined
            same = pytest.approx((prior.median, prior.spread), rel=1e-4)
            assert (values.value, values.spread) == same, name


def test_totals_alone_are_enough(observations) -> None:
    """A serial time is then told apart from the communication by its growth with p."""
    totals = replace_times(observations, lambda run: replace(run.measured, comp=None, comm=None))
    file = calibrate_machine(totals, ALL, ASSUMED, starts=1)
    np.testing.assert_allclose(predict_totals(totals, file), totals.seconds[0], rtol=0.03)
    assert file.serial["vgg16"].factor == pytest.approx(0.95, rel=0.05)


def test_one_run_moves_little(observations) -> None:
    only = np.arange(len(RUNS)) == RUNS.index(("resnet50", "data", 16, 64))
    file = calibrate_machine(observations, only, ASSUMED, starts=1)
    assert list(file.serial) == ["resnet50"]
    assert file.serial["resnet50"].spread < PROFILE
    assert [line.strategy for line in file.series] == ["data"]
    assert sum(parameter.determined for parameter in file.parameters.values()) <= 1


def test_no_run_leaves_the_priors(observations) -> None:
    posterior = fit(observations, ~ALL)
    assert posterior.values == pytest.approx([prior.median for prior in PRIORS.values()])
    spreads = [prior.spread for prior in PRIORS.values()]
    assert np.sqrt(np.diag(posterior.covariance)) == pytest.approx(spreads)
    assert posterior.serial == {}


def test_a_network_that_is_far_off_says_little_of_others(observations) -> None:
    """Of three networks two are 1.1 times as slow; the third is, or twice as slow."""

    def fit_machine(alexnet: float) -> SerialTime:
        slow = {"resnet50": 1.1, "vgg16": 1.1, "alexnet": alexnet, "cosmoflow": 1.0}

        def slow_down(run: MeasuredRun) -> RunTimes:
            assert run.measured.comp is not None
            assert run.measured.comm is not None
            comp = slow[run.model] / FACTORS[run.model] * run.measured.comp
            return replace(run.measured, comp=comp, total=comp + run.measured.comm)

        networks = OF_DATA & [run.model != "cosmoflow" for run in observations.runs]
        return fit(replace_times(observations, slow_down), networks, starts=1).profiled

    alike, apart = fit_machine(1.1), fit_machine(2.0)
    assert 1.03 < alike.factor < 1.1
    assert apart.factor == pytest.approx(alike.factor, abs=0.02)


def test_a_run_that_went_wrong_bends_little(observations) -> None:
    first = observations.runs[int(np.flatnonzero(OF_SEVEN)[1])]
    wrong = replace_times(
        observations,
        lambda run: RunTimes(total=9.0, comp=0.2, comm=8.8) if run == first else run.measured,
    )
    values = [fit(value, OF_SEVEN, starts=1).values for value in (observations, wrong)]
    assert np.abs(np.log(values[0] / values[1])).max() < 0.25


def test_values_stay_within_their_bounds(observations) -> None:
    """Of runs that send faster than links can: without bounds, 6 times a link's bandwidth."""

    def hurry(run: MeasuredRun) -> RunTimes:
        return replace(run.measured, comm=run.measured.comm and run.measured.comm / 30)

    values = fit(replace_times(observations, hurry), ALL, starts=0).values
    for value, prior in zip(values, PRIORS.values(), strict=True):
        assert prior.low * 0.999 <= value <= prior.high * 1.001


def test_a_fit_that_fails_says_so(observations) -> None:
    wrong = deepcopy(observations)
    wrong.layers.sample[:] = np.nan
    with pytest.raises(RunError, match="the fit found no parameters"):
        fit(wrong, ALL)


def test_a_calibration_does_not_depend_on_where_the_search_stopped(observed, shipped) -> None:
    """Times that differ by a millionth give the same parameters and spreads."""
    found = []
    for factor in (1 - 1e-6, 1 + 1e-6):

        def move_parts(run: MeasuredRun, factor: float = factor) -> RunTimes:
            comp, comm = (time and time * factor for time in (run.measured.comp, run.measured.comm))
            return replace(run.measured, comp=comp, comm=comm)

        posterior = fit(replace_times(observed(shipped), move_parts), ALL, starts=0)
        found.append([posterior.values, np.diag(posterior.covariance) ** 0.5])
    assert np.ptp(np.log(found), axis=0).max() < 1e-3


def test_slopes_of_the_density_are_its_differences(observed, shipped, monkeypatch) -> None:
    """At every twentieth point of the searches."""
    asked: list[tuple[Callable[..., tuple[Array, Array]], np.ndarray, FitData]] = []

    class Heard:
        """The density, which remembers where it was asked for."""

        @staticmethod
        def bind(at: np.ndarray, data: FitData) -> Callable[..., tuple[Array, Array]]:
            program = find_surprise.bind(at, data)

            def ask(at: np.ndarray, data: FitData) -> tuple[Array, Array]:
                asked.append((program, at.copy(), data))
                return program(at, data)

            return ask

    monkeypatch.setattr("paradl.sweep.calibration.fit.find_surprise", Heard)
    fit(observed(shipped), ALL, starts=0)
    step = 1e-6
    for program, at, data in asked[20::20]:
        along = np.full(at.size, at.size**-0.5)
        ahead, behind = (float(program(at + sign * along, data)[0]) for sign in (step, -step))
        slope = along @ np.asarray(program(at, data)[1])
        assert slope == pytest.approx((ahead - behind) / (2 * step), rel=1e-4, abs=1e-3)


def test_networks_share_the_machines_factor() -> None:
    """Each has its own spread in all; any two have the machine's in common."""
    spreads = np.array([0.15, 0.2, 0.5])
    root = build_root(spreads)
    assert root.shape == (3, 4)
    shared = np.full((3, 3), MACHINE**2)
    np.fill_diagonal(shared, spreads**2)
    np.testing.assert_allclose(root @ root.T, shared)


def test_before_any_run_a_network_is_as_its_prior() -> None:
    unseen = predict_unseen(0.2, 0.0, 1.0)
    assert [unseen.factor, unseen.spread] == pytest.approx([1, 0.2])


def test_a_network_that_did_not_run_is_as_slow_as_the_machine() -> None:
    """Of a known machine the network's own spread is left: 0.2^2 - 0.13^2."""
    known = predict_unseen(0.2, 2.0, 0.0)
    assert known.factor == pytest.approx(math.exp(2 * 0.13))
    assert known.spread == pytest.approx(math.sqrt(0.2**2 - 0.13**2))


def test_a_machine_that_is_known_better_leaves_less_open() -> None:
    spreads = [predict_unseen(0.2, 1.0, variance).spread for variance in (1, 0.5, 0.1, 0)]
    assert spreads == sorted(spreads, reverse=True)
    assert len(set(spreads)) == 4
