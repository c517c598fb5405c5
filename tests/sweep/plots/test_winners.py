"""The map's winners are the least times of the cube, cell by cell."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from matplotlib.colors import to_hex

import sweep
from grids.reading.errors import InputError
from sweep.errors import NothingFeasibleError
from sweep.plots.looks import choose_looks
from sweep.plots.regions import NOBODY
from sweep.plots.winners import (
    COLUMNS_PER_DOUBLING,
    INFEASIBLE,
    Map,
    _choose_columns,
    describe_map,
    draw_map,
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
    with pytest.raises(InputError, match=r"^selection: "):
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
    assert len(chosen) <= COLUMNS_PER_DOUBLING * 10 + 1
    assert {1, 8, 16, 1024} <= {*chosen}


def test_of_few_counts_all_are_shown():
    assert _choose_columns(np.array([1.0, 3.0, 7.0]), np.zeros(3, int)) == [0, 1, 2]


def test_parameters_of_the_machine_are_given_and_batches_are_chosen(mixed):
    shown = describe_map(mixed, ALEXNET, over="inter_bandwidth")
    assert (shown.given, shown.chosen) == (True, ("batch",))
    for row, value in enumerate(mixed["inter_bandwidth"].values):
        for column, pe in enumerate(shown.pe):
            asked = ALEXNET | {"inter_bandwidth": value, "pe": int(pe)}
            first = sweep.best(mixed, asked).iloc[0]
            winner = shown.winners[row, column]
            assert winner == NOBODY or shown.strategies[winner] == first["strategy"]
            assert (winner == NOBODY) == (not first["feasible"])
    texts = [text.get_text() for text in draw_map(shown).texts]
    texts.append(draw_map(shown).get_supxlabel())
    assert any("each inter bandwidth" in text for text in texts)
    assert any("best batch" in text for text in texts)
    with pytest.raises(InputError, match="inter_bandwidth"):
        describe_map(mixed, ALEXNET, over="batch")


# What figures are made of is typed too widely to be asked about.
draw: Any = draw_map

KNOWN = ("serial", "data", "data+filter", "data+spatial")


def make_map(axis="batch", extra=None) -> Map:
    """Winners in blocks; extra: a cell that data+filter wins."""
    winners = np.full((5, 8), 1)
    winners[:, 0] = 0
    winners[3:, 2:] = 3
    winners[4, :4] = NOBODY
    if extra:
        winners[extra] = 2
    times = np.where(winners == np.arange(4)[:, None, None], 1.0, 2.0)
    times[:, winners == NOBODY] = np.inf
    values = np.exp2(np.arange(5.0)) * (1.0 if axis == "batch" else 1e9)
    beyond = np.zeros(winners.shape, bool)
    place = "resnet50, imagenet on abci"
    return Map(place, axis, np.exp2(np.arange(8.0)), values, KNOWN, times, 8, KNOWN, beyond)


@pytest.mark.parametrize("size", ["paper", "slide"])
@pytest.mark.parametrize("axis", ["batch", "inter_bandwidth"])
def test_texts_are_legible(axis, size, expect_legible):
    texts = expect_legible(draw(make_map(axis), size))
    assert texts.count("data") == 2  # in its region, and in the key
    assert "data+filter" not in texts  # which wins nowhere
    assert INFEASIBLE in texts
    assert ("16 GB/s" in texts) == (axis == "inter_bandwidth")


def test_global_batches_beyond_the_data_set_are_marked(expect_legible):
    plain = make_map()
    beyond = np.zeros(plain.winners.shape, bool)
    beyond[4, 6:] = True
    texts = expect_legible(draw(replace(plain, beyond=beyond)))
    assert any("global batch larger" in text for text in texts)
    assert not any("global batch larger" in text for text in expect_legible(draw(plain)))


def test_colours_are_the_strategies():
    figure = draw(make_map())
    figure.draw_without_rendering()
    looks, shown = choose_looks(KNOWN), make_map()
    filled = [each for each in figure.axes[0].collections if len(each.get_facecolor())]
    for (row, column), winner in np.ndenumerate(shown.winners):
        point = (shown.pe[column], shown.values[row])
        colours = {
            to_hex(each.get_facecolor()[0]).upper()
            for each in filled
            if any(path.contains_point(point) for path in each.get_paths())
        }
        assert colours == (set() if winner == NOBODY else {looks[KNOWN[winner]].colour})


def test_a_region_without_room_has_its_name_in_the_key_alone(expect_legible):
    texts = expect_legible(draw(make_map(extra=(2, 4)), "paper"))
    assert texts.count("data+filter") == 1


def test_that_counts_are_left_out_is_told(expect_legible):
    shown = make_map()
    thinned = Map(**{**vars(shown), "counts": 1024})
    assert any("8 of 1,024 PE counts shown" in text for text in expect_legible(draw(thinned)))
