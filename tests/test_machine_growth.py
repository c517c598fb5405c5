"""How each term grows with PEs, nodes, layers and samples: ResNets of three depths on ABCI.

Stages of 2-2-2-2, 3-4-6-3 (ResNet-50) and 3-8-36-3 (ResNet-152) blocks, each of three convolutions,
behind one convolution, with four beside blocks. The samples, and what comes out at the end of a
spatial split, are the same. Numbers of priors come and go; exponents stay.
"""

from typing import Any

import numpy as np
import pytest

from grids.grid import Grid
from grids.models.layers import Floats
from grids.spec import validate_spec
from kernels.names.terms import TERMS
from kernels.namespace import use_numpy
from kernels.oracle.answer import answer_case

DEPTHS = {"shallow": (2, 2, 2, 2), "middle": (3, 4, 6, 3), "deep": (3, 8, 36, 3)}
BLOCKS = {name: sum(stages) for name, stages in DEPTHS.items()}
CONVOLUTIONS = {name: 1 + 3 * blocks + 4 for name, blocks in BLOCKS.items()}
TAU, LAUNCH = 1e-5, 3e-4  # seconds
# Nothing that is drawn, hidden or waited for beside what a test is about.
FIXED = {"log_open": TAU, "layer_overhead": LAUNCH, "jitter": 0.0}
PES = (2, 4, 8, 16)  # parts of the last stage's 7 x 7 points, too

Times = dict[str, Floats]


def make_grid(depth: str, strategy: str, pe: Any, batch: Any, **parameters: Any) -> Grid:
    model = {"name": depth, "rank": 2, "family": {"name": "resnet", "stages": DEPTHS[depth]}}
    named = {"model": [model], "dataset": "imagenet", "system": "abci", "strategy": strategy}
    varied = {key: value for key, value in parameters.items() if isinstance(value, list)}
    fixed = FIXED | {key: value for key, value in parameters.items() if key not in varied}
    for key in varied:
        fixed.pop(key, None)
    spec: dict[str, object] = {
        "axes": named | {"pe": pe, "batch": batch} | varied,
        "parameters": fixed,
        "calibration": "none",
    }
    return Grid.from_spec(validate_spec(spec, "spec"))


def time_terms(
    depth: str = "middle", strategy: str = "data", pe: Any = 16, batch: Any = 8, **parameters: Any
) -> Times:
    """Seconds an iteration of each term, along what is a list."""
    case = make_grid(depth, strategy, pe, batch, **parameters).case((0, 0, 0, 0))
    assert case is not None
    with use_numpy():
        answer = answer_case(case)
    return {
        name: np.ravel(np.asarray(getattr(answer.terms, name)) / np.asarray(answer.iterations))
        for name in TERMS
    }


def count_layers(depth: str) -> int:
    workload = make_grid(depth, "serial", 1, 1).workload(0, 0, 0)
    assert workload is not None
    return len(workload.table)


def add_pass(times: Times) -> Floats:
    """A pass on a PE, without the update."""
    return times["forward_backward"] + times["pass_overhead"] + times["launch_wait"]


# With depth.


@pytest.mark.parametrize("strategy", ["spatial", "data+spatial:group=4"])
@pytest.mark.parametrize("system_path", [{}, {"gather_rate": 0.5}])
def test_gathers_at_the_end_of_a_split_do_not_grow_with_depth(strategy, system_path) -> None:
    shallow, middle, deep = (
        time_terms(depth, strategy, pe=4, **system_path)["split_gather"] for depth in DEPTHS
    )
    assert shallow > 0
    np.testing.assert_allclose([middle, deep], [shallow, shallow], rtol=1e-12)


@pytest.mark.parametrize("strategy", ["spatial", "data+spatial:group=4"])
def test_start_ups_of_halos_grow_with_convolutions(strategy) -> None:
    """One in a block has windows that overlap; each has four messages, with their latency."""

    def find_startups(depth: str) -> float:
        once, twice = time_terms(depth, strategy, pe=4, halo_startup=[1.0, 2.0])["halo_exchange"]
        return float(twice - once)

    shallow, middle, deep = (find_startups(depth) for depth in DEPTHS)
    block = 4 * 3e-3  # of ABCI's path through hosts
    assert middle - shallow == pytest.approx(block * (BLOCKS["middle"] - BLOCKS["shallow"]))
    assert deep - middle == pytest.approx(block * (BLOCKS["deep"] - BLOCKS["middle"]))
    # Beside the blocks': the first convolution's, and the pooling's behind it.
    assert shallow == pytest.approx(block * (BLOCKS["shallow"] + 2))


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("strategy", ["filter", "spatial"])
def test_log_files_grow_with_convolutions_and_pes(depth, strategy) -> None:
    opened = 2 * CONVOLUTIONS[depth] * np.array(PES)
    logs = time_terms(depth, strategy, pe=list(PES))["log_files"]
    np.testing.assert_allclose(logs, opened * TAU, rtol=1e-12)


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("group", ["filter", "spatial"])
def test_replicas_open_log_files_for_gradients_once_more(depth, group) -> None:
    logs = time_terms(depth, f"data+{group}:group=2", pe=list(PES[1:]))["log_files"]
    opened = (2 * CONVOLUTIONS[depth] + 1) * np.array(PES[1:])
    np.testing.assert_allclose(logs, opened * TAU, rtol=1e-12)


@pytest.mark.parametrize("strategy", ["data", "data+channel:group=2", "data+pipeline:group=2"])
def test_log_files_of_others_are_of_gradients_alone(strategy) -> None:
    logs = np.array([time_terms(each, strategy, list(PES[1:]))["log_files"] for each in DEPTHS])
    np.testing.assert_allclose(logs, [np.array(PES[1:]) * TAU] * 3, rtol=1e-12)


@pytest.mark.parametrize("strategy", ["data", "data+pipeline:group=2", "data+spatial:group=4"])
def test_log_files_double_with_the_pes(strategy) -> None:
    logs = time_terms(strategy=strategy, pe=[8, 16, 32, 64, 128])["log_files"]
    np.testing.assert_allclose(logs[1:], 2 * logs[:-1], rtol=1e-12)


@pytest.mark.parametrize("pe", [4, 64, 1024])
def test_gradients_grow_with_the_weights(pe) -> None:
    """In one message, however many layers there are: start-ups, and a time a weight."""
    weights, seconds = [], []
    for depth in DEPTHS:
        workload = make_grid(depth, "data", pe, 8).workload(0, 0, 0)
        assert workload is not None
        weights.append(workload.table.w.sum())
        seconds.append(time_terms(depth, pe=pe)["gradient_exchange"][0])
    slopes = np.diff(seconds) / np.diff(weights)
    assert slopes[0] == pytest.approx(slopes[1])
    assert (
        0 <= seconds[0] - slopes[0] * weights[0] < 2 * pe * 50e-6
    )  # start-ups, 41 us beyond nodes


# With PEs and nodes.


def test_what_a_weight_takes_does_not_grow_with_nodes() -> None:
    """2 (p-1)/p beta; start-ups, 2 (p-1) alpha, grow with PEs: of each, p / (p-1) is even."""
    pes = np.array([8, 16, 32, 64])  # two nodes and more under one switch
    small, large = (
        time_terms(each, pe=pes.tolist())["gradient_exchange"] for each in ("shallow", "deep")
    )
    rates = (large - small) * pes / (pes - 1)
    np.testing.assert_allclose(rates, rates[0], rtol=1e-9)


@pytest.mark.parametrize("term", ["split_gather", "halo_exchange", "launch_wait"])
def test_what_a_group_does_alone_does_not_grow_with_nodes(term) -> None:
    seconds = time_terms(strategy="data+spatial:group=4", pe=[4, 8, 64, 512])[term]
    assert seconds[0] > 0
    np.testing.assert_allclose(seconds, seconds[0], rtol=1e-12)


def test_gathers_at_the_end_of_a_split_are_of_what_others_hold() -> None:
    """1 - 1/p2 of it."""
    seconds = time_terms(strategy="spatial", pe=[2, 4, 8, 16])["split_gather"]
    np.testing.assert_allclose(seconds / seconds[0], [1, 1.5, 1.75, 1.875], rtol=1e-12)


# With samples.


def test_gathers_at_the_end_of_a_split_grow_with_samples() -> None:
    seconds = time_terms(strategy="spatial", pe=4, batch=[1, 2, 8, 64])["split_gather"]
    np.testing.assert_allclose(seconds / seconds[0], [1, 2, 8, 64], rtol=1e-12)


@pytest.mark.parametrize(
    "strategy", ["data", "data+filter:group=4", "data+channel:group=4", "data+spatial:group=4"]
)
def test_computing_grows_with_samples_and_what_is_paid_once_does_not(strategy) -> None:
    times = time_terms(strategy=strategy, pe=16, batch=[1, 2, 4, 8])
    samples = times["forward_backward"] / times["forward_backward"][0]
    np.testing.assert_allclose(samples, [1, 2, 4, 8], rtol=1e-12)
    for name in ("pass_overhead", "weight_update", "gradient_exchange", "log_files"):
        assert times[name][0] > 0
        np.testing.assert_allclose(times[name], times[name][0], rtol=1e-12)
    first, second, third = np.diff(times["halo_exchange"])  # start-ups, and what grows
    assert [second, third] == pytest.approx([2 * first, 4 * first])


# Launches.


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("strategy", ["filter", "channel", "spatial"])
def test_few_samples_take_the_time_of_their_launches(depth, strategy) -> None:
    """o a layer, whatever a PE of a group has of it: hosts that take a second a layer."""
    took = add_pass(time_terms(depth, strategy, pe=[2, 4, 8, 16], batch=1, layer_overhead=1.0))
    np.testing.assert_allclose(took, count_layers(depth), rtol=1e-9)


@pytest.mark.parametrize("strategy", ["data", "filter", "channel", "spatial"])
def test_many_samples_hide_launches(strategy) -> None:
    """4,096 of a PE's own are enough: the device alone counts."""
    times = time_terms(strategy=strategy, pe=[2, 4, 8], batch=4096)
    assert (times["launch_wait"] < 1e-3 * add_pass(times)).all()


def test_launches_are_hidden_as_the_fourth_power_of_samples() -> None:
    """A quarter of (N o / X)^4 of X, where X is long: an eighth with twice the samples."""
    waits = time_terms(strategy="serial", pe=1, batch=[1024, 2048, 4096], layer_overhead=1e-4)
    wait = waits["launch_wait"]
    np.testing.assert_allclose(wait[1:] / wait[:-1], 1 / 8, rtol=1e-2)


def test_slower_hosts_make_deeper_networks_wait_longer() -> None:
    """In proportion to layers, and not to what they compute."""
    took = [add_pass(time_terms(each, pe=1, batch=1, layer_overhead=1.0))[0] for each in DEPTHS]
    layers = [count_layers(each) for each in DEPTHS]
    np.testing.assert_allclose(np.array(took) / took[0], np.array(layers) / layers[0], rtol=1e-9)
