"""HiGHS in its process: its time limit; tests/grids/placing/test_solve.py has its answers."""

import random
import time

from grids.placing.highs import IntegerProgram, solve_rows


def market_split(constraints: int = 5, items: int = 40) -> IntegerProgram:
    """A small program that takes forever (Cornuejols and Dawande, IPCO 1998)."""
    chance = random.Random(0)
    rows = IntegerProgram()
    flags = [rows.add_flag() for _ in range(items)]
    for _ in range(constraints):
        weights = [float(chance.randrange(100)) for _ in flags]
        over, under = (rows.add_variable(0, 1e6, cost=1.0) for _ in range(2))
        half = sum(weights) // 2
        terms = dict(zip(flags, weights, strict=True))
        rows.add_row(terms | {over: -1.0, under: 1.0}, half, half)
    return rows


def test_the_time_is_kept():
    begin = time.monotonic()
    solution = solve_rows(market_split(), 1.0)
    assert time.monotonic() - begin < 15.0  # however busy the machine is
    assert not solution.optimal
