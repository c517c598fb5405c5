"""The solver against brute force, a replay, and lower bounds."""

import math
import random
from pathlib import Path

import numpy as np
import pytest
from placement_toys import diamond, draw_graph, draw_links, join_devices, unpack, wire
from reference_placement import brute_force, replay_step

from paradl.grids.graphs.graph import NamedTensor, Operator, link_operators
from paradl.grids.graphs.graphfile import find_graph
from paradl.grids.graphs.links import link_devices
from paradl.grids.library import find
from paradl.grids.placing.pipelined_steps import Piped
from paradl.grids.placing.problem import pose_problem
from paradl.grids.placing.schedule import plan_placement
from paradl.grids.placing.search import Parts
from paradl.grids.placing.solve import search_plan, solve

LIMIT = 30.0  # [s]; none of these needs a tenth of it
SAME = 1e-6


def pose(graph, links, room=math.inf):
    """Return the problem of a step in one piece."""
    problem = pose_problem(graph, links, room=room)
    return Piped(problem, problem)


def try_everything(graph, links, room):
    """Return the least step time by the reference."""
    forward, backward, tensors = unpack(graph)

    def fits(placement):
        used = [0.0] * len(links)
        for operator, device in zip(graph.operators, placement, strict=True):
            used[device] += operator.weights + operator.kept
        for maker, takers, size in tensors:
            for device in {placement[taker] for taker in takers} - {placement[maker]}:
                used[device] += size
        return max(used) <= room

    return brute_force(forward, backward, tensors, len(links), wire(links), fits)


def replay(graph, links, plan):
    """Return the end of the plan's step, event by event."""
    forward, backward, tensors = unpack(graph)

    def order(number, durations):
        # If two begin together on a device, one takes no time and goes first.
        starts = plan.starts[number]
        return sorted(range(len(graph)), key=lambda n: (starts[n], durations[n] > 0, n))

    # Planned in reverse: the end of the plan is the beginning of the backward pass.
    orders = order(0, forward), order(1, backward)[::-1]
    return replay_step(forward, backward, tensors, plan.placement, orders, wire(links))


def join_ends(pieces):
    """Join graphs in a row by operators that take everything made before and feed what follows."""
    operators, tensors = [], []
    loose: list[str] = []
    for number, piece in enumerate(pieces):
        names = [f"{number}.{operator.name}" for operator in piece.operators]
        operators.append(Operator(f"before {number}", 1.0, 1.0))
        tensors += [NamedTensor(value, (f"before {number}",), 1.0) for value in loose]
        operators += [
            Operator(name, operator.forward, operator.backward)
            for name, operator in zip(names, piece.operators, strict=True)
        ]
        tensors += [
            NamedTensor(names[tensor.maker], tuple(names[to] for to in tensor.takers), tensor.bytes)
            for tensor in piece.tensors
        ]
        taken = {to for tensor in piece.tensors for to in tensor.takers}
        fed = tuple(name for position, name in enumerate(names) if position not in taken)
        tensors.append(NamedTensor(f"before {number}", fed, 1.0))
        made = {tensor.maker for tensor in piece.tensors}
        loose = [name for position, name in enumerate(names) if position not in made]
    operators.append(Operator("end", 1.0, 1.0))
    tensors += [NamedTensor(value, ("end",), 1.0) for value in loose]
    return link_operators("row", operators, tensors)


# Without 3: five operators on two devices with little room, as of 1, which is proven in two ways.
# What fits no placement: tests/grids/placing/test_packing.py.
@pytest.mark.parametrize("seed", [0, 1, 2, 4, 5, 7])
def test_nothing_is_better_than_what_is_proven(seed):
    chance = random.Random(seed)
    devices = chance.choice([2, 2, 3])
    # Seven operators on three devices have too many placements and orders to try.
    graph = draw_graph(chance, chance.randint(1, 7 if devices == 2 else 6))
    links = draw_links(chance, devices)
    room = chance.choice([math.inf, float(chance.randint(3, 14))])
    answer = solve(pose(graph, links, room=room), LIMIT)
    least = try_everything(graph, links, room)
    assert answer.plan is not None
    assert answer.plan.time == pytest.approx(least, rel=SAME)
    assert answer.bounds.proven == pytest.approx(least, rel=SAME)
    assert replay(graph, links, answer.plan) == pytest.approx(answer.plan.time, rel=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_parts_are_searched_one_by_one_and_add_up(seed):
    chance = random.Random(100 + seed)
    graph = join_ends([draw_graph(chance, size) for size in (3, 2)])
    links = draw_links(chance, 2)
    problem = pose_problem(graph, links)
    least = try_everything(graph, links, math.inf)
    placements = Parts(problem).search(100, lambda operators: True)
    plans = [plan_placement(problem, placement) for placement in placements]
    plan = min(plans, key=lambda plan: plan.time)
    assert plan.time == pytest.approx(least, rel=SAME)
    assert search_plan(problem).time >= plan.time
    assert replay(graph, links, plan) == pytest.approx(plan.time, rel=1e-9)
    assert problem.bounds.proven <= Parts(problem).bound <= least


def test_a_diamond_by_hand():
    # Alone 1 + 3 + 3 + 1 a pass. On two devices one branch waits for a message from the stem, the
    # join is where this branch is, and waits for a message of the other one.
    one = solve(pose(diamond(), join_devices(1)), LIMIT)
    two = solve(pose(diamond(), join_devices(2, 0.25, 0.25)), LIMIT)
    assert one.plan is not None
    assert two.plan is not None
    assert one.plan.time == 16.0
    assert two.plan.time == pytest.approx(2 * (1 + 0.5 + 3 + 1))
    stem, left, right, join = two.plan.placement
    assert left != right
    assert stem != join


@pytest.mark.parametrize("seed", range(2))
def test_without_messages_a_step_takes_the_longest_way_or_the_work_over_devices(seed):
    graph = draw_graph(random.Random(seed), 7)
    for devices in (2, 3):
        answer = solve(pose(graph, join_devices(devices)), LIMIT)
        assert answer.plan is not None
        work = graph.serial_time / devices
        assert answer.bounds.work == pytest.approx(work)
        assert answer.plan.time >= max(work, answer.bounds.critical_path) * (1 - SAME)
        assert answer.bounds.proven >= max(work, answer.bounds.critical_path) * (1 - SAME)


@pytest.mark.parametrize("seed", range(2))
def test_more_devices_are_never_slower(seed):
    chance = random.Random(seed)
    graph = draw_graph(chance, 7)
    dgx1 = find("system", "dgx1-v100", Path())
    times = []
    for devices in (1, 2, 3, 4):
        # Seconds and bytes are small numbers here, so links are slow in proportion.
        links = link_devices(dgx1, devices)
        links = type(links)(links.latency * 1e4, links.seconds_per_byte * 2.5e10 / 2, links.pes)
        answer = solve(pose(graph, links), LIMIT)
        assert answer.plan is not None
        assert answer.bounds.proven == pytest.approx(answer.plan.time, rel=SAME)
        times.append(answer.plan.time)
    assert all(np.diff(times) <= SAME * times[0])


def test_inception_is_faster_on_two_devices():
    graph = find_graph("inception_v3-pipedream", Path())
    assert graph is not None
    links = link_devices(find("system", "dgx1-v100", Path()), 2)
    said: list[float] = []
    answer = solve(pose(graph, links), 1.0, tell=lambda best, bound: said.append(best or 0.0))
    assert answer.plan is not None
    assert graph.serial_time / answer.plan.time > 1.4
    assert replay(graph, links, answer.plan) == pytest.approx(answer.plan.time, rel=1e-9)
    assert answer.bounds.proven >= answer.bounds.critical_path > answer.bounds.work
    assert said == sorted(said, reverse=True)


def test_ctrl_c_keeps_the_best():
    said = []

    def interrupt(best, bound):
        said.append(best)
        if len(said) == 2:
            raise KeyboardInterrupt

    answer = solve(pose(diamond(), join_devices(2)), LIMIT, tell=interrupt)
    assert answer.interrupted
    assert answer.plan is not None
    assert answer.plan.time == said[-1] < 16.0


def test_too_little_effort_before_anything_fits_is_no_proof():
    # Two of 3 fit a device of 6, and three do not fit two: a little more effort would prove it.
    graph = draw_graph(random.Random(5), 6)
    piped = pose(graph, join_devices(2), room=max(o.kept for o in graph.operators) + 0.5)
    answer = solve(piped, 1e-9)
    assert answer.plan is None
    assert not answer.impossible or piped.whole.held.sum() > 2 * piped.whole.room
