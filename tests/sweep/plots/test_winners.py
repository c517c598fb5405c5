"""The map's winners are the least times of the cube, cell by cell."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.patches import Rectangle

import paradl
from paradl.grids.reading.errors import InputError
from paradl.sweep.engine.run import read_grid
from paradl.sweep.errors import NothingFeasibleError
from paradl.sweep.plots.looks import choose_looks
from paradl.sweep.plots.winners import INFEASIBLE, NOBODY, Map, describe_map, draw_map

ALEXNET: dict[str, Any] = {"model": "alexnet"}


@pytest.mark.parametrize(
    ("fixed", "axis"),
    [({"inter_bandwidth": "1 GB/s"}, "batch"), ({"batch": 64}, "inter_bandwidth")],
)
def test_winners_are_the_fastest_feasible(fixed, axis, mixed):
    shown = describe_map(mixed, ALEXNET | fixed)
    assert shown.y == axis
    cells = mixed.sel(model="alexnet", dataset="imagenet-226", system="abci")
    other = {"inter_bandwidth": 1e9} if axis == "batch" else {"batch": 64}
    times = cells.paradl.epoch_time.where(cells.paradl.feasible).sel(other)
    for row, value in enumerate(shown.rows):
        for column, pe in enumerate(shown.columns):
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
    assert shown.y == "inter_bandwidth"
    with pytest.raises(InputError, match=r"^selection: .*inter_bandwidth"):
        describe_map(mixed, ALEXNET, over="batch")
    with pytest.raises(InputError, match="'batch'"):
        describe_map(mixed, ALEXNET, over="bath")
    with pytest.raises(InputError, match=r"^over: .*'strategy'"):
        describe_map(mixed, ALEXNET, over="strategy")


def test_a_map_of_one_pe_count_has_the_other_axes(mixed):
    shown = describe_map(mixed, ALEXNET | {"pe": 4})
    assert (shown.x, shown.y) == ("batch", "inter_bandwidth")
    turned = describe_map(mixed, ALEXNET | {"pe": 4}, over="batch")
    assert (turned.x, turned.y) == ("inter_bandwidth", "batch")
    np.testing.assert_array_equal(turned.times, shown.times.swapaxes(1, 2))


@pytest.mark.parametrize(
    "fixed", [{"pe": 4, "batch": 8}, {"batch": 8, "inter_bandwidth": "1 GB/s"}]
)
def test_a_map_has_two_axes(fixed, mixed):
    with pytest.raises(InputError, match=r"^selection: "):
        describe_map(mixed, ALEXNET | fixed)


def test_where_nothing_is_feasible_nobody_wins(mixed):
    fixed = {"inter_bandwidth": "1 GB/s", "strategy": "serial"}
    shown = describe_map(mixed, ALEXNET | fixed)
    assert (shown.winners[:, shown.columns > 1] == NOBODY).all()
    with pytest.raises(NothingFeasibleError):
        describe_map(mixed, ALEXNET | fixed | {"pe": [8, 12]})


def test_of_many_counts_powers_of_two_are_shown():
    axes: Any = {"model": "alexnet", "dataset": "imagenet", "system": "abci", "strategy": "data"}
    axes |= {"pe": {"range": [1, 100]}, "batch": [8, 16]}
    shown = describe_map(read_grid({"oracle": "paper", "axes": axes}))
    assert shown.columns.tolist() == [1, 2, 4, 8, 16, 32, 64]
    assert "7 of 100 values of p" in shown.note


def test_layouts_are_written_into_their_cells(layouts, expect_legible):
    shown = describe_map(layouts)
    assert (shown.x, shown.y) == ("pe", "batch")
    fastest = paradl.best(layouts, {"pe": 64, "batch": 128}).iloc[0]
    assert shown.times[0, 0, 0] == pytest.approx(fastest["epoch_time"], rel=1e-6)
    assert f"tp{fastest['tensor']}" in shown.words[0, 0]
    for size in ("paper", "slide"):
        texts = expect_legible(draw(shown, size))
        written = [" ".join(text.split()) for text in texts]
        assert {*shown.words.flat} <= {*written, ""}


def test_parameters_of_the_machine_are_given_and_batches_are_chosen(mixed):
    shown = describe_map(mixed, ALEXNET | {"pe": [1, 12]}, over="inter_bandwidth")
    part = mixed.sel(model="alexnet")
    for row, value in enumerate(mixed["inter_bandwidth"].values):
        for column, pe in enumerate(shown.columns):
            first = paradl.best(part, {"inter_bandwidth": value, "pe": int(pe)}).iloc[0]
            winner = shown.winners[row, column]
            assert winner == NOBODY or shown.strategies[winner] == first["strategy"]
            assert (winner == NOBODY) == (not first["feasible"])
    note = draw(shown).get_supxlabel()
    assert "each bandwidth between nodes" in note
    assert "best batch" in note
    assert {text.split(" = ")[0] for text in shown.words.flat} <= {"b", ""}
    with pytest.raises(InputError, match="inter_bandwidth"):
        describe_map(mixed, ALEXNET, over="batch")


# What figures are made of is typed too widely to be asked about.
draw: Any = draw_map

KNOWN = ("serial", "data", "data+filter", "data+spatial")


def make_map(axis="batch", unit="samples per replica, b") -> Map:
    """Winners in blocks."""
    winners = np.full((5, 8), 1)
    winners[:, 0] = 0
    winners[3:, 2:] = 3
    winners[4, :4] = NOBODY
    times = np.where(winners == np.arange(4)[:, None, None], 1.0, 2.0)
    times[:, winners == NOBODY] = np.inf
    values = np.exp2(np.arange(5.0)) * (1.0 if axis == "batch" else 1e9)
    nothing = np.zeros(winners.shape, bool)
    return Map(
        title="resnet50, imagenet on abci",
        x="pe",
        y=axis,
        columns=np.exp2(np.arange(8.0)),
        rows=values,
        labels=("PEs, p", unit),
        strategies=KNOWN,
        times=times,
        words=np.full(winners.shape, ""),
        known=KNOWN,
        beyond=nothing,
    )


@pytest.mark.parametrize(("axis", "size"), [("batch", "slide"), ("inter_bandwidth", "paper")])
def test_texts_are_legible(axis, size, expect_legible):
    texts = expect_legible(draw(make_map(axis), size))
    assert texts.count("data") == 1
    assert "data+filter" not in texts  # which wins nowhere
    assert INFEASIBLE in texts
    assert not any("global batch larger" in text for text in texts)
    assert ("16 GB/s" in texts) == (axis == "inter_bandwidth")


def test_global_batches_beyond_the_data_set_are_marked(expect_legible):
    plain = make_map()
    beyond = np.zeros(plain.winners.shape, bool)
    beyond[4, 6:] = True
    texts = expect_legible(draw(replace(plain, beyond=beyond)))
    assert any("global batch larger" in text for text in texts)


def test_tiles_are_the_winners_in_the_colours_of_all_pictures():
    shown, looks = make_map(), choose_looks(KNOWN)
    tiles = {
        (round(tile.get_y() + 0.5), round(tile.get_x() + 0.5)): to_hex(tile.get_facecolor())
        for tile in draw_map(shown).axes[0].patches
        if isinstance(tile, Rectangle)
    }
    assert tiles == {
        cell: looks[KNOWN[winner]].colour.lower()
        for cell, winner in np.ndenumerate(shown.winners)
        if winner != NOBODY
    }


def test_words_without_room_are_left_out(expect_legible):
    shown = make_map()
    words = np.where(shown.winners == NOBODY, "", "a choice of many words")
    assert "a choice" not in " ".join(expect_legible(draw(replace(shown, words=words), "paper")))


def test_a_choice_of_all_winners_stands_in_the_note(mixed):
    shown = describe_map(mixed, ALEXNET | {"strategy": "data", "pe": [4, 8]}, "inter_bandwidth")
    assert {*shown.words.flat} == {""}
    assert "everywhere b = " in shown.note
