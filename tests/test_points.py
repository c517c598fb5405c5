"""Points equal the cells of a grid with the same values, and slopes equal differences.

AlexNet on two machines. Elasticities against central differences in double precision.
"""

from dataclasses import replace
from typing import Any

import jax
import numpy as np
import pytest

from paradl.grids.entries.parameters import CONTINUOUS, DEGREES, LAYOUT_NAMES, PARAMETERS
from paradl.grids.grid import Grid
from paradl.grids.spec import Spec
from paradl.kernels.arrays import use_numpy, xp
from paradl.kernels.compiled import compiled, fetch
from paradl.kernels.configuration.answers import Answer
from paradl.kernels.configuration.case import Points
from paradl.kernels.configuration.places import (
    PLACES,
    read_parameters,
    scale_parameters,
    set_parameters,
)
from paradl.kernels.derivatives.points import evaluate_points, find_slopes, take_points
from paradl.kernels.oracle.answer import answer_case
from paradl.sweep.samples.draw import build_table

pytestmark = pytest.mark.usefixtures("float64")

PES = [1, 4, 8, 64]
TARGETS = ("epoch_time", "compute", "communication", "memory")


def read_grid(strategy: str, oracle: str, system: str = "abci", **axes: Any) -> Grid:
    """AlexNet on some PEs."""
    labels = {"model": "alexnet", "dataset": "imagenet-226", "system": system}
    spec = {
        "oracle": oracle,
        "axes": labels | {"strategy": strategy, "pe": PES, "batch": 16} | axes,
    }
    return Grid.from_spec(Spec.model_validate(spec))


def make_table(grid: Grid, *, layered: bool) -> Points:
    return build_table(grid, (0, 0, 0, 0), grid.axes, layered=layered)


def list_known(oracle: str) -> list[str]:
    return [name for name in PLACES if PARAMETERS[name].oracle in (None, oracle)]


def choose_value(name: str, value: float) -> float:
    """Return another allowed value of the parameter."""
    parameter = PARAMETERS[name]
    if not np.isfinite(value):
        return {"B/s": 7e9, "B": 5e7}.get(parameter.unit, 0.7 if parameter.high == 1 else 3000.0)
    if parameter.whole:
        return value + 1
    other = 0.8 * value if value else 0.3
    return other if other >= parameter.low else 1.3 * value


def test_every_place_is_a_parameter_and_those_without_are_counts() -> None:
    assert set(PLACES) <= set(PARAMETERS)
    apart = {name for name in PARAMETERS if name not in PLACES}
    counts = {"pe", "group", *DEGREES, *LAYOUT_NAMES, "segments", "max_global_batch"}
    assert apart == counts | {"delta", "headroom", "fit_chance"}
    assert set(CONTINUOUS) == set(PLACES)
    layered = {name for name, place in PLACES.items() if place.layered}
    assert layered == {name for name in PLACES if PARAMETERS[name].layered}
    owners = {"pe": "device", "network": "network", "software": "software", "run": "run"}
    assert {name: owners[place.part] for name, place in PLACES.items()} == {
        name: PARAMETERS[name].owner for name in PLACES
    }


@pytest.mark.parametrize("oracle", ["paper", "machine"])
@pytest.mark.parametrize(
    ("system", "strategy"), [("abci", "data"), ("dgx1-v100", "data+spatial:group=4")]
)
def test_a_value_that_is_set_is_the_value_of_an_axis(oracle, system, strategy) -> None:
    """All numbers of the cases are compared, whatever the kernels do with them."""
    plain = make_table(read_grid(strategy, oracle, system), layered=False).case
    before = read_parameters(plain)
    for name in list_known(oracle):
        value = choose_value(name, float(np.ravel(before[name])[0]))
        axis = make_table(read_grid(strategy, oracle, system, **{name: value}), layered=False).case
        with use_numpy():
            changed = set_parameters(plain, {name: np.full(len(PES), value)})
        for part in ("run", "network", "pe", "software"):
            pairs = (jax.tree.leaves(getattr(version, part)) for version in (changed, axis))
            for leaf, expected in zip(*pairs, strict=True):
                one, other = np.broadcast_arrays(leaf, expected)
                np.testing.assert_array_equal(one, other, err_msg=name)


@pytest.mark.parametrize(
    "strategy",
    [
        *("data", "data+filter:group=4", "data+pipeline:group=4,segments=2"),
        "data+pipeline:group=4,segments=8,zero=3,schedule=1f1b",
    ],
)
def test_points_are_the_cells_of_a_grid(strategy) -> None:
    """With and without summing layers anew for each point."""
    peaks = [1e13, 2e13]
    grid = read_grid(strategy, "machine", peak_flops=peaks, inter_latency=[1e-6, 1e-5])
    case = grid.case((0, 0, 0, 0))
    assert case is not None
    cells = answer_case(case)
    for layered in (False, True):
        table = make_table(grid, layered=layered)
        with use_numpy():
            answer = evaluate_points(take_points(table, np.arange(len(PES) * 4), {}))
        for name in TARGETS:
            expected = np.broadcast_to(getattr(cells, name), (len(PES), 1, 2, 2)).ravel()
            np.testing.assert_allclose(getattr(answer, name), expected, rtol=1e-12)
        np.testing.assert_array_equal(
            answer.limit, np.broadcast_to(cells.limit, (len(PES), 1, 2, 2)).ravel()
        )


@pytest.mark.parametrize("layered", [False, True])
@pytest.mark.parametrize("strategy", ["data+filter:group=4", "data+pipeline:group=4"])
def test_several_points_of_a_row_are_points_one_by_one(strategy, layered) -> None:
    table = make_table(read_grid(strategy, "machine", "dgx1-v100"), layered=layered)
    rng = np.random.default_rng(3)
    rows, shape = np.array([[3], [1], [3]]), (3, 5)
    values = {"batch": rng.uniform(8, 128, shape), "inter_bandwidth": rng.uniform(1e9, 1e11, shape)}
    alone = {name: value.ravel() for name, value in values.items()}
    with use_numpy():
        together = evaluate_points(take_points(table, rows, values))
        apart = evaluate_points(take_points(table, np.repeat(rows, 5), alone))
    for name in (*TARGETS, "limit"):
        answers = np.broadcast_to(getattr(together, name), shape).ravel()
        np.testing.assert_allclose(answers, getattr(apart, name), rtol=1e-12, err_msg=name)


# One of each part of a case, since compiling each takes long: run, network, software, and PE, which
# layers depend on. Others: tests/test_machine.py.
INPUTS = ("batch", "inter_bandwidth", "overlap", "peak_flops")
STEP, TOLERANCE = 1e-5, 1e-5
COUNT = 4001


def read(answer: Answer) -> dict[str, Any]:
    return {name: getattr(answer, name) for name in TARGETS[1:]}


@compiled()
def look(points: Points) -> Any:
    """Elasticities of all inputs, and the kinks of communication in one, by a single program."""
    _, slopes, _ = find_slopes(points, read, TARGETS[1:], INPUTS)
    inputs = ("inter_bandwidth",)
    _, _, kinks = find_slopes(points, read, ("communication",), inputs, marked=True)
    return slopes, kinks


@compiled(numpy=True)
def answer(points: Points, factors: dict[str, Any]) -> Any:
    scaled = replace(points, case=scale_parameters(points.case, factors))
    result = evaluate_points(scaled)
    return {name: xp.broadcast_to(getattr(result, name), (COUNT,)) for name in TARGETS[1:]}


@pytest.fixture(scope="module")
def table() -> Points:
    """Of the other ways of dividing: tests/test_machine.py."""
    return make_table(read_grid("data", "machine", "dgx1-v100"), layered=True)


def test_elasticities_are_central_differences(table) -> None:
    rng = np.random.default_rng(5)
    values = {
        "batch": rng.uniform(8, 128, COUNT),
        "inter_bandwidth": 10 ** rng.uniform(9, 11, COUNT),
        "peak_flops": 10 ** rng.uniform(12.5, 14, COUNT),
    }
    with use_numpy():
        points = take_points(table, rng.integers(len(PES), size=COUNT), values)
    slopes, _ = fetch(look(points))
    felt = set()
    ones = dict.fromkeys(INPUTS, 1.0)
    here = fetch(answer(points, ones))
    for name in INPUTS:
        more, less = (fetch(answer(points, ones | {name: np.exp(sign * STEP)})) for sign in (1, -1))
        for target, of_target in slopes.items():
            # Of what is 0 there is no slope, and at a kink are two.
            there = more[target] > 0
            ahead = np.log(more[target][there] / here[target][there]) / STEP
            behind = np.log(here[target][there] / less[target][there]) / STEP
            smooth = np.abs(ahead - behind) < 1e-3
            assert smooth.mean() > 0.5
            there[there] = smooth
            expected = ((ahead + behind) / 2)[smooth]
            np.testing.assert_allclose(
                of_target[name][there], expected, rtol=TOLERANCE, atol=3e-8, err_msg=name
            )
            assert np.isnan(of_target[name][more[target] == 0]).all()
            felt |= {name} if (expected != 0).any() else set()
    assert felt == set(INPUTS)


def test_kinks_are_found_where_slopes_jump(table) -> None:
    """Just hidden communication, 0.5 % beside the kink, and 5 %."""
    wide = 10 ** np.linspace(9, 12, COUNT)
    peak = np.full(COUNT, float(np.ravel(read_parameters(table.case)["peak_flops"])[0]))
    values = {"batch": np.full(COUNT, 16.0), "inter_bandwidth": wide, "peak_flops": peak}
    with use_numpy():
        points = take_points(table, np.full(COUNT, PES.index(64)), values)
    found, kinks = fetch(look(points))
    slopes = found["communication"]["inter_bandwidth"]
    # In steps of 0.17 %, over which smooth slopes hardly change.
    jumps = np.flatnonzero(np.abs(np.diff(slopes)) > 0.02)
    assert jumps.size
    for jump in jumps:
        near = np.abs(np.log(wide / wide[jump])) < 0.005
        assert kinks[near].all()
    away = np.all([np.abs(np.log(wide / wide[jump])) > 0.02 for jump in jumps], axis=0)
    assert kinks[away].mean() < 0.2
