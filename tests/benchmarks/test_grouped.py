"""Fetching by grouped convolutions: shipped rows, the form by hand, the shipped value."""

import math

import numpy as np
import pytest

from benchmarks import priors
from paradl.grids.entries.parameters import PARAMETERS


@pytest.fixture(scope="module")
def made() -> priors.GroupedStudy:
    return priors.study_grouped()


def by_hand(run: priors.Run, window_fetch: float) -> float:
    """Compute seconds of an iteration layer by layer."""
    layers, *_ = priors.find_layers(run.model, run.dataset)
    (peaks, bandwidth), item = priors.DEVICES[run.device], priors.ITEM_BYTES[run.precision]
    values, device, update = priors.list_shipped(), 0.0, 0.0
    for at, kind in enumerate(layers.kinds):
        moved = (layers.x[at] + layers.y[at]) * item / bandwidth
        if kind in ("conv", "fc"):
            reached = peaks[run.precision] * values[f"efficiency_conv2d.{run.precision}"]
            _, height, width = layers.kernel[at]
            summed = layers.channels[at] * height * width
            reached *= summed / (summed + values["half_channels"])
            reached *= layers.filters[at] / 128 / math.ceil(layers.filters[at] / 128)
            square = height == width == 3 and max(layers.stride[at]) == 1
            if run.precision == "fp32" and square and layers.groups[at] == 1:
                reached *= values["winograd"]
            fetched = 0.0
            if layers.groups[at] > 1:
                filters = layers.filters[at] / layers.groups[at]
                fetched = layers.flops[at] / (2 * filters) * item / (window_fetch * bandwidth)
            device += run.samples * 3 * max(layers.flops[at] / reached + moved, fetched)
            if kind == "conv" and run.precision != "fp32" and layers.groups[at] == 1:
                share = {"NCHW": 1, "NHWC": 0}.get(run.note[:4], 0.25)
                device += run.samples * share * values["layout_passes"] * moved
        else:
            device += run.samples * values["elementwise_passes"] * moved
        weights = layers.w[at] + layers.bias[at]
        device += 3 * item * weights / bandwidth
        update += 20 * weights / bandwidth
    launching = len(layers) * values["layer_overhead"]
    return math.hypot(device**2, launching**2) ** 0.5 + update


@pytest.mark.parametrize(
    "run", priors.read_runs(priors.GROUPED_RUNS)[::5], ids=lambda run: run.model
)
def test_the_form_agrees_with_the_machine_oracle(run: priors.Run) -> None:
    seconds = priors.seconds([run], priors.list_shipped(), 0.3)
    assert seconds == pytest.approx(by_hand(run, 0.3), rel=1e-12)


def test_the_shipped_value_is_that_of_the_fit(made: priors.GroupedStudy) -> None:
    prior = PARAMETERS["window_fetch"].prior
    assert prior is not None
    assert prior.median["fp32"] == pytest.approx(made.window_fetch, rel=0.01)
    assert prior.spread["fp32"] == pytest.approx(made.spread, abs=0.02)


def test_fetching_earns_its_parameter(made: priors.GroupedStudy) -> None:
    """Also on a network and a device that the fit has not seen."""
    at_once = priors.grouped_errors(made.runs, priors.AT_ONCE)
    assert priors.mean_error(made.without_network) < 0.4 * priors.mean_error(at_once)
    checks = priors.grouped_errors(made.checks, priors.AT_ONCE)
    assert priors.mean_error(made.checked) < 0.4 * priors.mean_error(checks)
    assert np.exp(np.abs(made.fitted)).max() < 1.6


def test_dense_networks_do_not_fetch() -> None:
    runs, values = priors.read_runs(), priors.list_shipped()
    assert (priors.seconds(runs, values, 0.01) == priors.seconds(runs, values)).all()
