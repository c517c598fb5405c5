"""The table of schedules: its formulas in words are its functions."""

from itertools import product

import pytest

from paradl.kernels.work.schedules import SCHEDULES


@pytest.mark.parametrize("name", SCHEDULES)
def test_words_and_function_count_the_same(name: str) -> None:
    schedule = SCHEDULES[name]
    code = schedule.formula.replace(") q_p", ") * q_p").replace("2 (", "2 * (")
    # As many consecutive micro-batches as stages, unless a layout states them.
    for p, i, m, v in product((4, 8), (0, 3), (2, 16), (1, 2)):
        symbols = {"q_p": p, "i": i, "S": m, "v": v, "min": min}
        assert eval(code, {"__builtins__": {}}, symbols) == min(schedule.in_flight(p, i, m, v, p))
