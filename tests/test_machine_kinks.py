"""Time is continuous in the network and the software, and has derivatives at its kinks.

Kinks are where another algorithm becomes the fastest, or a window is full.
"""

from dataclasses import replace
from typing import Any

import jax
import numpy as np
import pytest
from machine_answers import STRATEGIES, add_times, answer, take_case

from paradl.kernels.arrays import xp
from paradl.kernels.compiled import compiled
from paradl.kernels.configuration.case import Case
from paradl.kernels.oracle.answer import evaluate

pytestmark = pytest.mark.usefixtures("float64")

STEP = 1.002
# Parameters that matter for a strategy.
RELEVANT = {("inter_bandwidth", "data"), ("intra_bandwidth", "data+filter:group=4")}


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize(
    ("name", "first"), [("inter_bandwidth", 1e9), ("intra_bandwidth", 1e9), ("inter_latency", 1e-6)]
)
@pytest.mark.parametrize("system", ["dgx1-v100", "abci:software=ddp"])
def test_time_follows_the_network_without_a_jump(strategy, name, first, system) -> None:
    """In steps of 0.2 % over three decades, in which algorithms change and windows fill: the time
    changes by no more than its cause.
    """
    values = first * STEP ** np.arange(3456)
    times = add_times(answer(system, strategy, 24, "vgg16", **{name: values.tolist()}))
    if name == "inter_latency":
        times = times[::-1]
    ratios = times[:-1] / times[1:]
    assert (ratios >= 1 - 1e-12).all()
    assert (ratios <= STEP * (1 + 1e-12)).all()
    if (name, strategy) in RELEVANT:
        assert times[0] > 1.1 * times[-1]


def find_running(terms: Any) -> Any:
    """Seconds of a pass in which a PE computes or waits for its host."""
    return np.asarray(terms.forward_backward + terms.pass_overhead + terms.launch_wait)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_time_follows_software_without_a_jump(strategy) -> None:
    overlaps = np.linspace(0, 1, 1001)
    result = answer("dgx1-v100", strategy, 24, "vgg16", overlap=overlaps.tolist())
    saved = -np.diff(np.broadcast_to(add_times(result), overlaps.shape))
    assert (saved >= -1e-9 * add_times(result)[0]).all()
    most = find_running(result.terms).max() * 1e-3
    assert (saved <= most * (1 + 1e-6)).all()
    # Messages count as fractions: in steps of 0.2 %, no more than that of what they take together.
    buckets = 1e6 * STEP ** np.arange(3456)
    times = add_times(answer("dgx1-v100", strategy, 24, "vgg16", bucket=buckets.tolist()))
    assert (np.abs(np.diff(np.log(times))) <= 2 * np.log(STEP)).all()


# Derivatives.


def vary(case: Case, values: dict[str, Any]) -> Case:
    """The case with other numbers."""
    network, software, run = case.network, case.software, case.run
    return replace(
        case,
        network=replace(network, bandwidth=values["bandwidth"], latency=values["latency"]),
        software=replace(
            software, **{name: values[name] for name in ("overlap", "bucket", "jitter")}
        ),
        run=replace(run, spec_batch=values["batch"]),
    )


def list_values(case: Case) -> dict[str, Any]:
    """The numbers as they are."""
    network, software = case.network, case.software
    values = {
        "bandwidth": network.bandwidth,
        "latency": network.latency,
        "overlap": software.overlap,
        "bucket": software.bucket,
        "jitter": software.jitter,
        "batch": case.run.spec_batch,
    }
    return {name: np.asarray(value) for name, value in values.items()}


@compiled(numpy=True)
def time_epoch(case: Case, values: dict[str, Any]) -> Any:
    result = evaluate(vary(case, values))
    return xp.sum(result.compute + result.communication)


@compiled()
def differentiate(case: Case, values: dict[str, Any]) -> dict[str, Any]:
    slopes: dict[str, Any] = jax.grad(lambda point: time_epoch(case, point))(values)
    return slopes


# The second one with buckets, and fewer levels. Of the other ways of dividing, slopes are compared
# with differences: tests/test_machine.py.
@pytest.mark.parametrize("system", ["abci", "dgx1-v100"])
@pytest.mark.parametrize("pe", [4, 64])
def test_derivatives_are_finite(system, pe) -> None:
    """Also where a machine has fewer levels than the kernels, whose others are without bound; and
    in a group alone, without buckets, and where two algorithms are as fast as each other.
    """
    case = take_case(system, "data+filter:group=4", pe, "vgg16")
    slopes = differentiate(case, list_values(case))
    for name, slope in slopes.items():
        assert np.isfinite(slope).all(), name
    assert (slopes["bandwidth"] <= 0).all()
    assert (slopes["latency"] >= 0).all()
    assert (slopes["overlap"] <= 0).all()


def find_sides(case: Case, values: dict[str, Any], name: str, step: float) -> list[float]:
    """The slopes on both sides of a number."""
    ways = [values | {name: values[name] * (1 + sign * step)} for sign in (-1, 1)]
    middle = float(time_epoch(case, values))
    width = float(values[name].ravel()[0]) * step
    return sorted(
        sign * (float(time_epoch(case, way)) - middle) / width
        for sign, way in zip((-1, 1), ways, strict=True)
    )


def test_a_derivative_at_a_kink_is_one_of_its_sides() -> None:
    """Where all but the last message is just hidden; where a bucket holds just all gradients."""
    configuration = ("dgx1-v100", "data+filter:group=4", 64, "vgg16")
    little, full = (answer(*configuration, 256, overlap=part) for part in (0.01, 1.0))
    hidden = [np.asarray(result.terms.hidden_communication).item() for result in (little, full)]
    overlap = 0.01 * hidden[1] / hidden[0]
    assert 0 < overlap < 1
    whole = 4.0 * float(np.sum(take_case(*configuration).machine_work.gradient))
    for name, value, batch in (("overlap", overlap, 256), ("bucket", whole, 32)):
        case = take_case(*configuration, batch)
        values = list_values(case)
        values[name] = np.full_like(values[name], value)
        least, most = find_sides(case, values, name, 1e-4)
        assert most - least > 0.1 * abs(least)  # a kink it is
        slope = float(differentiate(case, values)[name].ravel()[0])
        slack = 1e-3 * (most - least)
        assert least - slack <= slope <= most + slack
