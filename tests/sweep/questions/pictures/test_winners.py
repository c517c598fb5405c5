"""The map's winners are the least times of the cube, cell by cell."""

from typing import Any

import numpy as np
import pytest

from grids.reading.errors import InputError
from sweep.errors import NothingFeasibleError
from sweep.questions.pictures.winners import (
    A_DOUBLING,
    NOBODY,
    _choose_columns,
    describe_map,
    find_changes,
)

ALEXNET: dict[str, Any] = {"model": "alexnet"}


@pytest.mark.parametrize(
    ("fixed", "axis"),
    [({"inter_bandwidth": "1 GB/s"}, "batch"), ({"batch": 64}, "inter_bandwidth")],
)
def test_winners_are_the_fastest_feasible(fixed, axis, mixed):
    shown = describe_map(mixed, ALEXNET | fixed)
    assert shown.axis == axis
    cells = mixed.sel(model="alexnet", dataset="imagenet-226", system="abci").load()
    other = {"inter_bandwidth": 1e9} if axis == "batch" else {"batch": 64}
    times = cells.paradl.epoch_time.where(cells.paradl.feasible).sel(other)
    for row, value in enumerate(shown.values):
        for column, pe in enumerate(shown.pe):
            candidates = times.sel({axis: value, "pe": pe})
            least = {
                name: float(candidates.sel(strategy=name))
                for name in shown.strategies
                if np.isfinite(candidates.sel(strategy=name))
            }
            winner = shown.winners[row, column]
            expected = min(least, key=least.__getitem__) if least else None
            assert (None if winner == NOBODY else shown.strategies[winner]) == expected


def test_an_axis_may_be_chosen(mixed):
    shown = describe_map(mixed, ALEXNET | {"batch": 8}, over="inter_bandwidth")
    assert shown.axis == "inter_bandwidth"
    with pytest.raises(InputError, match=r"^selection: .*inter_bandwidth"):
        describe_map(mixed, ALEXNET, over="batch")
    with pytest.raises(InputError, match="'batch'"):
        describe_map(mixed, ALEXNET, over="bath")


@pytest.mark.parametrize("fixed", [{"pe": 4}, {"batch": 8, "inter_bandwidth": "1 GB/s"}])
def test_a_map_has_two_axes(fixed, mixed):
    with pytest.raises(InputError, match="a map has several PE counts"):
        describe_map(mixed, ALEXNET | fixed)


def test_where_nothing_is_feasible_nobody_wins(mixed):
    fixed = {"inter_bandwidth": "1 GB/s", "strategy": "serial"}
    shown = describe_map(mixed, ALEXNET | fixed)
    assert (shown.winners[:, shown.pe > 1] == NOBODY).all()
    with pytest.raises(NothingFeasibleError):
        describe_map(mixed, ALEXNET | fixed | {"pe": [8, 12]})


def test_of_many_counts_those_with_the_most_candidates_are_shown():
    pe = np.arange(1.0, 1025)
    hybrid = (pe % 4 == 0).astype(int)
    chosen = pe[_choose_columns(pe, hybrid)]
    assert (chosen[chosen >= 8] % 4 == 0).all()
    assert len(chosen) <= A_DOUBLING * 10 + 1
    assert {1, 8, 16, 1024} <= {*chosen}


def test_of_few_counts_all_are_shown():
    assert _choose_columns(np.array([1.0, 3.0, 7.0]), np.zeros(3, int)) == [0, 1, 2]


def test_changes_are_where_the_times_are_equal():
    # T = 8/p and T = p^2/64 meet at p = 8; the third is nowhere allowed.
    pe = np.array([1.0, 2.0, 5.0, 12.0, 30.0])
    times = np.stack([8 / pe, pe**2 / 64, np.full(5, np.inf)])[:, None]
    winners = times.argmin(axis=0)
    changes = find_changes(times, winners, pe)
    assert changes[0, 2] == pytest.approx(8)
    assert np.isnan(changes[0, [0, 1, 3]]).all()
    times[1, 0, 2] = np.inf
    assert np.isnan(find_changes(times, winners, pe)).all()


def test_borders_lie_between_cells_whose_winners_differ(mixed):
    shown = describe_map(mixed, ALEXNET | {"inter_bandwidth": "1 GB/s"})
    places = ((shown.across, shown.pe, shown.winners), (shown.up.T, shown.values, shown.winners.T))
    told = 0
    for changes, values, winners in places:
        for row, column in np.argwhere(~np.isnan(changes)):
            assert winners[row, column] != winners[row, column + 1]
            assert values[column] <= changes[row, column] <= values[column + 1]
            told += 1
    assert told
