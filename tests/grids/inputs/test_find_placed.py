"""Placed groups of a network with two branches, which can have a device each."""

from typing import Any

import numpy as np
import pytest
from jax.tree_util import tree_leaves

from paradl.grids.graphs.links import link_devices
from paradl.grids.grid import Grid
from paradl.grids.inputs.find_placed import BATCH
from paradl.grids.placing.pipelined_steps import unroll_graph
from paradl.grids.placing.problem import pose_problem
from paradl.grids.placing.schedule import plan_placement
from paradl.grids.placing.solve import search_plan
from paradl.grids.reading.errors import InputError
from paradl.grids.spec import validate_spec
from paradl.kernels.names.flags import Limit
from paradl.kernels.oracle.answer import answer_case

BRANCH = {"conv": {"filters": 256, "kernel": 3, "padding": "same"}}
TWINS: dict[str, Any] = {
    "name": "twins",
    "rank": 2,
    "layers": [
        {"conv": {"filters": 8, "kernel": 1}},
        {"concat": [[BRANCH, "relu", BRANCH], [BRANCH, "relu", BRANCH]]},
        "flatten",
        {"fc": "targets"},
    ],
}
CHAIN: dict[str, Any] = {
    "name": "chain",
    "rank": 2,
    "layers": [BRANCH, "relu", BRANCH, "flatten", {"fc": "targets"}],
}


def make_grid(model: dict[str, Any] = TWINS, **changes: Any) -> Grid:
    """Build a grid of two strategies on the PEs of one node, with four bytes per item."""
    axes = {
        "model": [model],
        "dataset": ["cifar10"],
        "system": ["abci:precision=fp32"],
        "strategy": ["placement", "serial"],
        "pe": [1, 2, 3, 4],
        "batch": [BATCH],
    }
    spec = {"axes": axes, "parameters": {"jitter": 0, "layer_overhead": 0}, "calibration": "none"}
    return Grid.from_spec(validate_spec({**spec, **changes}, "spec"))


def time_steps(grid: Grid, strategy: int) -> np.ndarray[Any, Any]:
    """Seconds per step of compute and messages, without updates [pe]."""
    case = grid.case((0, 0, 0, strategy))
    assert case is not None
    terms = answer_case(case).terms
    epoch = terms.forward_backward + terms.pass_overhead + terms.point_to_point
    return np.broadcast_to(np.asarray(epoch) / (50_000 / BATCH), (4, 1))[:, 0]


def test_two_branches_run_at_once() -> None:
    """The layers before and after the branches do not; one branch is sent there and back."""
    grid = make_grid()
    placed, serial = time_steps(grid, 0), time_steps(grid, 1)
    assert placed[0] == serial[0]
    assert 1.1 < serial[0] / placed[1] < 2


def test_a_step_takes_as_long_as_the_plan_says() -> None:
    """The kernels' sum along the path equals the searched schedule."""
    grid = make_grid()
    workload = grid.workload(0, 0, 0)
    assert workload is not None
    groups: Any = workload.placed
    plan = search_plan(pose_problem(groups.graph, link_devices(workload.system, 2)))
    assert time_steps(grid, 0)[1] == pytest.approx(plan.time, rel=1e-5)


def test_a_chain_gains_nothing() -> None:
    grid = make_grid(CHAIN)
    placed, serial = time_steps(grid, 0), time_steps(grid, 1)
    assert placed[1] == pytest.approx(serial[0], rel=1e-12)


def test_groups_divide_a_node() -> None:
    workload = make_grid().workload(0, 0, 0)
    assert workload is not None
    assert workload.placed.sizes == (2, 4)
    assert np.isnan(time_steps(make_grid(), 0)[2])


def test_what_a_store_has_is_not_searched_again() -> None:
    grid = make_grid()
    again = Grid.from_definition(grid.definition())
    assert time_steps(again, 0).tolist() == pytest.approx(time_steps(grid, 0).tolist(), nan_ok=True)
    known: Any = again.workload(0, 0, 0)
    assert known.placed.groups.keys() == {(2, 1), (4, 1)}


def test_a_store_has_groups_of_all_segments_that_are_asked_for() -> None:
    grid = make_segments("placement:segments=best", "placement:segments=3", batch=[4])
    known: Any = Grid.from_definition(grid.definition()).workload(0, 0, 0)
    assert {segments for _, segments in known.placed.groups} == {1, 2, 3, 4}
    assert known.placed.groups == {at: ask_group(grid, *at) for at in known.placed.groups}


def test_a_store_has_no_groups_of_other_sizes() -> None:
    grid = make_segments("data+placement:group=2", "data+placement:group=4,segments=2")
    known: Any = Grid.from_definition(grid.definition()).workload(0, 0, 0)
    assert known.placed.groups.keys() == {(2, 1), (4, 1), (4, 2)}


def make_segments(*strategies: str, model: dict[str, Any] = CHAIN, batch: Any = BATCH) -> Grid:
    """Build a chain's placements in segments, on one PE and on two."""
    axes = {
        "model": [model],
        "dataset": ["cifar10"],
        "system": ["abci:precision=fp32"],
        "strategy": strategies,
        "pe": [1, 2],
        "batch": batch,
    }
    return make_grid(axes=axes)


def ask_group(grid: Grid, devices: int, segments: int) -> Any:
    workload = grid.workload(0, 0, 0)
    assert workload is not None
    return workload.placed.find(devices, segments)


def answer_cells(grid: Grid, strategy: int) -> Any:
    case = grid.case((0, 0, 0, strategy))
    assert case is not None
    return answer_case(case)


@pytest.mark.parametrize("segments", [2, 3, 8])
@pytest.mark.parametrize("model", [CHAIN, TWINS])
def test_a_step_in_segments_takes_as_long_as_its_schedule(
    model: dict[str, Any], segments: int
) -> None:
    """The kernels' sum along the path equals the schedule of all segments."""
    batch = segments * BATCH
    grid = make_segments(f"placement:segments={segments}", model=model, batch=[batch])
    workload = grid.workload(0, 0, 0)
    assert workload is not None
    groups: Any = workload.placed
    problem = pose_problem(
        unroll_graph([groups.graph] * segments), link_devices(workload.system, 2)
    )
    device = groups.find(2, segments).device
    plan = plan_placement(problem, device * segments, segments)
    terms = answer_cells(grid, 0).terms
    epoch = terms.forward_backward + terms.pass_overhead + terms.point_to_point
    seconds = np.broadcast_to(np.asarray(epoch) / (50_000 / batch), (2, 1))[:, 0]
    assert seconds[1] == pytest.approx(plan.time, rel=1e-5)


def test_segments_fill_a_chains_devices() -> None:
    even = CHAIN | {"name": "even", "layers": [*[BRANCH] * 6, "flatten", {"fc": "targets"}]}
    strategies = "placement", "placement:segments=4", "serial"
    grid = make_segments(*strategies, model=even, batch=[4096])
    at_once, cut, serial = (np.asarray(answer_cells(grid, n).compute)[:, 0] for n in range(3))
    assert at_once[1] == pytest.approx(serial[0], rel=0.1)  # of which updates are halved
    assert 1.2 < serial[0] / cut[1] < 2


def test_one_segment_is_the_step_at_once_to_the_last_bit() -> None:
    grid = make_segments("placement", "placement:segments=1", model=TWINS, batch=[1, 32, 96])
    at_once, cut = (answer_cells(grid, n) for n in range(2))
    for one, other in zip(tree_leaves(at_once), tree_leaves(cut), strict=True):
        np.testing.assert_array_equal(one, other)


def test_one_pe_is_not_cut() -> None:
    grid = make_segments("placement:segments=8", "serial", batch=[2, 64])
    cut, serial = (answer_cells(grid, n) for n in range(2))
    for name in ("compute", "communication", "memory", "limit"):
        one, other = (np.broadcast_to(getattr(value, name), (2, 2))[0] for value in (cut, serial))
        np.testing.assert_array_equal(one, other)


def test_a_segment_has_a_sample_at_least_and_all_as_many() -> None:
    grid = make_segments("placement:segments=8", batch=[4, 12, 16])
    flags = np.broadcast_to(answer_cells(grid, 0).limit, (2, 3))[1]
    assert [Limit.BATCH_TOO_SMALL & int(flag) > 0 for flag in flags] == [True, False, False]
    assert [Limit.UNEVEN & int(flag) > 0 for flag in flags] == [True, True, False]


def test_the_best_number_of_segments_is_as_fast_as_any() -> None:
    numbers = (1, 2, 4, 8, 16)
    fixed = [f"placement:segments={number}" for number in numbers]
    grid = make_segments("placement:segments=best", *fixed, batch=[64])
    best, *others = (answer_cells(grid, n) for n in range(6))
    times = [float(np.asarray(other.epoch_time)[1, 0]) for other in others]
    assert float(np.asarray(best.epoch_time)[1, 0]) == min(times)
    assert numbers[times.index(min(times))] == np.broadcast_to(best.segments, (2, 1))[1, 0]


def test_memory_holds_all_segments() -> None:
    """With a chain in two stages, kept tensors stay, and gradients are those of one segment."""
    grid = make_segments("placement:segments=2", "placement:segments=16", batch=[4096])
    few, many = (np.broadcast_to(answer_cells(grid, n).memory, (2, 1))[1, 0] for n in range(2))
    assert 0.5 * few < many < few


def test_more_segments_than_are_searched_are_refused() -> None:
    with pytest.raises(InputError, match="segments: expected at most 16, got 17"):
        make_segments("placement:segments=17")


def test_placements_of_other_layers_are_refused() -> None:
    definition: Any = make_grid().definition()
    definition["axes"]["model"] = [CHAIN | {"name": "twins"}]
    grid = Grid.from_definition(definition)
    with pytest.raises(InputError, match="placements: twins: expected devices of 4 layers, got 9"):
        grid.workload(0, 0, 0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"oracle": "paper", "parameters": {}}, "no strategy of Table III"),
        ({"recompute": "full"}, "recompute: none"),
    ],
)
def test_what_knows_no_placed_groups(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        make_grid(**change)


@pytest.mark.parametrize(
    "change",
    [
        {"device": [0, 4]},  # beyond the largest group
        {"forward": [True]},  # of another length
        {"items": -1.0},
    ],
)
def test_hostile_placements(change: dict[str, Any]) -> None:
    group: dict[str, Any] = {
        "device": [0, 1],
        "forward": [True, False],
        "backward": [True, True],
        "messages": 2.0,
        "items": 5.0,
    }
    entry = {"model": "m", "dataset": "d", "system": "s", "groups": {2: group | change}}
    with pytest.raises(InputError, match=r"placements\.0"):
        make_grid(placements=[entry])
