"""HiGHS in its process: its answers, and its time limit."""

import random
import time

import pytest

from grids.placing.highs import IntegerProgram, solve_rows


def knapsack() -> IntegerProgram:
    """Maximise 3 x + 2 y with x + y at most 1: take x."""
    rows = IntegerProgram()
    x, y = (rows.add_variable(0, 1, cost=-cost, whole=True) for cost in (3.0, 2.0))
    rows.add_row({x: 1.0, y: 1.0}, high=1.0)
    return rows


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


def test_the_optimum_and_its_bound():
    solution = solve_rows(knapsack(), 10)
    assert solution.optimal
    assert solution.bound == pytest.approx(-3)
    assert solution.values == pytest.approx([1, 0])


def test_what_cannot_be_is_infeasible():
    rows = knapsack()
    rows.add_row({0: 1.0, 1: 1.0}, low=2.0)
    solution = solve_rows(rows, 10)
    assert solution.infeasible
    assert solution.values is None


def test_the_time_is_kept():
    begin = time.monotonic()
    solution = solve_rows(market_split(), 1.0)
    assert time.monotonic() - begin < 2.5
    assert not solution.optimal


def test_no_time_is_no_answer():
    assert solve_rows(knapsack(), 0).values is None
