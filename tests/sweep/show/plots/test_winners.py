from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from sweep.questions.pictures.winners import NOBODY, Map
from sweep.show.plots.colours import choose_looks
from sweep.show.plots.winners import INFEASIBLE, draw_map

# What figures are made of is typed too widely to be asked about.
draw: Any = draw_map

KNOWN = ("serial", "data", "data+filter", "data+spatial")


def make_map(axis="batch") -> Map:
    winners = np.full((5, 8), 1)
    winners[:, 0] = 0
    winners[3:, 2:] = 3
    winners[4, :4] = NOBODY
    values = np.exp2(np.arange(5.0)) * (1.0 if axis == "batch" else 1e9)
    place = "resnet50, imagenet on abci"
    pe = np.exp2(np.arange(8.0))
    across, up = np.full((5, 7), np.nan), np.full((4, 8), np.nan)
    across[:, 0] = 1.25
    return Map(place, axis, pe, values, KNOWN, winners, 8, KNOWN, across, up)


@pytest.mark.parametrize("size", ["paper", "page", "slide"])
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
    assert any("larger than the data set" in text for text in texts)
    assert not any("larger than the data set" in text for text in expect_legible(draw(plain)))


def test_colours_are_the_strategies():
    (filled, _) = draw(make_map()).axes[0].collections
    looks, shown = choose_looks(KNOWN), make_map()
    drawn = [
        (path, "#" + "".join(f"{round(255 * part):02X}" for part in colour[:3]))
        for path, colour in zip(filled.get_paths(), filled.get_facecolors(), strict=True)
    ]
    for (row, column), winner in np.ndenumerate(shown.winners):
        # A little beside the centre, in which several polygons meet.
        point = (shown.pe[column] * 1.02, shown.values[row] * 1.03)
        colours = {colour for path, colour in drawn if path.contains_point(point)}
        assert colours == (set() if winner == NOBODY else {looks[KNOWN[winner]].colour})


def test_crossovers_are_drawn_where_they_are():
    (_, borders) = draw(make_map()).axes[0].collections
    ends = np.concatenate(borders.get_segments())
    # Between serial and data a crossover is known, between data and spatial half of the way.
    low = ends[ends[:, 1] < 4]
    assert low[:, 0] == pytest.approx(1.25)
    assert any(end == pytest.approx([8, 2**2.5]) for end in ends)


def test_a_region_without_room_has_its_name_in_the_key_alone(expect_legible):
    shown = make_map()
    shown.winners[2, 4] = 2
    texts = expect_legible(draw(shown, "paper"))
    assert texts.count("data+filter") == 1


def test_that_counts_are_left_out_is_told(expect_legible):
    shown = make_map()
    thinned = Map(**{**vars(shown), "counts": 1024})
    assert any("8 of 1,024 PE counts" in text for text in expect_legible(draw(thinned)))
