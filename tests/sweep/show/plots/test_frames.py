import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweep.show.plots.frames import choose_ticks, format_tick, make_frame, spread_heights


@given(st.lists(st.floats(-5, 15), min_size=1, max_size=20), st.floats(0.05, 0.5))
def test_heights_are_apart_in_order_and_within(wished, step):
    heights = spread_heights(wished, step, 0, 10)
    order = np.argsort(wished, kind="stable")
    placed = np.array(heights)[order]
    assert (np.diff(placed) >= step - 1e-9).all()
    assert placed.min() >= -1e-9
    assert placed.max() <= 10 + 1e-9


def test_what_does_not_collide_stays():
    assert spread_heights([3.0, 1.0, 9.0], 0.5, 0, 10) == [3, 1, 9]
    assert spread_heights([5.0, 5.0], 1, 0, 10) == [4.5, 5.5]


@pytest.mark.parametrize(
    ("ends", "most", "ticks"),
    [
        ((1, 1024), 11, [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024]),
        ((1, 1024), 6, [1, 4, 16, 64, 256, 1024]),
        ((3, 100), 10, [4, 8, 16, 32, 64]),
        ((5, 7), 10, [5]),
        ((8, 8), 10, [8]),
        ((1, 1024), 0, [16, 1024]),
    ],
)
def test_ticks_are_powers_of_two(ends, most, ticks):
    low, high = ends
    assert choose_ticks(low, high, most) == ticks


@pytest.mark.parametrize(
    ("value", "text"), [(1000, "1,000"), (1, "1"), (0.05, "0.05"), (2e7, "2e+07")]
)
def test_numbers_are_plain(value, text):
    assert format_tick(value) == text


def test_lines_break_at_no_equals_sign_and_no_unit():
    pytest.importorskip("matplotlib", reason="pictures need matplotlib")
    for letters in range(1, 12):
        frame = make_frame("paper")
        frame.write_title(
            "x" * letters * 4 + " on abci, inter bandwidth = 12.5 GB/s, p = 64, b = 8"
        )
        lines = frame.figure.texts[-1].get_text().split("\n")
        assert not any(line.endswith(("=", "12.5")) or line.startswith("=") for line in lines)
