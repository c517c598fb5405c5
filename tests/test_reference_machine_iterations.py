"""The scalar machine oracle by hand: assembled outputs, input and iterations.

Exchanges of the same toy layers: test_reference_machine.py.
"""

import math
from dataclasses import replace

import pytest
from machine_toys import CHANNEL, FILTER, MACHINE, PIPELINE, SERIAL, SPATIAL, TOY, time_toy
from reference_machine import iterations
from reference_parts import Run
from reference_products import epoch, samples_of_a_node
from reference_products_parts import ask_alone

# Outputs are assembled at 512 bytes per second; by filter and channel the toy exchanges its
# convolution's output, 2 x 4 x 64 = 512 bytes of two samples.
PARTS = replace(MACHINE, assembly=0.512, part_overhead=0.25)


@pytest.mark.parametrize(
    ("run", "seconds"),
    [
        (FILTER, 2 * 512 / 2 / 512 + 2 * 0.25),  # half is a peer's, there and back; one peer
        (CHANNEL, 512 / 2 / 512),
        (replace(FILTER, p2=4), 2 * 3 / 4 + 6 * 0.25),
        (replace(CHANNEL, p2=4), 3 / 4),
        (replace(FILTER, p2=1), 0),
        (replace(FILTER, accumulate=3), 3 * 1.5),
        (replace(FILTER, b=6.0), 3 * 1 + 0.5),  # a part has its time whatever its size
        (replace(FILTER, p1=50), 1.5),
        (SPATIAL, 0),
    ],
)
def test_outputs_are_put_together(run: Run, seconds: float) -> None:
    result = time_toy(PARTS, run)
    assert result["split_overhead"] == pytest.approx(seconds)
    assert time_toy(MACHINE, run) == pytest.approx(result | {"split_overhead": 0.0})


# Input and epochs.


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
    assert time_toy(fast, replace(SERIAL, p1=p1))["input_wait"] == pytest.approx(busy)


@pytest.mark.parametrize(
    ("run", "samples"),
    [
        (replace(SPATIAL, p2=4, factors=(1, 2, 2)), 2 / 2),  # a node has its part of each sample
        (replace(FILTER, p2=4), 2),  # two nodes, and both need them all
        (replace(CHANNEL, p2=4, accumulate=3), 6),
        (replace(FILTER, p2=2, p1=3), 2),  # a node is a group
        (replace(PIPELINE, p2=3, ends=(1, 2, 3)), 2),  # the first stage's node
        (replace(FILTER, p2=1, p1=8), 16 / 4),  # two groups in a node
    ],
)
def test_samples_of_a_node(run: Run, samples: float) -> None:
    assert samples_of_a_node(MACHINE, ask_alone(TOY, run)) == samples
    slow = replace(MACHINE, input_rate=1e-6)
    assert sum(time_toy(slow, run).values()) == pytest.approx(1e6 * samples)


def test_exact_and_whole_iterations() -> None:
    machine = replace(MACHINE, input_rate=1e-3)
    for run in (SERIAL, PIPELINE):
        exact = replace(run, p1=2, accumulate=2, samples=20)
        whole = replace(exact, iterations="ceil")
        assert (iterations(exact), iterations(whole)) == (2.5, 3)
        once = time_toy(machine, exact)
        times = [epoch(TOY, machine, ask_alone(TOY, run)) for run in (exact, whole)]
        assert times[0] == pytest.approx({n: 2.5 * once[n] for n in once})
        of_samples = {"forward_backward", "pipeline_bubble"}
        expected = {n: (2.5 if n in of_samples else 3) * once[n] for n in once}
        assert times[1] == pytest.approx(expected)
