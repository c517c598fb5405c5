"""Fit: known parameters are found again, and what no run tells stays at its prior."""

import math
from copy import deepcopy
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from measured_runs import predict_rows, set_parameters

from grids.entries.calibration import ASSUMED, CALIBRATED, CalibrationFile, SerialTime, list_priors
from kernels.compiled import compiled
from sweep.calibration.fit import PROFILE, fit, log_times
from sweep.calibration.observations import Mask, Observations, apply_parameters
from sweep.calibration.posterior import calibrate_machine
from sweep.errors import RunError

PRIORS = list_priors("fp32", "plain")
SEVEN = [
    ("resnet50", "serial", 1, 64),
    *(("resnet50", "data", p, 64) for p in (4, 16, 64)),
    ("resnet50", "filter", 16, 64),
    ("resnet50", "channel", 16, 64),
    ("resnet50", "data+spatial:group=4", 16, 64),
]
SPLIT = ("filter", "channel", "data+filter:group=4", "data+spatial:group=4", "data+channel:group=4")
SIXTY = [
    ("resnet50", "serial", 1, 64),
    ("vgg16", "serial", 1, 32),
    ("cosmoflow", "serial", 1, 1),
    *(("resnet50", "data", 2**n, 64) for n in (2, 3, 4, 5, 6, 8, 9, 10)),
    *(("vgg16", "data", 2**n, 32) for n in range(1, 9)),
    *(("resnet50", strategy, p, 64) for strategy, p in product(SPLIT, (4, 8, 16, 64))),
    *(("vgg16", strategy, p, 32) for strategy, p in product(SPLIT, (4, 8, 16))),
    *(("cosmoflow", "data+spatial:group=4", p, 1) for p in (4, 8, 16, 32, 64, 128)),
]
FACTORS = {"resnet50": 1.12, "vgg16": 0.95, "cosmoflow": 1.05}
# Of runs that are data parallel only; all that divides layers is out of their reach.
DATA_TELLS = {"layer_overhead", "rail", "flow", "log_open"}

apply = compiled(numpy=True)(apply_parameters)


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
MACHINE = [
    set_parameters(
        TRUE, serial={model: {"factor": factor, "spread": 0.1} for model, factor in FACTORS.items()}
    )
]


def use_all(observations: Observations) -> Mask:
    return np.ones(len(observations), bool)


def predict_totals(observations: Observations, file: CalibrationFile) -> np.ndarray:
    """Seconds of each run by a calibration."""
    values = {name: parameter.value for name, parameter in file.parameters.items()}
    factors = np.array([file.serial[run.model].factor for run in observations.runs])
    moved = apply(observations.case, observations.layers, values, factors)
    return np.exp(np.asarray(log_times(moved))[0])


@pytest.fixture(scope="module")
def sixty() -> list[dict[str, str]]:
    """Runs of a machine of TRUE, without any noise."""
    assert len(SIXTY) == 60
    return predict_rows(SIXTY, "abci", MACHINE)


@pytest.fixture(scope="module")
def calibrated(observed, sixty) -> CalibrationFile:
    """The calibration by all of them."""
    observations = observed(sixty)
    return calibrate_machine(observations, use_all(observations), ASSUMED, starts=1)


def test_sixty_runs_tell_all_parameters(calibrated) -> None:
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


def test_seven_runs_tell_what_they_can(observed, sixty) -> None:
    """And predict themselves, with the priors' word for the rest."""
    observations = observed(sixty)
    train = np.array([point in SEVEN for point in SIXTY])
    file = calibrate_machine(observations, train, ASSUMED, starts=1)
    for name, parameter in file.parameters.items():
        assert abs(math.log(parameter.value / TRUE[name])) < 1.5 * parameter.spread, name
        assert parameter.spread <= PRIORS[name].spread * 1.001, name
    assert list(file.serial) == ["resnet50"]
    assert file.serial["resnet50"].factor == pytest.approx(1.12, rel=0.03)
    resnet = observed([row for row, used in zip(sixty, train, strict=True) if used])
    assert len(resnet) == len(SEVEN)
    np.testing.assert_allclose(predict_totals(resnet, file), resnet.seconds[0], rtol=0.05)


def test_what_no_run_tells_stays_at_its_prior(observed, data_only) -> None:
    observations = observed(data_only)
    file = calibrate_machine(observations, use_all(observations), ASSUMED, starts=0)
    assert file.parameters["flow"].determined
    for name, prior in PRIORS.items():
        if name not in DATA_TELLS:
            values = file.parameters[name]
            assert not values.determined
            same = pytest.approx((prior.median, prior.spread), rel=1e-4)
            assert (values.value, values.spread) == same, name


def test_totals_alone_are_enough(observed, sixty) -> None:
    """A serial time is then told apart from the communication by its growth with p."""
    observations = observed([row | {"comp_s": "", "comm_s": ""} for row in sixty])
    file = calibrate_machine(observations, use_all(observations), ASSUMED, starts=1)
    np.testing.assert_allclose(
        predict_totals(observations, file), observations.seconds[0], rtol=0.03
    )
    assert file.serial["vgg16"].factor == pytest.approx(0.95, rel=0.05)


def test_one_run_moves_little(observed, dozen) -> None:
    observations = observed(dozen)
    only = np.arange(len(observations)) == 0
    file = calibrate_machine(observations, only, ASSUMED, starts=1)
    assert list(file.serial) == ["resnet50"]
    assert file.serial["resnet50"].spread < PROFILE
    assert [line.strategy for line in file.series] == ["data"]
    assert sum(parameter.determined for parameter in file.parameters.values()) <= 1


def test_no_run_leaves_the_priors(observed, dozen) -> None:
    observations = observed(dozen)
    posterior = fit(observations, ~use_all(observations))
    assert posterior.values == pytest.approx([prior.median for prior in PRIORS.values()])
    spreads = [prior.spread for prior in PRIORS.values()]
    assert np.sqrt(np.diag(posterior.covariance)) == pytest.approx(spreads)
    assert posterior.serial == {}


def slow_down(observations: Observations, factors: dict[str, float]) -> Observations:
    """The same runs, whose computing took this many times as long."""
    slower = []
    for run in observations.runs:
        times = run.measured
        assert times.comp is not None
        assert times.comm is not None
        comp = factors[run.model] * times.comp
        slower.append(replace(run, measured=replace(times, comp=comp, total=comp + times.comm)))
    return replace(observations, runs=tuple(slower))


def test_a_network_that_is_far_off_says_little_of_others(observed) -> None:
    """Of three networks two are 1.1 times as slow; the third is, or twice as slow."""
    networks = {"resnet50": 64, "vgg16": 32, "alexnet": 32}
    observations = observed(
        predict_rows(
            [(name, "data", p, batch) for name, batch in networks.items() for p in (1, 2, 4, 8)]
        )
    )

    def fit_machine(alexnet: float) -> SerialTime:
        slow = slow_down(observations, {"resnet50": 1.1, "vgg16": 1.1, "alexnet": alexnet})
        return fit(slow, use_all(slow)).profiled

    alike, apart = fit_machine(1.1), fit_machine(2.0)
    assert 1.03 < alike.factor < 1.1
    assert apart.factor == pytest.approx(alike.factor, abs=0.02)


def test_a_frozen_parameter_is_known(observed, sixty, calibrated) -> None:
    """The runs say nothing of it; all else is what makes them most probable then."""
    observations = observed(sixty)
    frozen = {"rail": 0.5, "host_jitter": 1e-15, "flow": 1e15}
    file = calibrate_machine(observations, use_all(observations), ASSUMED, 1, frozen)
    for name, value in frozen.items():
        assert file.parameters[name].value == pytest.approx(value)
        assert file.parameters[name].spread == 0
        assert not file.covariance[CALIBRATED.index(name)].any()
    others = set(CALIBRATED) - set(frozen)
    assert all(file.parameters[name].spread > 0 for name in others)
    seconds = observations.seconds[0]
    off, best = (
        np.abs(np.log(predict_totals(observations, value_) / seconds)).mean()
        for value_ in (file, calibrated)
    )
    assert off > 5 * best


def test_a_run_that_went_wrong_bends_little(observed, dozen) -> None:
    right, wrong = dozen, [dozen[0] | {"total_s": "9", "comm_s": "8.8"}, *dozen[1:]]
    values = [fit(value, use_all(value)).values for value in map(observed, (right, wrong))]
    assert np.abs(np.log(values[0] / values[1])).max() < 0.25


def test_values_stay_within_their_bounds(observed, dozen) -> None:
    observations = observed([row | {"comm_s": "1e6", "total_s": "1e6"} for row in dozen])
    values = fit(observations, use_all(observations)).values
    for value, prior in zip(values, PRIORS.values(), strict=True):
        assert prior.low * 0.999 <= value <= prior.high * 1.001


def test_a_fit_that_fails_says_so(observed, dozen) -> None:
    observations = deepcopy(observed(dozen))
    observations.layers.sample[:] = np.nan
    with pytest.raises(RunError, match="the fit found no parameters"):
        fit(observations, use_all(observations))


def test_spreads_at_a_kink_do_not_depend_on_where_the_search_stopped(observed, shipped) -> None:
    """The flows of a node reach a share of its link: `rail` all together, or `flow` each."""
    observations = observed(shipped)
    spreads = []
    for factor in (1 - 1e-6, 1 + 1e-6):
        moved = move_parts(observations, factor)
        posterior = fit(moved, use_all(moved), starts=0)
        variances = dict(zip(PRIORS, np.diag(posterior.covariance).tolist(), strict=True))
        spreads.append([variances["rail"] ** 0.5, variances["flow"] ** 0.5])
    assert np.ptp(np.log(spreads), axis=0).max() < 0.15


def move_parts(observations: Observations, factor: float) -> Observations:
    """The same runs with other times of their parts, where these were measured."""
    runs = []
    for run in observations.runs:
        comp, comm = (time and time * factor for time in (run.measured.comp, run.measured.comm))
        runs.append(replace(run, measured=replace(run.measured, comp=comp, comm=comm)))
    return replace(observations, runs=tuple(runs))
