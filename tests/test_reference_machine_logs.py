"""The scalar machine oracle: log files that each exchange opens on every PE, worked out by hand."""

from dataclasses import replace

import pytest
from budgets import limit_examples
from hypothesis import given
from hypothesis import strategies as st
from machine_cases import machines, problems
from machine_toys import CHANNEL, CONV, FC, FILTER, MACHINE, PIPELINE, RELU, SERIAL, SPATIAL, TOY
from reference_exchange import logged_convolutions
from reference_machine import epoch, terms
from reference_parts import Layer, Machine, Run

LOGS = replace(MACHINE, log_open=0.25)


@pytest.mark.parametrize(
    ("run", "opened"),
    [
        (SERIAL, 0),
        (replace(SERIAL, p1=8), 8),  # the gradients', on each PE
        (replace(SERIAL, p1=8, accumulate=3), 8),  # once an iteration
        (FILTER, 2 * 2),  # one convolution, there and back, on two PEs
        (replace(FILTER, accumulate=3), 3 * 4),
        (replace(FILTER, p2=64), 2 * 64),
        (replace(FILTER, p1=4), (2 + 1) * 8),
        (replace(FILTER, p1=4, accumulate=3), (6 + 1) * 8),
        (replace(FILTER, recompute=True), 4),
        (replace(FILTER, b=99.0), 4),
        (SPATIAL, 4),
        (replace(SPATIAL, p1=4), 24),
        (replace(SPATIAL, p2=2**20, factors=(1, 2**10, 2**10)), 2**21),
        (replace(SPATIAL, p2=1, factors=(1, 1, 1)), 0),
        (replace(SPATIAL, p1=4, p2=1, factors=(1, 1, 1)), 4),
        (replace(FILTER, p2=1), 0),
        (replace(FILTER, p1=4, p2=1), 4),
        (CHANNEL, 0),
        (replace(CHANNEL, p2=64, accumulate=3), 0),
        (replace(CHANNEL, p1=4), 8),
        (PIPELINE, 0),
        (replace(PIPELINE, p1=4), 8),
    ],
)
def test_log_files_are_opened_one_after_the_other(run: Run, opened: int) -> None:
    result = terms(TOY, LOGS, run)
    assert result["log_files"] == pytest.approx(0.25 * opened)
    assert terms(TOY, MACHINE, run) == pytest.approx(result | {"log_files": 0.0})


@pytest.mark.parametrize("run", [FILTER, SPATIAL])
def test_convolutions_that_a_group_exchanges(run: Run) -> None:
    """Windows without a halo as well; neither other layers nor what is not divided."""
    pointwise = replace(CONV, kernel=(1, 1, 1))
    apart = replace(CONV, kernel=(1, 2, 2), stride=(1, 2, 2))
    deep = replace(CONV, kind="conv3d")
    whole = replace(CONV, divided=False)
    divided = (replace(RELU, divided=True), replace(FC, divided=True))
    layers = (CONV, pointwise, whole, apart, deep, *divided, FC)
    assert logged_convolutions(layers, run) == 4
    assert logged_convolutions((whole, RELU, FC), run) == 0
    assert logged_convolutions(layers, replace(run, p2=1, factors=(1, 1, 1))) == 0


def test_the_last_layer_is_gathered_by_no_filter_group() -> None:
    assert logged_convolutions((CONV, CONV), FILTER) == 1
    assert logged_convolutions((CONV, CONV), SPATIAL) == 2  # but has halos


@pytest.mark.parametrize("count", [2, 13, 53])
def test_networks_of_many_convolutions(count: int) -> None:
    """Of CosmoFlow's divided part, VGG16 and ResNet-50, with classes that no group exchanges."""
    layers = [layer for _ in range(count) for layer in (replace(CONV, kernel=(1, 1, 1)), RELU)]
    for p2, factors in ((4, (1, 2, 2)), (64, (1, 8, 8))):
        for run in (
            replace(FILTER, p2=p2),
            replace(SPATIAL, p2=p2, factors=factors),
        ):
            seconds = terms((*layers, FC), LOGS, run)["log_files"]
            assert seconds == pytest.approx(2 * count * p2 * 0.25)


def test_they_are_opened_every_iteration() -> None:
    run = replace(FILTER, samples=5.0, iterations="ceil")  # of 2.5 batches
    assert epoch(TOY, LOGS, run)["log_files"] == pytest.approx(3 * 1.0)


@limit_examples(25)
@given(problems, machines(), st.floats(1e-6, 1), st.integers(2, 9))
def test_more_replicas_open_as_many_more(
    problem: tuple[list[Layer], Run], machine: Machine, tau: float, times: int
) -> None:
    network, run = problem
    machine = replace(machine, log_open=tau)
    run = replace(run, p1=max(2, run.p1))
    few, many = (
        terms(network, machine, replace(run, p1=p1))["log_files"] for p1 in (run.p1, run.p1 * times)
    )
    assert many == pytest.approx(times * few)
    twice = terms(network, replace(machine, log_open=2 * tau), run)["log_files"]
    assert twice == pytest.approx(2 * few)
    assert terms(network, replace(machine, log_open=0.0), run)["log_files"] == 0
