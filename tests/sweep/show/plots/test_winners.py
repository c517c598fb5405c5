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
    return Map(place, axis, np.exp2(np.arange(8.0)), values, KNOWN, winners, 8, KNOWN)


@pytest.mark.parametrize("size", ["paper", "page", "slide"])
@pytest.mark.parametrize("axis", ["batch", "inter_bandwidth"])
def test_texts_are_legible(axis, size, expect_legible):
    texts = expect_legible(draw(make_map(axis), size))
    assert texts.count("data") == 2  # in its region, and in the key
    assert "data+filter" not in texts  # which wins nowhere
    assert INFEASIBLE in texts
    assert ("16 GB/s" in texts) == (axis == "inter_bandwidth")


def test_colours_are_the_strategies():
    (mesh, _) = draw(make_map()).axes[0].collections
    looks = choose_looks(KNOWN)
    assert mesh.get_array().shape == (5, 8)
    assert mesh.get_array().mask.sum() == (make_map().winners == NOBODY).sum()
    for winner, name in enumerate(KNOWN):
        red, green, blue, _ = (round(255 * part) for part in mesh.cmap(mesh.norm(winner)))
        assert f"#{red:02X}{green:02X}{blue:02X}" == looks[name].colour


def test_crossovers_are_drawn_between_cells():
    (_, borders) = draw(make_map()).axes[0].collections
    segments = np.array(borders.get_segments())
    winners = make_map().winners
    changes = (winners[:, 1:] != winners[:, :-1]).sum() + (winners[1:] != winners[:-1]).sum()
    assert len(segments) == changes
    # Between 1 and 2 PEs, in the middle of the logarithms.
    assert any((segment[:, 0] == pytest.approx(np.sqrt(2))) for segment in segments[:, :, :1])


def test_a_region_without_room_has_its_name_in_the_key_alone(expect_legible):
    shown = make_map()
    shown.winners[2, 4] = 2
    texts = expect_legible(draw(shown, "paper"))
    assert texts.count("data+filter") == 1


def test_that_counts_are_left_out_is_told(expect_legible):
    shown = make_map()
    thinned = Map(**{**vars(shown), "counts": 1024})
    assert any("of 1,024 PE counts, 8" in text for text in expect_legible(draw(thinned)))
