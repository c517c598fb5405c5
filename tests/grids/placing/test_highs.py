"""HiGHS in its process: its limit of nodes; tests/grids/placing/test_solve.py has its answers."""

import random

import numpy as np

from paradl.grids.placing.highs import IntegerProgram, Solution, solve_rows


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


def find_gap(program: IntegerProgram, solution: Solution) -> float:
    assert solution.values is not None
    assert solution.bound is not None
    return float(np.dot(program.cost, solution.values)) - solution.bound


def test_nodes_are_limited_and_the_answer_is_the_same():
    solution, again = (solve_rows(market_split(), 20) for _ in range(2))
    assert find_gap(market_split(), solution) > 1
    assert solution.values is not None
    assert solution.bound is not None
    assert solution.bound == again.bound
    np.testing.assert_array_equal(solution.values, again.values)


def test_more_nodes_prove_it():
    program = market_split(2, 16)
    few, many = (find_gap(program, solve_rows(program, nodes)) for nodes in (1, 100_000))
    assert few > 1
    assert abs(many) < 1e-6
