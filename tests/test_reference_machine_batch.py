"""The scalar machine oracle: what a PE holds as the batch grows, and the largest that fits."""

import math
from dataclasses import replace

import pytest
from budgets import limit_examples
from hypothesis import example, given
from hypothesis import strategies as st
from machine_cases import FAST, problems
from machine_toys import CONV, FC, MACHINE, PIPELINE, SERIAL, TOY
from reference_memory import SAMPLED, largest_batch, memory, search_largest_batch
from reference_parts import Layer, Run, Values


@limit_examples(25)
@given(problems, st.integers(2, 9))
def test_memory_is_convex_in_the_batch(problem: tuple[list[Layer], Run], factor: int) -> None:
    """The greatest of lines: at twice the batch no more than twice what depends on it."""
    network, run = problem
    one, many = (memory(network, FAST, replace(run, b=b)) for b in (run.b, run.b * factor))
    assert one["total"] <= many["total"] <= one["total"] * factor
    if run.group != "pipeline":
        for name in SAMPLED:
            assert many[name] == pytest.approx(factor * one[name])
        assert (many["states"], many["reserved"]) == (one["states"], one["reserved"])


# The largest batch.


def test_largest_batch_of_the_toy() -> None:
    # 1000 + 8712 + 912 b
    for batch in (1, 10, 100):
        capacity = 9712 + 912 * batch
        for extra, expected in ((-1, batch - 1), (0, batch), (911, batch)):
            assert largest_batch(TOY, MACHINE, SERIAL, capacity + extra) == expected
    assert largest_batch(TOY, MACHINE, SERIAL, 9711) == 0


@limit_examples(25)
@given(problems, st.integers(0, 10**10), st.sampled_from((2.0, 4.0)))
@example(([CONV], replace(SERIAL, b=1)), 0, 4.0)
@example((list(TOY), PIPELINE), 9000, 4.0)
def test_the_largest_batch_is_the_one_that_trying_yields(
    problem: tuple[list[Layer], Run], capacity: int, a: float
) -> None:
    network, run = problem
    machine = replace(FAST, a=a)
    most = largest_batch(network, machine, run, capacity)
    assert most == search_largest_batch(network, machine, run, capacity)
    totals: list[Values] = [memory(network, machine, replace(run, b=most + n)) for n in (0, 1)]
    assert totals[1]["total"] > capacity
    assert most == 0 or totals[0]["total"] <= capacity


def test_what_holds_nothing_a_sample_is_unbounded() -> None:
    nothing = replace(FC, x=0, y=0, kept_items=0)
    for find in (largest_batch, search_largest_batch):
        assert find([nothing], MACHINE, SERIAL, 1e6) == math.inf
        assert find([nothing], MACHINE, SERIAL, 1e3) == 0
