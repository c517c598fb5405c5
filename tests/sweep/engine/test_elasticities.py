"""Elasticities that a sweep stores are central differences of answers to other values.

The other values go the way of an axis, through the whole of both stages; how derivatives are taken
has no part in it.
"""

from typing import Any

import numpy as np
import pytest

import paradl
from paradl.grids.grid import Grid
from paradl.kernels.names.stored import ELASTIC, name_elasticity
from paradl.kernels.oracle.answer import answer_case
from paradl.sweep.cube.creation import create_cube
from paradl.sweep.cube.plan import count_cell_bytes, make_plan
from paradl.sweep.engine.evaluation import evaluate
from paradl.sweep.engine.progress import silent
from paradl.sweep.engine.run import Where, read_grid
from paradl.sweep.engine.run import sweep as execute

# Far from kinks.
VALUES: dict[str, float] = {
    "inter_bandwidth": 9e9,
    "inter_latency": 7e-6,
    "peak_flops": 1.3e13,
}
UNITS = {"inter_bandwidth": "B/s", "inter_latency": "s", "peak_flops": "FLOP/s"}
STEP, TOLERANCE = 1e-5, 1e-6
KNOWN = {target: field for target, field in ELASTIC.items() if target != "train_time"}
# Each way through both stages, in a parameter that it feels; tracing a derivative takes seconds.
# Other strategies: tests/test_points.py, tests/sweep/questions/test_sensitivity.py.
CASES = [
    ("paper", "data+spatial:group=best", "peak_flops"),
    ("paper", "pipeline", "batch"),
    ("machine", "data", "inter_bandwidth"),
]


def make_grid(oracle: str, strategies: list[str], query: tuple[str, ...], **axes: Any) -> Grid:
    """AlexNet on some PEs, the axes' parameters being fixed where they are no axis."""
    labels = {"model": "alexnet", "dataset": "imagenet", "system": "abci"}
    fixed = {name: f"{value!r} {UNITS[name]}" for name, value in VALUES.items()}
    return read_grid(
        {
            "oracle": oracle,
            "axes": labels | {"strategy": strategies, "pe": [1, 4, 16], "batch": [8, 40]} | axes,
            "parameters": {name: value for name, value in fixed.items() if name not in axes},
            "outputs": list(query),
        }
    )


def answer_at(grid: Grid, strategy: int, name: str, factor: float) -> dict[str, Any]:
    """Answers in double precision with one parameter times a factor; 0 has no logarithm."""
    if name == "batch":
        axes = grid.axes | {"batch": grid.axes["batch"] * factor}
        case = grid.case((0, 0, 0, strategy), axes)
    else:
        fixed = dict(grid.spec.parameters)
        spec = grid.spec.model_copy(
            update={"parameters": fixed | {name: fixed[name] * factor}, "outputs": ()}
        )
        case = Grid.from_spec(spec).case((0, 0, 0, strategy))
    assert case is not None
    answer = answer_case(case)
    cells = tuple(map(len, grid.axes.values()))
    fields = {target: np.asarray(getattr(answer, field)) for target, field in KNOWN.items()}
    return {
        target: np.broadcast_to(np.where(field_ > 0, field_, np.nan), cells)
        for target, field_ in fields.items()
    }


@pytest.mark.parametrize(("oracle", "strategy", "parameter"), CASES)
def test_against_central_differences(oracle: str, strategy: str, parameter: str) -> None:
    query = tuple(name_elasticity(target, parameter) for target in KNOWN)
    grid = make_grid(oracle, [strategy], query)
    slopes = evaluate(grid, (0, 0, 0, 0))
    assert slopes is not None
    more, less = (answer_at(grid, 0, parameter, 1 + step) for step in (STEP, -STEP))
    for target in KNOWN:
        expected = np.log(more[target] / less[target]) / np.log((1 + STEP) / (1 - STEP))
        slope = np.broadcast_to(slopes[name_elasticity(target, parameter)], expected.shape)
        np.testing.assert_allclose(slope, expected, atol=TOLERANCE, err_msg=target)
    assert np.nanmax(np.abs(slopes[name_elasticity("epoch_time", parameter)])) > 1e-4


def test_one_pe_sends_nothing_and_what_only_computes_is_as_quick_as_its_pe() -> None:
    """Without waiting for memory, a time of whole layers is an inverse of FLOP/s."""
    options = ("elasticity_epoch_time_peak_flops", "elasticity_epoch_time_inter_bandwidth")
    grid = make_grid(
        "paper",
        ["data"],
        (*options, "elasticity_comm_time_inter_bandwidth"),
        memory_bandwidth=["1 EB/s"],
    )
    result = evaluate(grid, (0, 0, 0, 0))
    assert result is not None
    peak, bandwidth = (np.squeeze(result[name]) for name in options)
    np.testing.assert_allclose(peak[0], -1, atol=1e-4)
    np.testing.assert_array_equal(bandwidth[0], 0)
    assert not np.signbit(bandwidth[0]).any()
    assert (bandwidth[2] < -0.1).all()
    # The logarithm of no time has no slope.
    assert np.isnan(np.squeeze(result["elasticity_comm_time_inter_bandwidth"])[0]).all()


STORED = (
    *("comp_time", "comm_time", "memory", "limit"),
    *("elasticity_epoch_time_inter_bandwidth", "elasticity_comp_time_peak_flops"),
)
BANDWIDTHS = ["1 GB/s", "12.5 GB/s", "1 TB/s"]


STRATEGIES = ["data+filter:group=4"]  # of which no cell has a single PE


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> str:
    """An extended store in blocks of all PE counts of a batch and a bandwidth."""
    url = str(tmp_path_factory.mktemp("elastic") / "cube.zarr")
    few = make_grid("paper", STRATEGIES, STORED, inter_bandwidth=BANDWIDTHS[:2])
    plan = make_plan(few.dims, few.shape, count_cell_bytes(few), alone=2, shard_cells=4)
    create_cube(url, few, plan)
    execute(few, url, False, Where(), silent)
    more = make_grid("paper", STRATEGIES, STORED, inter_bandwidth=BANDWIDTHS)
    execute(more, url, False, Where(), silent, extend=True)
    return url


def test_a_cut_and_extended_cube_holds_what_is_evaluated(stored: str) -> None:
    cube = paradl.open_dataset(stored)
    result = evaluate(cube.paradl.grid, (0, 0, 0, 0))
    assert result is not None
    for name in STORED[4:]:
        here = cube[name].values[0, 0, 0, 0]
        np.testing.assert_array_equal(here, np.broadcast_to(result[name], here.shape))


def test_their_attributes_say_what_they_are(stored: str) -> None:
    cube = paradl.open_dataset(stored)
    slope = cube.paradl.elasticity("inter_bandwidth")
    assert slope.identical(cube["elasticity_epoch_time_inter_bandwidth"])
    assert (slope.dtype, slope.attrs["units"]) == ("float32", "1")
    assert slope.attrs["long_name"] == (
        "elasticity d log y / d log x of the time of an epoch in inter_bandwidth"
    )
    assert np.isnan(slope.sel(pe=1)).all()
