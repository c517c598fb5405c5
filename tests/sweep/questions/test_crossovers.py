"""Crossovers against every cell along the way, and on both sides of a root."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from open_answers import list_crossovers

import paradl
from paradl.grids.design_space import SpaceValues, make_grid
from paradl.grids.inputs.draws import DRAWS
from paradl.grids.reading.errors import InputError
from paradl.sweep.boundaries.curves import is_ahead
from paradl.sweep.uncertainty.draws import draw_both_times

PAPER = {"oracle": "paper"}
MACHINE = ("data", "data+filter:group=4", "data+pipeline:group=4")
STRATEGIES = ("data", "pipeline:segments=4", "data+filter:group=4")


def read_grid(pe, batch):
    strategy = ",".join(STRATEGIES)
    options = SpaceValues(
        "alexnet", pe, batch, "imagenet", "abci", strategy=strategy, settings=PAPER
    )
    return make_grid(options)


def list_changes(values, ours, theirs):
    """Where one time falls below another, by a loop over the values that both have."""
    both = [
        (value, a < b)
        for value, a, b in zip(values, ours, theirs, strict=True)
        if np.isfinite(a) and np.isfinite(b)
    ]
    return [value for (_, before), (value, after) in pairwise(both) if after and not before]


@pytest.mark.parametrize(("along", "axes"), [("pe", ("1..40", "8")), ("batch", ("8", "1..40"))])
def test_counts_against_every_cell(along, axes):
    pe, batch = axes
    grid = read_grid(pe=pe, batch=batch)
    cells = paradl.compute_space(
        "alexnet",
        dataset="imagenet",
        system="abci",
        strategy=list(STRATEGIES),
        pe=pe,
        batch=batch,
        settings=PAPER,
    )
    times = cells.paradl.epoch_time.where(cells.paradl.feasible).squeeze()
    rows = list_crossovers(grid, along)
    assert len(rows) == 6
    for row in rows:
        ours, theirs = (times.sel(strategy=row[key]).values for key in ("strategy", "over"))
        assert row["at"] == list_changes(cells[along].values.tolist(), ours, theirs)
        assert (row["first"] is None) == (row["reason"] is not None) == (not row["at"])
    assert any(row["at"] for row in rows)


def test_a_difference_of_rounding_is_no_lead():
    """Times that are equal in theory are summed in other orders."""
    time, other = np.array([0.1 + 0.2 + 0.3, 1.0, np.nan]), np.array([0.3 + 0.2 + 0.1, 1.1, 1.0])
    assert time[0] != other[0]
    assert is_ahead(time, other).tolist() == [False, True, False]
    assert is_ahead(other, time).tolist() == [False, False, False]


@pytest.fixture(scope="module")
def roots():
    return list_crossovers(read_grid(pe=8, batch=8), "inter_bandwidth")


def find_ratio(row, bandwidth):
    """The time of a row's strategy over the other's."""
    times = [
        paradl.predict(
            "alexnet",
            row[key],
            8,
            8,
            dataset="imagenet",
            system="abci",
            parameters={"inter_bandwidth": f"{bandwidth!r} B/s"},
            settings=PAPER,
        )["epoch_time"]
        for key in ("strategy", "over")
    ]
    return times[0] / times[1]


def test_roots_are_found_on_the_kernels(roots):
    result = [(row, at) for row in roots for at in row["at"]]
    assert result
    for row, at in result:
        assert find_ratio(row, at * (1 + 1e-6)) < 1 < find_ratio(row, at * (1 - 1e-6))


def test_never_has_a_reason(roots):
    for row in roots:
        if row["reason"] == "faster throughout":
            assert find_ratio(row, 12.5e9) < 1
        elif row["reason"] is not None and row["reason"].startswith("never"):
            assert find_ratio(row, 12.5e9) > 1


def test_what_is_nowhere_feasible_says_why():
    rows = list_crossovers(read_grid(pe="2..3", batch=8))
    hybrid = next(row for row in rows if row["strategy"] == "data+filter:group=4")
    assert "group_does_not_divide" in hybrid["reason"]


def test_strategies_are_equal_on_one_pe():
    query = SpaceValues(
        "alexnet", "1..3", 8, "imagenet", "abci", strategy="data,filter", settings=PAPER
    )
    rows = list_crossovers(make_grid(query))
    slower = next(row for row in rows if row["first"] is None)
    assert slower["reason"] == "never: at best equal, at 1 PE"


def test_what_nothing_crosses_along(mixed):
    with pytest.raises(InputError, match=r"^along: .*'inter_bandwith'.*'inter_bandwidth'"):
        list_crossovers(mixed, "inter_bandwith")
    with pytest.raises(InputError, match=r"^along: .*'group'"):
        list_crossovers(mixed, "group")


def test_a_slice_of_a_cube(mixed):
    part = mixed.sel(model="alexnet", dataset="imagenet-226", batch=8, inter_bandwidth=1e9)
    rows = paradl.crossovers(part)
    assert set(rows["strategy"]) == set(part.strategy.values)
    assert len(rows) == 6 * 5


def test_ranges_are_those_of_the_draws():
    grid = make_grid(
        SpaceValues("alexnet", "2,64", 8, "imagenet", "abci", strategy=",".join(MACHINE))
    )
    grid = grid.ask_intervals()
    rows = list_crossovers(grid, "pe")
    values = np.arange(2.0, 65.0)
    drawn = {}
    for number, name in enumerate(grid.labels["strategy"]):
        axes = {"pe": values, "batch": np.array([8.0])}
        case = grid.case((0, 0, 0, number), axes)
        assert case is not None
        drawn[name] = [draw.squeeze(1) for draw in draw_both_times(case)]
    assert any(row["first_p10"] for row in rows)
    for row in rows:
        ours, theirs = drawn[row["strategy"]][0], drawn[row["over"]][1]
        first, crossed = [], 0
        for n in range(DRAWS):
            at = list_changes(values, ours[:, n], theirs[:, n])
            both = np.isfinite(ours[:, n]) & np.isfinite(theirs[:, n])
            throughout = (ours[both, n] < theirs[both, n]).all()
            first.append(at[0] if at else values[both][0] if throughout else np.inf)
            crossed += bool(at)
        low, high = (sorted(first)[int(np.ceil(share * DRAWS)) - 1] for share in (0.1, 0.9))
        assert row["first_p10"] == (low if np.isfinite(low) else None)
        assert row["first_p90"] == (high if np.isfinite(high) else None)
        assert row["crosses_probability"] == crossed / DRAWS


def test_roots_of_draws_lie_about_that_of_the_middle():
    names = "data+filter:group=4,data+pipeline:group=4"
    grid = make_grid(SpaceValues("alexnet", 64, 8, "imagenet", "abci", strategy=names))
    row = next(row for row in list_crossovers(grid, "inter_bandwidth") if row["at"])
    assert row["first_p10"] < row["first"] < row["first_p90"]
    assert 0.25 < row["crosses_probability"] <= 1


def test_the_time_to_the_target_counts_epochs():
    law = {"name": "a", "model": "alexnet", "dataset": "imagenet", "target": "top1>=0.57"} | {
        "epochs_min": 60,
        "critical_batch": 40,
    }
    names, settings = "data,data+filter:group=4", {**PAPER, "convergence": [law]}
    grid = make_grid(
        SpaceValues("alexnet", "8", "1..600", "imagenet", "abci", strategy=names, settings=settings)
    )
    rows = list_crossovers(grid, "batch", objective="train_time")
    cells = {
        name: paradl.compute_space(
            "alexnet",
            dataset="imagenet",
            system="abci",
            strategy=name,
            pe=8,
            batch="1..600",
            settings=settings,
        )
        for name in names.split(",")
    }
    times = {}
    for name, cube in cells.items():
        samples = cube.paradl.global_batch.values.ravel()
        seconds = cube.paradl.epoch_time.where(cube.paradl.feasible).values.ravel()
        times[name] = seconds * 60 * (1 + samples / 40)
    for row in rows:
        expected = list_changes(range(1, 601), times[row["strategy"]], times[row["over"]])
        assert row["at"] == expected
    by_epoch = list_crossovers(grid, "batch")
    assert [row["at"] for row in rows] != [row["at"] for row in by_epoch]


def test_unknown_objectives_are_refused():
    grid = read_grid(pe="1..4", batch=8)
    with pytest.raises(InputError, match="convergence: auto"):
        list_crossovers(grid, objective="train_time")
    wrong: Any = "cost"
    with pytest.raises(InputError, match=r"^objective: "):
        list_crossovers(grid, objective=wrong)


def test_one_strategy_is_refused():
    grid = make_grid(
        SpaceValues("alexnet", 4, 8, "imagenet", "abci", strategy="data", settings=PAPER)
    )
    with pytest.raises(InputError, match=r"^strategy: "):
        list_crossovers(grid)
