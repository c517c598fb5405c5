from typing import Any

import numpy as np
import pytest

from kernels.terms import TERMS
from sweep.questions.pictures.breakdown import SUMMED, Breakdown
from sweep.show.plots.breakdown import LOOKS, MOST_BARS, draw_breakdown

# What figures are made of is typed too widely to be asked about.
draw: Any = draw_breakdown


def make_breakdown(counts: int, terms: int = len(SUMMED), scale: float = 0.01) -> Breakdown:
    pe = np.unique(np.round(np.geomspace(1, 1024, counts)))
    names = SUMMED[:terms]
    seconds = {name: scale * (n + 1) * pe**0.1 for n, name in enumerate(names)}
    seconds["weight_update"] = np.full(len(pe), scale / 1e6)
    return Breakdown("vgg16, imagenet on abci, b = 32", "data+spatial", pe, seconds, "memory")


@pytest.mark.parametrize("size", ["paper", "page", "slide"])
@pytest.mark.parametrize("counts", [1, 11, 200])
@pytest.mark.parametrize("terms", [1, len(SUMMED)])
def test_texts_are_legible(terms, counts, size, expect_legible):
    texts = expect_legible(draw(make_breakdown(counts, terms), size))
    assert "forward backward" in texts
    assert any("memory" in text for text in texts)


def test_every_term_has_a_look():
    assert {*LOOKS} == {*SUMMED}
    assert {*TERMS} - {*LOOKS} == {"hidden_communication"}  # which is no part of the sum


def test_bars_are_stacked():
    breakdown = make_breakdown(4, 3)
    axes = draw(breakdown).axes[0]
    tops: dict[float, float] = {}
    for bar in axes.patches:
        tops[bar.get_x()] = tops.get(bar.get_x(), 0) + bar.get_height()
    expected = breakdown.total - breakdown.terms["weight_update"]
    np.testing.assert_allclose([*tops.values()], 1e3 * expected)
    assert "[ms]" in axes.get_ylabel()


def test_many_counts_are_areas():
    breakdown = make_breakdown(MOST_BARS * 4)
    axes = draw(breakdown).axes[0]
    assert not axes.patches
    assert axes.get_xscale() == "log"
    assert len(axes.collections) == len(SUMMED) - 1
