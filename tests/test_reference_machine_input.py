"""The scalar machine oracle beside compute: messages, input and an epoch, worked out by hand."""

import math
from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from machine_toys import (
    CHANNEL,
    COMMUNICATION,
    FILTER,
    MACHINE,
    PIPELINE,
    SERIAL,
    SPATIAL,
    TOY,
)
from reference_machine import epoch, iterations, samples_of_a_node, terms
from reference_parts import Run

# Messages.


def test_halves_exchange_half_the_bytes() -> None:
    fast = replace(MACHINE, levels=[(2, 0.0, 4.0), (8, 0.0, 2.0)])
    for run in (SPATIAL, FILTER, PIPELINE):
        run = replace(run, p1=2)
        full, half = (terms(TOY, replace(fast, a=a), run) for a in (4.0, 2.0))
        assert half["gradient_exchange"] == full["gradient_exchange"] > 0
        for name in set(COMMUNICATION) - {"gradient_exchange"}:
            assert half[name] == full[name] / 2
        narrow = terms(TOY, replace(fast, g=1.0), run)
        assert narrow["gradient_exchange"] == full["gradient_exchange"] / 2


def test_only_a_pipeline_of_several_stages_has_segments() -> None:
    alone = replace(PIPELINE, p2=1, ends=(3,))
    for run in (SERIAL, SPATIAL, FILTER, alone):
        assert terms(TOY, MACHINE, replace(run, segments=8)) == terms(TOY, MACHINE, run)


# Input.


@pytest.mark.parametrize(
    ("p1", "rate", "busy"),
    [
        (1, 1.0, 2 / 1),  # a part of a node has all of its hosts
        (2, 1.0, 4 / 1),
        (8, 1.0, 16 / 4),
        (8, 0.5, 16 / 2),
        (3, 1.0, 6 / 1.5),  # so many samples go to the node that is full
    ],
)
def test_input_is_waited_for(p1: int, rate: float, busy: float) -> None:
    fast = replace(MACHINE, peak=math.inf, memory_bandwidth=math.inf, layer_overhead=0.0)
    fast = replace(fast, levels=[(2, 0.0, math.inf)], input_rate=rate)
    assert terms(TOY, fast, replace(SERIAL, p1=p1))["input_wait"] == pytest.approx(busy)


@pytest.mark.parametrize(
    ("run", "samples"),
    [
        (replace(SPATIAL, p2=4, factors=(1, 2, 2)), 2 / 2),  # a node has its part of each sample
        (replace(FILTER, p2=4), 2),  # two nodes, and both need them all
        (replace(CHANNEL, p2=4), 2),
        (replace(CHANNEL, p2=4, accumulate=3), 6),
        (replace(FILTER, p2=8, p1=3), 2),
        (replace(FILTER, p2=2, p1=3), 2),  # a node is a group
        (replace(PIPELINE, p2=3, ends=(1, 2, 3)), 2),  # the first stage's node
        (replace(PIPELINE, p1=4, accumulate=2), 4),
        (replace(FILTER, p2=1, p1=8), 16 / 4),  # two groups in a node
        (replace(SERIAL, p1=8), 16 / 4),
    ],
)
def test_samples_of_a_node(run: Run, samples: float) -> None:
    assert samples_of_a_node(MACHINE, run) == samples
    slow = replace(MACHINE, input_rate=1e-6)
    assert sum(terms(TOY, slow, run).values()) == pytest.approx(1e6 * samples)


@given(st.floats(1e-3, 1e3), st.sampled_from((1, 2, 6, 8)), st.integers(1, 4))
@example(1e3, 1, 1)
@example(1e-3, 1, 1)
def test_an_iteration_takes_the_longer_of_input_and_all_else(rate: float, p1: int, a: int) -> None:
    run = replace(SERIAL, p1=p1, accumulate=a)
    result = terms(TOY, replace(MACHINE, input_rate=rate), run)
    busy = sum(terms(TOY, MACHINE, run).values())
    fed = run.global_batch / max(1, p1 / 2) / rate
    assert sum(result.values()) == pytest.approx(max(busy, fed))
    assert terms(TOY, MACHINE, run)["input_wait"] == 0  # unbounded by default


# An epoch.


def test_exact_and_whole_iterations() -> None:
    machine = replace(MACHINE, input_rate=1e-3)
    for run in (SERIAL, PIPELINE):
        exact = replace(run, p1=2, accumulate=2, samples=20)
        whole = replace(exact, iterations="ceil")
        assert (iterations(exact), iterations(whole)) == (2.5, 3)
        once = terms(TOY, machine, exact)
        assert epoch(TOY, machine, exact) == pytest.approx({n: 2.5 * once[n] for n in once})
        of_samples = {"forward_backward", "pipeline_bubble"}
        expected = {n: (2.5 if n in of_samples else 3) * once[n] for n in once}
        assert epoch(TOY, machine, whole) == pytest.approx(expected)
