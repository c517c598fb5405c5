"""The critical path of a schedule adds up to its length."""

import math
import random

import numpy as np
import pytest

from paradl.grids.graphs.graph import GraphTensor
from paradl.grids.placing.problem import Problem
from paradl.grids.placing.schedule import find_length, plan_placement, trace_path

DEVICES = 3


def make_problem(seed: int, operators: int = 12) -> Problem:
    """Draw operators that read one to three earlier ones; some take no time."""
    chance = random.Random(seed)
    takers: dict[int, set[int]] = {}
    for taker in range(1, operators):
        for maker in chance.sample(range(taker), min(taker, chance.randint(1, 3))):
            takers.setdefault(maker, set()).add(taker)
    tensors = tuple(
        GraphTensor(maker, tuple(sorted(takers[maker])), 1.0) for maker in sorted(takers)
    )
    apart = 1 - np.eye(DEVICES)
    delays = np.array([chance.choice((0.0, 0.5, 3.0)) * apart for _ in tensors])
    times = [[chance.choice((0.0, 1.0, 2.5, 7.0)) for _ in range(operators)] for _ in range(2)]
    return Problem(np.array(times), tensors, delays, held=np.zeros(operators))


@pytest.mark.parametrize("seed", range(30))
def test_what_lies_on_it_adds_up_to_the_schedules_length(seed: int) -> None:
    problem = make_problem(seed)
    chance = random.Random(seed)
    placement = tuple(chance.randrange(DEVICES) for _ in range(problem.operators))
    plan = plan_placement(problem, placement)
    for durations, starts in zip(problem.durations.tolist(), plan.starts, strict=True):
        path = trace_path(problem, durations, placement, starts)
        messages = (
            message.delays[placement[message.maker]][placement[message.taker]]
            for message in path.messages
        )
        seconds = math.fsum((*(durations[operator] for operator in path.operators), *messages))
        assert seconds == pytest.approx(find_length(starts, durations), rel=1e-12)
        assert len(set(path.operators)) == len(path.operators)


def test_of_two_branches_the_longer_is_on_it() -> None:
    r"""A message to the longer branch, and one back:  0 -> 1, 2 -> 3."""
    tensors = (GraphTensor(0, (1, 2), 1.0), GraphTensor(1, (3,), 1.0), GraphTensor(2, (3,), 1.0))
    delays = np.ones((3, 2, 2)) - np.eye(2)
    problem = Problem(np.array([[1.0, 2, 5, 1]] * 2), tensors, delays, held=np.zeros(4))
    placement = (0, 0, 1, 0)
    plan = plan_placement(problem, placement)
    path = trace_path(problem, [1.0, 2, 5, 1], placement, plan.starts[0])
    assert path.operators == (3, 2, 0)
    assert [message.tensor for message in path.messages] == [2, 0]
    assert plan.time == 2 * (1 + 1 + 5 + 1 + 1)
