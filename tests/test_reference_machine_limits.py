"""The scalar machine oracle at its limits: networks, overlap and stragglers of any run."""

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
from machine_toys import COMMUNICATION, COMPUTE
from reference_exchange import exchanges, gradient_messages
from reference_hosts import passes_hosts
from reference_machine import epoch, expected_largest, hidden_time, terms
from reference_network import all_gather_seconds, all_reduce_seconds, path, ring
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


@limit_examples(25)
@given(problems, machines())
def test_without_hosts_all_but_collectives_are_no_slower(
    problem: Problem, machine: Machine
) -> None:
    """Rings of gradients and gathers pay start-ups, and can be slower than hosts."""
    network, run = problem
    through, beside = (
        terms(network, each, run) for each in (machine, replace(machine, staging=None))
    )
    for name in {*COMPUTE, *COMMUNICATION} - {"gradient_exchange", "split_gather"}:
        assert beside[name] <= through[name] * NEARLY
    assert beside["gradient_packing"] == beside["sample_scatter"] == 0


@limit_examples(25)
@given(problems, machines())
def test_the_fastest_algorithm_is_no_slower_than_any(problem: Problem, machine: Machine) -> None:
    network, run = problem
    of_auto = terms(network, machine, replace(run, algorithm="auto"))
    for algorithm in ("ring", "tree", "two-level"):
        named: Any = {"algorithm": algorithm}
        result = terms(network, replace(machine, overlap=0.0), replace(run, **named))
        for name in ("layer_collectives", "gradient_exchange", "split_gather"):
            assert of_auto[name] <= result[name] * NEARLY


# Ways and rings.


@limit_examples(25)
@given(machines(), counts, counts, counts)
def test_a_ring_among_others_is_no_faster_than_alone(
    machine: Machine, q: int, s: int, groups: int
) -> None:
    """However it lies: that it straddles nodes can only cost."""
    alone, among = path(machine, q * s, q, s), path(machine, q * s * groups, q, s)
    assert among.alpha >= alone.alpha
    assert among.beta >= alone.beta
    around = [
        all_reduce_seconds(ring(machine, p, q, s), 1e6)["ring"] for p in (q * s, q * s * groups)
    ]
    assert around[1] >= around[0]


@limit_examples(25)
@given(machines(), counts, counts, counts)
def test_a_way_is_no_faster_than_inside_a_node_nor_slower_than_all_flows_on_one_link(
    machine: Machine, q: int, s: int, groups: int
) -> None:
    speed = 1 / path(machine, q * s * groups, q, s).beta
    levels = [machine.level(j) for j in range(len(machine.levels))]
    assert speed <= levels[0].bandwidth * NEARLY
    narrowest = min(level.bandwidth for level in levels)
    worst = max(level.oversubscription for level in levels) * levels[-1].pes
    reached = min(1.0, machine.rail, machine.flow)
    assert speed * NEARLY >= reached * narrowest / worst


@limit_examples(25)
@given(machines(), counts, counts, counts)
def test_links_enough_for_all_are_no_bottleneck(
    machine: Machine, q: int, s: int, groups: int
) -> None:
    first = machine.level(0).bandwidth
    wide = replace(
        machine,
        links_per_node=machine.pes_per_node,
        levels=[(machine.level(j).pes, 1e-5, first) for j in range(len(machine.levels))],
        rail=1.0,
        flow=math.inf,
    )
    assert path(wide, q * s * groups, q, s).beta == pytest.approx(1 / first)


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


# Overlap.


@limit_examples(25)
@given(problems, machines())
def test_what_is_not_waited_for_is_hidden(problem: Problem, machine: Machine) -> None:
    network, run = problem
    plain = exchanges(network, replace(machine, overlap=0.0), run)
    for name, each in exchanges(network, machine, run).items():
        assert plain[name].hidden == 0
        assert min(each) >= 0
        assert sum(each) == pytest.approx(plain[name].exposed)


@limit_examples(25)
@given(problems, machines())
def test_the_last_message_of_gradients_is_exposed(problem: Problem, machine: Machine) -> None:
    network, run = problem
    whole = terms(network, replace(machine, overlap=0.0), run)["gradient_exchange"]
    exposed = terms(network, machine, run)["gradient_exchange"]
    messages = gradient_messages(network, machine, run)
    assert exposed <= whole * NEARLY
    assert exposed * messages * NEARLY >= whole


@limit_examples(25)
@given(problems, machines())
def test_no_more_is_hidden_than_is_computed(problem: Problem, machine: Machine) -> None:
    network, run = problem
    result = epoch(network, machine, replace(run, iterations="exact"))
    window = machine.overlap * result["forward_backward"]
    assert hidden_time(network, machine, replace(run, iterations="exact")) <= window * NEARLY


@limit_examples(25)
@given(problems, machines())
def test_endless_computing_hides_all_but_the_first_and_last(
    problem: Problem, machine: Machine
) -> None:
    network, run = problem
    machine = replace(machine, slowdown=1e15, overlap=1.0)
    result = terms(network, machine, run)
    plain = terms(network, replace(machine, overlap=0.0), run)
    assert result["halo_exchange"] == 0
    steps = run.p2 + run.segments - 2
    filled = (run.p2 - 1) / steps if run.piped else 0
    assert result["point_to_point"] == pytest.approx(filled * plain["point_to_point"])
    # Through host memory they are one message, and have to be there.
    at_once = passes_hosts(machine, run)
    messages = 1.0 if at_once else max(1.0, gradient_messages(network, machine, run))
    if messages == 1 or messages > 1.001:  # else there is next to no time before the last
        assert result["gradient_exchange"] == pytest.approx(plain["gradient_exchange"] / messages)


# Stragglers.


def test_more_pes_wait_longer() -> None:
    waits = [expected_largest(p) for p in range(1, 5000)]
    assert waits == sorted(waits)
    # sqrt(2 ln p) is what it tends to, from below
    assert all(z < math.sqrt(2 * math.log(p)) for p, z in enumerate(waits[1:], 2))
