from typing import Any

import numpy as np
import pytest

from sweep.plots.figures import format_tick, make_axes, scale_counts, use_style


@pytest.mark.parametrize(
    ("counts", "ends"),
    [((1, 1024), ()), ((3, 100), ()), ((5, 7), (5, 7)), ((8, 8), (8,)), ((96, 128), (96, 128))],
)
@pytest.mark.parametrize("size", ["paper", "page", "slide"])
def test_ticks_are_powers_of_two_or_the_ends(counts, ends, size, expect_legible):
    with use_style(size):
        figure, axes = make_axes(size, "")
        axes.plot(counts, [1, 2])
        scale_counts(axes, np.array(counts, float))
    texts = expect_legible(figure)
    low, high = axes.get_xlim()
    shown = [tick for tick in axes.get_xticks() if low <= tick <= high]
    assert {f"{tick:,.0f}" for tick in shown} <= {*texts}
    if ends:  # which have no two powers of two between them
        assert shown == [*ends]
    else:
        assert len(shown) > 1
        assert (np.log2(shown) % 1 == 0).all()


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
