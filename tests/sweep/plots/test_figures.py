from typing import Any

import numpy as np
import pytest

from sweep.plots.figures import format_tick, make_axes, scale_counts, use_style


@pytest.mark.parametrize(
    ("counts", "ticks"),
    [
        ((1, 1024), {"1", "1,024"}),
        ((3, 100), {"4", "64"}),
        ((5, 7), {"5", "7"}),
        ((8, 8), {"8"}),
        ((96, 128), {"96", "128"}),
    ],
)
def test_ticks_are_plain_numbers_at_powers_of_two_or_the_ends(counts, ticks, expect_legible):
    with use_style("page"):
        figure, axes = make_axes("page", "")
        axes.plot(counts, [1, 2])
        scale_counts(axes, np.array(counts, float))
    assert ticks <= {*expect_legible(figure)}


@pytest.mark.parametrize(
    ("value", "text"), [(1000, "1,000"), (1, "1"), (0.05, "0.05"), (2e7, "2e+07")]
)
def test_numbers_are_plain(value, text):
    assert format_tick(value) == text


@pytest.mark.parametrize("letters", range(1, 12))
def test_lines_break_at_no_equals_sign_and_no_unit(letters, expect_legible):
    title = "x" * letters * 4 + " on abci, inter bandwidth = 12.5 GB/s, p = 64, b = 8"
    with use_style("paper"):
        figure, _ = make_axes("paper", title, "not drawn: serial")
    expect_legible(figure)
    suptitle: Any = figure.get_suptitle()
    kept = suptitle.split(" ")
    assert not {"=", "GB/s", "64,", "8"} & {*kept}
