"""Crossovers against every cell along the way, and on both sides of a root."""

from itertools import pairwise

import numpy as np
import pytest

import sweep
from grids.reading.errors import InputError
from sweep.questions.adhoc import Options, make_grid
from sweep.questions.crossovers import list_crossovers

PAPER = {"oracle": "paper"}
STRATEGIES = ("data", "pipeline:segments=4", "data+filter:group=4")


def read_grid(pe, batch):
    strategy = ",".join(STRATEGIES)
    options = Options("alexnet", pe, batch, "imagenet", strategy=strategy, settings=PAPER)
    return make_grid(options)


def list_changes(values, ours, theirs):
    """Where one time falls below another, by a loop over the values that both have."""
    both = [
        (value, a < b)
        for value, a, b in zip(values, ours, theirs, strict=True)
        if np.isfinite(a) and np.isfinite(b)
    ]
    return [value for (_, before), (value, after) in pairwise(both) if after and not before]


@pytest.mark.parametrize(("along", "axes"), [("pe", ("1..40", "8")), ("batch", ("16", "1..40"))])
def test_counts_against_every_cell(along, axes):
    pe, batch = axes
    grid = read_grid(pe=pe, batch=batch)
    cells = sweep.compute_space(
        "alexnet", dataset="imagenet", strategy=list(STRATEGIES), pe=pe, batch=batch, settings=PAPER
    )
    times = cells.paradl.epoch_time.where(cells.paradl.feasible).squeeze()
    rows = list_crossovers(grid, along)
    assert len(rows) == 6
    for row in rows:
        ours, theirs = (times.sel(strategy=row[key]).values for key in ("strategy", "over"))
        assert row["at"] == list_changes(cells[along].values.tolist(), ours, theirs)
        assert (row["first"] is None) == (row["reason"] is not None) == (not row["at"])
    assert any(row["at"] for row in rows)


@pytest.fixture(scope="module")
def roots():
    return list_crossovers(read_grid(pe=8, batch=8), "inter_bandwidth")


def find_ratio(row, bandwidth):
    """The time of a row's strategy over the other's."""
    times = [
        sweep.predict(
            "alexnet",
            row[key],
            8,
            8,
            dataset="imagenet",
            parameters={"inter_bandwidth": f"{bandwidth!r} B/s"},
            settings=PAPER,
        )["epoch_time"]
        for key in ("strategy", "over")
    ]
    return times[0] / times[1]


def test_roots_are_found_on_the_kernels(roots):
    found = [(row, at) for row in roots for at in row["at"]]
    assert found
    for row, at in found:
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
    assert hybrid["reason"] == "never: it is nowhere feasible, group_does_not_divide"


def test_what_nothing_crosses_along(mixed):
    with pytest.raises(InputError, match="unknown parameter 'inter_bandwith'; did you mean"):
        list_crossovers(mixed, "inter_bandwith")
    with pytest.raises(InputError, match="no crossovers are sought along 'group'"):
        list_crossovers(mixed, "group")


def test_a_slice_of_a_cube(mixed):
    part = mixed.sel(model="alexnet", dataset="imagenet-226", batch=8, inter_bandwidth=1e9)
    rows = sweep.crossovers(part)
    assert set(rows["strategy"]) == set(part.strategy.values)
    assert len(rows) == 6 * 5
