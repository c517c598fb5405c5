"""Steps in micro-batches: against the pipeline's formula, a replay, brute force, and bounds."""

import itertools
import math
import random
from dataclasses import replace

import pytest
from placement_toys import draw_graph, draw_links, join_devices, unpack, wire
from reference_placement import brute_force, replay_micro_batches

from paradl.grids.graphs.graph import NamedTensor, Operator, link_operators
from paradl.grids.placing.pipelined_steps import Piped, divide_graph, unroll_graph
from paradl.grids.placing.problem import pose_problem
from paradl.grids.placing.schedule import plan_placement
from paradl.grids.placing.solve import solve

LIMIT = 30.0  # [s]; none of these needs a tenth of it


def make_chain(times, size=0.0):
    """Chain operators with these times forward [s], and twice that backward."""
    return link_operators(
        "chain",
        [Operator(f"o{n}", time, 2 * time, kept=4.0) for n, time in enumerate(times)],
        [NamedTensor(f"o{n}", (f"o{n + 1}",), size) for n in range(len(times) - 1)],
    )


def pose(graph, links, shares, room=math.inf):
    """Return the problem of a step whose samples are divided, and the micro-batches' graphs."""
    graphs = [divide_graph(graph, share) for share in shares]
    whole = pose_problem(graph, links, room=room)
    return Piped(whole, pose_problem(unroll_graph(graphs), links)), graphs


@pytest.mark.parametrize(("devices", "segments"), list(itertools.product([1, 2, 3], [1, 2, 4, 8])))
def test_equal_stages_and_free_links_are_a_pipeline_to_the_last_bit(devices, segments):
    # ParaDL, Table III: (p2 + S - 1) / S times the largest stage, for both passes.
    graph = make_chain([1.0, 2.0, 1.0] * devices)
    stages = tuple(n // 3 for n in range(3 * devices))
    piped, _ = pose(graph, join_devices(devices), [1 / segments] * segments)
    expected = (devices + segments - 1) / segments * (4.0 + 8.0)
    assert piped.schedule(stages).time == expected
    answer = solve(piped, LIMIT, [stages])
    assert answer.plan is not None
    assert answer.bounds.proven <= answer.plan.time <= expected


@pytest.mark.parametrize("seed", range(8))
def test_one_micro_batch_is_the_plain_placement(seed):
    chance = random.Random(seed)
    graph, links = draw_graph(chance, 9), draw_links(chance, 3)
    piped, _ = pose(graph, links, [1.0])
    placement = tuple(chance.randrange(3) for _ in range(9))
    assert piped.runs == 1
    assert piped.schedule(placement).time == plan_placement(piped.whole, placement).time


@pytest.mark.parametrize("seed", range(12))
def test_a_time_is_that_of_a_replay(seed):
    chance = random.Random(seed)
    graph, links = draw_graph(chance, 6), draw_links(chance, 2)
    piped, graphs = pose(graph, links, chance.choice([[0.5, 0.5], [0.25, 0.5, 0.25], [0.125] * 8]))
    placement = tuple(chance.randrange(2) for _ in range(6))
    plan = piped.schedule(placement)

    def order(number):
        # If two begin together on a device, one takes no time and goes first.
        starts, durations = plan.starts[number], piped.unrolled.durations[number]
        return sorted(range(len(starts)), key=lambda n: (starts[n], durations[n] > 0, n))

    steps = [unpack(one) for one in graphs]
    replayed = replay_micro_batches(steps, placement, (order(0), order(1)[::-1]), wire(links))
    assert plan.time == pytest.approx(replayed, rel=1e-12)


@pytest.mark.parametrize("seed", range(10))
def test_bounds_hold_for_every_placement_and_order(seed):
    chance = random.Random(seed)
    graph, links = draw_graph(chance, 3), draw_links(chance, 2)
    piped, graphs = pose(graph, links, chance.choice([[0.5, 0.5], [0.25, 0.75]]))
    forward, backward, tensors = unpack(unroll_graph(graphs))
    least = brute_force(
        forward, backward, tensors, 2, wire(links), lambda placed: placed[:3] == placed[3:]
    )
    answer = solve(piped, LIMIT)
    assert answer.plan is not None
    assert least is not None
    assert answer.bounds.proven <= least * (1 + 1e-12)
    assert answer.bounds.critical_path <= answer.bounds.proven
    # Only two orders are tried: at most a fifth above the least, for these graphs.
    assert least * (1 - 1e-12) <= answer.plan.time <= 1.2 * least


def test_an_operator_runs_its_micro_batches_one_by_one():
    # Fill 1/4, then 4 times 1/2 on the second device, then 1/4; twice that backward.
    piped, _ = pose(make_chain([1.0, 2.0, 1.0]), join_devices(3), [0.25] * 4)
    answer = solve(piped, LIMIT)
    assert answer.plan is not None
    assert answer.bounds.critical_path == answer.plan.time == 2.5 + 5.0


def test_unequal_micro_batches_help_where_stages_are_unequal():
    # The smaller the first micro-batch, the sooner the second device begins.
    graph = make_chain([1.0, 3.0])

    def time(*shares):
        return pose(graph, join_devices(2), shares)[0].schedule((0, 1)).time

    assert time(0.5, 0.5) == 3 * 3.5
    assert time(0.25, 0.75) == 3 * 3.25
    assert time(0.75, 0.25) == 3 * 3.75


def test_memory_holds_all_micro_batches():
    # Four operators keep 4 B each, whatever the micro-batches: three of them fit a device.
    graph, links = make_chain([1.0, 1.0, 1.0, 1.0]), join_devices(2)
    piped, graphs = pose(graph, links, [0.5, 0.5], room=12.0)
    assert sum(operator.kept for operator in graphs[0].operators) == 8.0
    answer = solve(piped, LIMIT)
    assert answer.plan is not None
    assert piped.whole.fits(answer.plan.placement)
    assert not solve(pose(graph, links, [0.5, 0.5], room=7.0)[0], LIMIT).plan
    assert solve(pose(graph, links, [0.5, 0.5], room=7.0)[0], LIMIT).impossible


def test_ctrl_c_keeps_the_best_so_far():
    piped, _ = pose(make_chain([1.0, 1.0]), join_devices(2), [0.5, 0.5])

    def interrupt(best, bound):
        raise KeyboardInterrupt

    answer = solve(piped, LIMIT, [(0, 1)], interrupt)
    assert answer.interrupted
    assert answer.plan is not None
    assert answer.plan.time == 1.5 * 3.0


def test_a_part_of_the_samples_has_all_the_weights():
    graph = make_chain([1.0, 2.0], size=8.0)
    graph = replace(graph, operators=tuple(replace(o, weights=6.0) for o in graph.operators))
    part = divide_graph(graph, 0.25)
    assert (part.forward, part.backward, part.tensors[0].bytes) == (0.75, 1.5, 2.0)
    assert [operator.weights for operator in part.operators] == [6.0, 6.0]
