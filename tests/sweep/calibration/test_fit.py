"""Fit: known parameters are found again, and what no run tells stays at its prior."""

import math
from dataclasses import replace

import numpy as np
import pytest
from kernels.calibration import Calibration

from grids.entries.calibration import PRIORS
from sweep.calibration.fit import PROFILE, fit, log_times
from sweep.calibration.model_error import DEFAULT
from sweep.calibration.observations import slow_down
from sweep.calibration.posterior import calibrate_machine
from sweep.errors import RunError
from sweep.measured.runs import PARTS

# Of runs that are data parallel only; all that divides layers is out of their reach.
DATA_TELLS = {"node_reduce", "reduce", "reduce_latency", "congestion"}


def everything(seen) -> np.ndarray:
    return np.ones(len(seen), bool)


def rewritten(seen, rows, values, factor=1.0) -> list[dict[str, str]]:
    """The rows, as a machine with these parameters would have measured them."""
    slower = slow_down(seen.case, np.full(len(rows), factor))
    seconds = np.exp(np.asarray(log_times(replace(slower, calibration=Calibration(*values)))))
    return [
        row | {f"{part}_s": repr(float(column[n])) for n, part in enumerate(PARTS)}
        for row, column in zip(rows, seconds.T, strict=True)
    ]


def test_known_parameters_are_found_again(observed, dozen) -> None:
    medians = np.array([prior.median for prior in PRIORS.values()])
    spreads = np.array([prior.spread for prior in PRIORS.values()])
    signs = np.resize([1, -1, -1], medians.size)
    true = medians * np.exp(0.5 * signs * spreads)
    seen = observed(rewritten(observed(dozen), dozen, true, factor=1.1))
    found = calibrate_machine(seen, everything(seen), DEFAULT)
    determined = [n for n, each in enumerate(found.parameters.values()) if each.determined]
    assert len(determined) >= 7  # of 14, by a dozen runs
    for n in determined:
        name = list(PRIORS)[n]
        each = found.parameters[name]
        assert abs(math.log(each.value / true[n])) < 2 * each.spread, name
    assert found.serial["vgg16"].factor == pytest.approx(1.1, rel=0.03)


def test_what_no_run_tells_stays_at_its_prior(observed, data_only) -> None:
    seen = observed(data_only)
    found = calibrate_machine(seen, everything(seen), DEFAULT)
    assert found.parameters["reduce"].determined
    for name, prior in PRIORS.items():
        if name not in DATA_TELLS:
            each = found.parameters[name]
            assert not each.determined
            assert (each.value, each.spread) == pytest.approx((prior.median, prior.spread))


def test_totals_alone_are_enough(observed, dozen) -> None:
    """A serial time is then told apart from the communication by its growth with p."""
    seen = observed([row | {"comp_s": "", "comm_s": ""} for row in dozen])
    found = fit(seen, everything(seen))
    factors = np.array([found.serial[run.model].factor for run in seen.runs])
    case = replace(slow_down(seen.case, factors), calibration=Calibration(*found.values))
    times = np.asarray(log_times(case))
    assert np.abs(times[0] - np.log(seen.seconds[0])).max() < 0.25


def test_one_run_moves_little(observed, dozen) -> None:
    seen = observed(dozen)
    only = np.arange(len(seen)) == 0
    found = calibrate_machine(seen, only, DEFAULT)
    assert list(found.serial) == ["resnet50"]
    assert found.serial["resnet50"].spread < PROFILE
    assert [each.strategy for each in found.series] == ["data"]
    assert sum(each.determined for each in found.parameters.values()) <= 1


def test_no_run_leaves_the_priors(observed, dozen) -> None:
    seen = observed(dozen)
    found = fit(seen, ~everything(seen))
    assert found.values == pytest.approx([each.median for each in PRIORS.values()])
    assert np.sqrt(np.diag(found.covariance)) == pytest.approx(
        [each.spread for each in PRIORS.values()]
    )
    assert found.serial == {}


def test_a_run_that_went_wrong_bends_little(observed, dozen) -> None:
    right, wrong = dozen, [dozen[0] | {"total_s": "9", "comm_s": "8.8"}, *dozen[1:]]
    values = [fit(seen, everything(seen)).values for seen in map(observed, (right, wrong))]
    assert np.abs(np.log(values[0] / values[1])).max() < 0.25


def test_values_stay_within_their_bounds(observed, dozen) -> None:
    slow = [row | {"comm_s": "1e6", "total_s": "1e6"} for row in dozen]
    seen = observed(slow)
    for value, prior in zip(fit(seen, everything(seen)).values, PRIORS.values(), strict=True):
        assert prior.low * 0.999 <= value <= prior.high * 1.001


def test_a_fit_that_fails_says_so(observed, dozen) -> None:
    seen = observed(dozen)
    seen.case.work.serial[:] = np.nan
    with pytest.raises(RunError, match="the fit found no parameters"):
        fit(seen, everything(seen))
