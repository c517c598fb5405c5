"""The scalar machine oracle: the messages of each group on a network, worked out by hand.

The toy has nodes of 2 PEs (1 s, 4 B/s) and a link of 2 B/s between them (2 s): two rings that leave
a node have 1 B/s each.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from machine_toys import CHANNEL, CONV, FC, FILTER, MACHINE, PIPELINE, RELU, SERIAL, SPATIAL, TOY
from reference import Triple
from reference_exchange import message_classes
from reference_machine import terms
from reference_parts import Layer, Run

# Nodes of 4 PEs with 2 links, racks of 4 nodes: see test_reference_machine_network.py.
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


@pytest.mark.parametrize(
    ("factors", "seconds"),
    [
        # One pair of neighbours leaves a node of 2 PEs: 2 B/s. 8 items in, 16 out of 8 bytes.
        ((1, 4, 1), 2 * (2 + 64 / 2) + 2 * (2 + 128 / 2)),
        # Rows are two PEs apart, both PEs send: 1 B/s. 4 + 4 items in, 8 + 8 out.
        ((1, 2, 2), 2 * (2 + 64 / 1) + 2 * (2 + 128 / 1)),
        ((1, 1, 4), 2 * (2 + 64 / 2) + 2 * (2 + 128 / 2)),
    ],
)
def test_halos_share_links_by_the_outermost_stride(factors: Triple, seconds: float) -> None:
    run = replace(SPATIAL, p2=4, factors=factors)
    assert terms(TOY, MACHINE, run)["halo_exchange"] == pytest.approx(seconds)


def test_halos_go_through_host_memory() -> None:
    # 3 s and 1/2 s/B, not 1 and 1/4
    staged = replace(MACHINE, staging=(3.0, 2.0), phi_halo=2.0)
    result = terms(TOY, staged, SPATIAL)
    assert result["halo_exchange"] == pytest.approx(2 * (3 + 64 * 2 / 2) + 2 * (3 + 128 * 2 / 2))
    assert result["gradient_exchange"] == pytest.approx(358)  # not these
    quick = terms(TOY, replace(MACHINE, staging=(0.5, 8.0)), SPATIAL)
    plain = terms(TOY, MACHINE, SPATIAL)
    assert quick == pytest.approx(plain | {"split_gather": quick["split_gather"]})


def test_start_ups_through_host_memory_take_longer() -> None:
    # staging's 3 s four times: more than the 1 s inside a node, or the 2 s beyond it, of which
    # there are five; without staging there is no such path
    slow = replace(MACHINE, halo_startup=4.0, startup=5.0)
    assert terms(TOY, slow, SPATIAL)["halo_exchange"] == pytest.approx(2 * (1 + 16) + 2 * (1 + 32))
    run = replace(SPATIAL, p2=4, factors=(1, 4, 1))
    assert terms(TOY, slow, run)["halo_exchange"] == pytest.approx(2 * (10 + 32) + 2 * (10 + 64))
    staged = replace(slow, staging=(3.0, 100.0))
    halos = terms(TOY, staged, SPATIAL)["halo_exchange"]
    assert halos == pytest.approx(2 * (12 + 16) + 2 * (12 + 32))


# What is reached inside a node.


@pytest.mark.parametrize(
    ("change", "halved"),
    [
        ({"node_reduce": 0.5}, "gradient_exchange"),
        ({"node_collective": 0.5}, "layer_collectives split_gather"),
        ({"rail": 0.5, "flow": 0.25}, ""),  # nothing leaves it
    ],
)
def test_who_reaches_what_inside_a_node(change: dict[str, Any], halved: str) -> None:
    free = replace(MACHINE, levels=[(4, 0.0, 4.0)], pes_per_node=4)
    for run in (SPATIAL, FILTER, CHANNEL, PIPELINE):
        run = replace(run, p1=2)
        plain, part = (terms(TOY, each, run) for each in (free, replace(free, **change)))
        factors = {name: 2 if name in halved.split() else 1 for name in plain}
        assert part == pytest.approx({name: factors[name] * plain[name] for name in plain})


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


# 512 bytes of two samples, of which 2 PEs miss half, at 1/2 x 2 B/s.
GATHERED = replace(MACHINE, staging=(3.0, 2.0), gather_rate=0.5)


@pytest.mark.parametrize(
    ("change", "run", "seconds"),
    [
        ({}, SPATIAL, 2 * 512 / 2),
        ({}, replace(SPATIAL, p1=50), 512),
        ({}, replace(SPATIAL, recompute=True), 512),
        ({}, replace(SPATIAL, p2=4, factors=(1, 4, 1)), 2 * 512 * 3 / 4),
        ({}, replace(SPATIAL, p2=2**20, factors=(1, 2**10, 2**10)), 2 * 512 * (1 - 2**-20)),
        ({}, replace(SPATIAL, p1=2, p2=1, factors=(1, 1, 1)), 0),
        ({}, replace(SPATIAL, b=6.0), 3 * 512),
        ({}, replace(SPATIAL, accumulate=3), 3 * 512),
        ({"a": 2.0}, SPATIAL, 512 / 2),
        ({"gather_rate": 4.0}, SPATIAL, 512 / 8),
        ({"staging": (3.0, 8.0)}, SPATIAL, 512 / 4),
        ({"phi_gather": 3.0}, SPATIAL, 3 * 512),
        # neither start-ups nor what a network reaches
        ({"halo_startup": 9.0, "node_collective": 0.1, "phi_halo": 7.0}, SPATIAL, 512),
        ({"levels": [(2, 9.0, 0.1), (8, 9.0, 0.01)]}, SPATIAL, 512),
        ({}, replace(SPATIAL, algorithm="two-level"), 512),
        ({"large_message": 1e-9, "host_jitter": 1.0}, SPATIAL, 512),
        ({}, PIPELINE, 0),
        ({}, FILTER, 0),
    ],
)
def test_hosts_gather_where_the_split_ends(
    change: dict[str, Any], run: Run, seconds: float
) -> None:
    gather = terms(TOY, replace(GATHERED, **change), run)["split_gather"]
    assert gather == pytest.approx(seconds)


def test_a_gather_is_of_the_last_divided_layer_alone() -> None:
    for more in (0, 1, 20):
        result = terms((*[CONV] * more, *TOY), GATHERED, SPATIAL)
        assert result["split_gather"] == pytest.approx(512)
    wide = (CONV, replace(CONV, y=640), RELU, FC)
    assert terms(wide, GATHERED, SPATIAL)["split_gather"] == pytest.approx(5120)
    assert terms((CONV, CONV), GATHERED, SPATIAL)["split_gather"] == 0
    assert terms((RELU, FC), GATHERED, SPATIAL)["split_gather"] == 0


# Stages.


def test_what_crosses_a_border_of_stages() -> None:
    # 2 (p2 + S - 2) messages of b/S a c = 2 c bytes at 4 B/s, and 2 B/s between nodes
    shortcut = (replace(CONV, crossing=200.0), replace(RELU, crossing=100.0), FC)
    assert terms(shortcut, MACHINE, PIPELINE)["point_to_point"] == pytest.approx(8 * (1 + 50))
    three = replace(PIPELINE, p2=3, ends=(1, 2, 3))
    assert terms(shortcut, MACHINE, three)["point_to_point"] == pytest.approx(10 * (2 + 200))
    assert terms(TOY, MACHINE, three)["point_to_point"] == pytest.approx(10 * (2 + 64))


def test_pipelines_that_straddle_nodes_share_a_link() -> None:
    three = replace(PIPELINE, p1=2, p2=3, ends=(1, 2, 3))  # 0, 1 | 2 and 3 | 4, 5
    assert terms(TOY, MACHINE, three)["point_to_point"] == pytest.approx(10 * (2 + 128))


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


def test_phi_multiplies_every_way_of_the_gradients() -> None:
    # ring 6 (2 + 356), tree 2 (3 + 1424), two levels 2 (1 + 356) + 2 (2 + 712)
    run = replace(SERIAL, p1=4, phi=2.0)
    assert terms(TOY, MACHINE, run)["gradient_exchange"] == pytest.approx(2142)
    single = terms(TOY, MACHINE, replace(FILTER, phi=2.0))
    assert single == terms(TOY, MACHINE, FILTER)


def test_biases_and_layers_without_weights_send_nothing() -> None:
    bare = (replace(CONV, w=0), RELU)
    assert terms(bare, MACHINE, replace(SERIAL, p1=4))["gradient_exchange"] == 0


def test_a_network_of_no_time_costs_none() -> None:
    free = replace(MACHINE, levels=[(2, 0.0, math.inf), (8, 0.0, math.inf)])
    for run in (SERIAL, SPATIAL, FILTER, CHANNEL, PIPELINE):
        run = replace(run, p1=2)
        assert terms(TOY, free, run)["gradient_exchange"] == 0
