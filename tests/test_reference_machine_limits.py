"""The scalar machine oracle at its limits: networks and collectives of any run."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import reference
from budgets import limit_examples
from hypothesis import given
from hypothesis import strategies as st
from machine_cases import FAST, machines, networks, problems, runs
from machine_toys import COMMUNICATION
from reference_machine import epoch, hidden_time, terms
from reference_network import all_gather_seconds, all_reduce_seconds, ring
from reference_parts import Layer, Machine, Run

NEARLY = 1 + 1e-9
Problem = tuple[list[Layer], Run]
counts = st.integers(1, 24)


@limit_examples(25)
@given(networks, runs(1), machines(), st.sampled_from(("spatial", "filter", "channel", "pipeline")))
def test_one_pe_sends_nothing(network: list[Layer], run: Run, machine: Machine, group: Any) -> None:
    alone = replace(run, group=group, p1=1, p2=1, factors=(1, 1, 1), ends=(len(network),))
    result = terms(network, machine, alone)
    of_several = (*COMMUNICATION, "straggler_wait", "split_overhead", "gradient_packing")
    assert {result[name] for name in of_several} == {0}
    assert hidden_time(network, machine, alone) == 0


@limit_examples(25)
@given(problems)
def test_one_level_and_rings_are_the_papers_network(problem: Problem) -> None:
    """The reference's rows, asked in its own words, where no precision tells the bytes apart."""
    network, run = problem
    network = [replace(network[0], w=network[0].w + 192), *network[1:]]
    rows = [
        reference.Layer(
            "layer",
            each.kind,
            *(each.x, each.y, each.w, each.bias, each.flops, each.channels, each.filters),
            *(each.extents_x, each.extents_y, each.kernel),
            seconds=1.0,
        )
        for each in network
    ]
    mask = tuple(each.divided for each in network)
    if run.group != "none":  # stages and factors are the reference's to decide
        run = replace(run, group="channel", p2=2)
    strategy = "data" if run.group == "none" else "data+channel"
    p, group = run.p1 * run.p2, None if run.group == "none" else run.p2
    setup = reference.Setup(strategy, p, run.b, samples=1e5, group=group, mask=mask)
    level = (4096, 1e-5, 1e9)
    system = reference.Machine(1e12, 1.0, 1e9, 1e9, 4096, 1, [level])
    theirs = reference.predict(rows, system, setup)["terms"]
    once = replace(run, accumulate=1, iterations="exact", algorithm="ring", phi=None)
    flat = replace(FAST, g=4.0, pes_per_node=4096, levels=[level])
    ours = epoch(network, flat, once)
    assert {n: ours[n] for n in COMMUNICATION} == pytest.approx(
        {n: theirs.get(n, 0.0) for n in COMMUNICATION}
    )


# Better networks.


def change_level(machine: Machine, j: int, **changes: float) -> Machine:
    levels = [machine.level(i) for i in range(len(machine.levels))]
    levels[j] = levels[j]._replace(**changes)
    return replace(machine, levels=levels)


def speed_up(staging: tuple[float, float] | None) -> tuple[float, float] | None:
    return staging and (staging[0] / 2, 2 * staging[1])


BETTER: dict[str, Callable[[Machine, int], Machine]] = {
    "links": lambda machine, j: replace(machine, links_per_node=machine.links_per_node + 1 + j),
    "bandwidth": lambda m, j: change_level(m, j, bandwidth=1.5 * m.level(j).bandwidth),
    "latency": lambda m, j: change_level(m, j, latency=m.level(j).latency / 2),
    "links of a level": lambda machine, j: change_level(machine, j, oversubscription=1.0),
    "hosts": lambda machine, _: replace(machine, staging=speed_up(machine.staging)),
    "rail": lambda machine, _: replace(machine, rail=1.0),
    "flow": lambda machine, _: replace(machine, flow=math.inf),
    "startup": lambda machine, _: replace(machine, startup=1.0),
    "halo_startup": lambda machine, _: replace(machine, halo_startup=1.0),
    "node_reduce": lambda machine, _: replace(machine, node_reduce=1.0),
    "node_collective": lambda machine, _: replace(machine, node_collective=1.0),
    "packing": lambda machine, _: replace(machine, packing=math.inf),
    "large_message": lambda machine, _: replace(machine, large_message=math.inf),
    "assembly": lambda machine, _: replace(machine, assembly=math.inf),
    "part_overhead": lambda machine, _: replace(machine, part_overhead=0.0),
    "gather_rate": lambda machine, _: replace(machine, gather_rate=2 * machine.gather_rate),
    "layer_overhead": lambda machine, _: replace(machine, layer_overhead=0.0),
    "log_open": lambda machine, _: replace(machine, log_open=0.0),
    "overlap": lambda machine, _: replace(machine, overlap=(1 + machine.overlap) / 2),
    "jitter": lambda machine, _: replace(machine, jitter=0.0),
}


@limit_examples(25)
@given(problem=problems, machine=machines(), data=st.data())
def test_a_better_machine_is_never_slower(
    problem: Problem, machine: Machine, data: st.DataObject
) -> None:
    network, run = problem
    j = data.draw(st.integers(0, len(machine.levels) - 1))
    before = sum(terms(network, machine, run).values())
    for change, improve in BETTER.items():
        after = sum(terms(network, improve(machine, j), run).values())
        assert after <= before * NEARLY, change


# Ways and rings.


@limit_examples(25)
@given(machines(), counts, counts, counts, st.floats(0, 1e9), st.floats(1, 100))
def test_collectives_of_two_pes_and_of_a_node(
    machine: Machine, q: int, s: int, groups: int, m: float, messages: float
) -> None:
    over = ring(machine, q * s * groups, q, s)
    assert over.h * over.n >= q > over.h * (over.n - 1)
    for collective in (all_reduce_seconds, all_gather_seconds):
        seconds = collective(over, m, messages)
        if over.h == 1:  # a PE of each node: there is only one level
            assert seconds["two-level"] == pytest.approx(seconds["ring"])
    if q > 1:
        assert all_reduce_seconds(over, m)["tree"] >= 2 * m * over.way.beta
