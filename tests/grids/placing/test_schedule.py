"""Schedules by hand, and no worse than the worst order of a placement."""

import random

import pytest
from placement_toys import diamond, draw_graph, draw_links, join_devices
from reference_placement import list_orders, play_order

from paradl.grids.placing.problem import pose_problem
from paradl.grids.placing.schedule import find_length, follow_order, rank_operators, schedule_pass

PASS = [1.0, 3.0, 3.0, 1.0]


def test_ranks_are_what_is_still_to_do():
    problem = pose_problem(diamond(), join_devices(2, 0.5))
    assert rank_operators(problem, PASS, (0, 0, 0, 0)) == [5.0, 4.0, 4.0, 1.0]
    # One branch on another device: half a second for the message there, and one back.
    assert rank_operators(problem, PASS, (0, 0, 1, 0)) == [6.0, 4.0, 4.5, 1.0]


def test_a_diamond_by_hand():
    problem = pose_problem(diamond(), join_devices(2, 0.5))
    assert schedule_pass(problem, PASS, (0, 0, 0, 0))[1] == 8.0
    assert schedule_pass(problem, PASS, (0, 0, 1, 0)) == ([0.0, 1.0, 1.5, 5.0], 6.0)
    assert problem.bounds == (10.0, 8.0, 10.0)


@pytest.mark.parametrize("seed", range(10))
def test_a_schedule_can_be_run_and_is_no_better_than_the_best_order(seed):
    chance = random.Random(seed)
    graph = draw_graph(chance, 6)
    links = draw_links(chance, 2)
    problem = pose_problem(graph, links)
    placement = tuple(chance.randrange(2) for _ in range(6))
    tensors = [(tensor.maker, tensor.takers, tensor.bytes) for tensor in graph.tensors]

    def delay(here, to, size):
        return links.time_message(size)[here, to]

    for durations in problem.durations.tolist():
        starts, length = schedule_pass(problem, durations, placement)
        order = sorted(range(6), key=lambda value: (starts[value], durations[value] > 0, value))
        again = follow_order(problem, durations, placement, order)
        assert find_length(again, durations) <= length * (1 + 1e-12)
        lengths = [
            play_order(some, durations, tensors, placement, delay)
            for some in list_orders(6, tensors)
        ]
        assert min(lengths) <= length * (1 + 1e-12)
        assert length <= max(lengths) * (1 + 1e-12)
