"""The scalar machine oracle by hand: messages of groups, assembled outputs, log files and input.

The toy has nodes of 2 PEs (1 s, 4 B/s) and a link of 2 B/s between them (2 s): two rings that leave
a node have 1 B/s each.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

import pytest
from machine_toys import CHANNEL, CONV, FC, FILTER, MACHINE, PIPELINE, RELU, SERIAL, SPATIAL, TOY
from reference import Triple
from reference_exchange import message_classes
from reference_machine import epoch, iterations, samples_of_a_node, terms
from reference_parts import Layer, Run

# Nodes of 4 PEs with 2 links, racks of 4 nodes.
RACKS = [(4, 1.0, 16.0), (16, 2.0, 4.0), (64, 4.0, 2.0)]

# Messages inside a filter or channel group.


def layers_of(*outputs: float) -> list[Layer]:
    """Divided layers of so many items out, and one behind them whose output no one gathers."""
    return [replace(CONV, y=y) for y in (*outputs, 1e6)]


def test_classes_of_messages() -> None:
    # between 1 and 16 the border is 4
    classes = message_classes(layers_of(1, 1.5, 4, 3.9, 5, 16, 7.9))
    assert sorted(count for count, _ in classes) == [3, 4]
    assert sorted(items for _, items in classes) == pytest.approx([6.4, 32.9])
    assert message_classes(layers_of(7, 7, 7)) == [(3, 21)]
    assert message_classes(layers_of()) == []
    assert message_classes([replace(CONV, divided=False), CONV, FC]) == [(1, 64)]
    assert message_classes([CONV, CONV]) == [(1, 64)]  # the network's last one is not sent on


@pytest.mark.parametrize(
    ("outputs", "gathers", "reductions"),
    [
        # 16 B: ring 15 (2 + 1/8) = 31.875, two levels 3 (1 + 1/4) + 3 (2 + 1/2) = 11.25;
        # there and back by tree 2 (7 + 2) = 18. 16 KiB: ring 15 (2 + 1024/8) = 1950, twice that
        # there and back; tree 2 (7 + 2048) = 4110, two levels 3 (1 + 256) + 3 (2 + 512) = 2313
        ((4, 4096), 11.25 + 1950, 18 + 3900),
        # two messages of 16 B: two levels 3 (2 + 1/2) + 3 (4 + 1) = 22.5, tree 2 (14 + 4) = 36
        ((4, 4096, 4), 22.5 + 1950, 36 + 3900),
        # of 16 and 32 B, in one class (up to 22.6 items): 3 (2 + 3/4) + 3 (4 + 3/2), 2 (14 + 6)
        ((4, 4096, 5, 7), 3 * (3 + 1) + 3 * (6 + 2) + 1950, 2 * (21 + 8) + 3900),
    ],
)
def test_each_class_takes_its_fastest_algorithm(
    outputs: Sequence[float], gathers: float, reductions: float
) -> None:
    machine = replace(MACHINE, pes_per_node=4, links_per_node=2, levels=RACKS)
    for run, seconds in ((FILTER, 2 * gathers), (CHANNEL, gathers + reductions)):
        run = replace(run, p2=16, b=1.0)
        result = terms(layers_of(*outputs), machine, run)
        assert result["layer_collectives"] == pytest.approx(seconds)
        slow = terms(layers_of(*outputs), machine, replace(run, algorithm="ring"))
        assert slow["layer_collectives"] > seconds


# Halos, and the gather where the split ends.


@pytest.mark.parametrize(
    ("kernel", "stride", "seconds"),
    [
        # H is split: 4 columns of 2 channels in, 4 out; b a / 4 = 2 s an item
        ((1, 3, 3), (1, 1, 1), 2 * (1 + 2 * 8) + 2 * (1 + 2 * 16)),
        ((1, 3, 3), (1, 2, 2), 2 * (1 + 2 * 4) + 2 * (1 + 2 * 4)),  # 1/2 a row in, 1/4 out
        ((1, 5, 3), (1, 2, 2), 2 * (1 + 2 * 12) + 2 * (1 + 2 * 12)),  # 3/2 and 3/4
        ((1, 2, 2), (1, 2, 2), 0),
        # Windows on the output, of two rows for each that comes in: 1/2 a row out, 1/4 in.
        ((1, 3, 3), (1, 1 / 2, 1 / 2), 2 * (1 + 2 * 2) + 2 * (1 + 2 * 8)),
        ((1, 2, 2), (1, 1 / 2, 1 / 2), 0),
        ((1, 1, 3), (1, 1, 1), 0),  # along the other dimension only
        ((1, 1, 1), (1, 2, 2), 0),  # what is skipped is not read
    ],
)
def test_halos_of_windows_that_overlap(
    kernel: Triple, stride: tuple[float, float, float], seconds: float
) -> None:
    layers = (replace(CONV, kernel=kernel, stride=stride), RELU, FC)
    assert terms(layers, MACHINE, SPATIAL)["halo_exchange"] == pytest.approx(seconds)


def test_the_split_is_gathered_where_it_ends() -> None:
    assert terms((CONV, CONV), MACHINE, SPATIAL)["split_gather"] == 0
    whole = (replace(CONV, divided=False), RELU)
    assert terms(whole, MACHINE, SPATIAL)["split_gather"] == 0
    # 4 PEs in 2 nodes: ring 3 (2 + 128/2), two levels 1 (1 + 256/4) + 1 (2 + 128/1)
    run = replace(SPATIAL, p2=4, factors=(1, 4, 1))
    assert terms(TOY, MACHINE, run)["split_gather"] == pytest.approx(2 * min(198, 195))
    # phi: 3 (2 + 3 x 64), 1 + 3 x 64 + 2 + 3 x 128
    slow = replace(MACHINE, phi_gather=3.0)
    assert terms(TOY, slow, run)["split_gather"] == pytest.approx(2 * min(582, 579))


# Stages.


def test_what_crosses_a_border_of_stages() -> None:
    # 2 (p2 + S - 2) messages of b/S a c = 2 c bytes at 4 B/s, and 2 B/s between nodes
    shortcut = (replace(CONV, crossing=200.0), replace(RELU, crossing=100.0), FC)
    assert terms(shortcut, MACHINE, PIPELINE)["point_to_point"] == pytest.approx(8 * (1 + 50))
    three = replace(PIPELINE, p2=3, ends=(1, 2, 3))
    assert terms(shortcut, MACHINE, three)["point_to_point"] == pytest.approx(10 * (2 + 200))
    assert terms(TOY, MACHINE, three)["point_to_point"] == pytest.approx(10 * (2 + 64))


# Gradients.


def test_gradients_of_groups_share_links() -> None:
    # conv's 36 weights of a PE and fc's 640, 2 bytes each, in 2 rings that leave a node of 2 links
    for links, speed in ((1, 1), (2, 2), (9, 4)):
        machine = replace(MACHINE, links_per_node=links)
        exchange = terms(TOY, machine, replace(FILTER, p1=2))["gradient_exchange"]
        assert exchange == pytest.approx(2 * (2 + 2 * 676 / 2 / speed))


def test_a_spatial_group_reduces_over_all_pes() -> None:
    run = replace(SPATIAL, p1=2)
    data = terms(TOY, MACHINE, replace(SERIAL, p1=4))["gradient_exchange"]
    assert terms(TOY, MACHINE, run)["gradient_exchange"] == pytest.approx(data) == 1074


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
        (replace(FILTER, p2=2**20), 2 * (1 - 2**-20) + 2 * (2**20 - 1) * 0.25),
        (replace(CHANNEL, p2=2**20), 1 - 2**-20),  # all of it
        (replace(FILTER, p2=1), 0),
        (replace(CHANNEL, p2=1), 0),
        (replace(FILTER, accumulate=3), 3 * 1.5),
        (replace(FILTER, b=6.0), 3 * 1 + 0.5),  # a part has its time whatever its size
        (replace(FILTER, p1=50), 1.5),
        (replace(FILTER, recompute=True), 1.5),
        (replace(CHANNEL, accumulate=3), 1.5),
        (SERIAL, 0),
        (SPATIAL, 0),
        (PIPELINE, 0),
    ],
)
def test_outputs_are_put_together(run: Run, seconds: float) -> None:
    result = terms(TOY, PARTS, run)
    assert result["split_overhead"] == pytest.approx(seconds)
    assert terms(TOY, MACHINE, run) == pytest.approx(result | {"split_overhead": 0.0})


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
