"""Placed groups of a network of two branches, each of which a device can have to itself."""

from typing import Any

import numpy as np
import pytest

from grids.graphs.links import link_devices
from grids.grid import Grid
from grids.inputs.find_placed import BATCH
from grids.placing.problem import pose_problem
from grids.placing.solve import search_plan
from grids.reading.errors import InputError
from grids.spec import validate_spec
from kernels.oracle import answer_case

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
    """Two strategies on PEs of one node, four bytes an item."""
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
    """Seconds a step of computing and of messages, without updates [pe]."""
    case = grid.case((0, 0, 0, strategy))
    assert case is not None
    terms = answer_case(case).terms
    epoch = terms.forward_backward + terms.pass_overhead + terms.point_to_point
    return np.broadcast_to(np.asarray(epoch) / (50_000 / BATCH), (4, 1))[:, 0]


def test_two_branches_run_at_once() -> None:
    """What is before and behind them does not, and one of them is sent there and back."""
    grid = make_grid()
    placed, serial = time_steps(grid, 0), time_steps(grid, 1)
    assert placed[0] == serial[0]
    assert 1.1 < serial[0] / placed[1] < 2


def test_a_step_takes_as_long_as_the_plan_says() -> None:
    """What the kernels add up of the path is the schedule that a search found."""
    grid = make_grid()
    workload = grid.workload(0, 0, 0)
    assert workload is not None
    groups: Any = workload.placed
    plan = search_plan(pose_problem(groups.graph, link_devices(workload.system, 2)))
    assert time_steps(grid, 0)[1] == pytest.approx(plan.time, rel=1e-9)


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
    assert known.placed.groups.keys() == {2, 4}


def test_placements_of_other_layers_are_refused() -> None:
    definition: Any = make_grid().definition()
    definition["axes"]["model"] = [CHAIN | {"name": "twins"}]
    grid = Grid.from_definition(definition)
    with pytest.raises(InputError, match="placements: twins: expected devices of 4 layers, got 9"):
        grid.workload(0, 0, 0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"oracle": "paper", "parameters": {}},
            "no strategy of Table III",
        ),
        ({"recompute": "full"}, "runs no layer twice; write 'recompute: none'"),
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
