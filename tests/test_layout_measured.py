"""Layouts on a machine whose collectives were measured, against times written out by hand.

Two levels: nodes of 8 PEs with 8 links. Of q PEs at stride s a ring's step takes alpha + m/q beta;
beyond a node the 8 links serve as many rings as the stride has.
"""

from functools import partial
from pathlib import Path

import numpy as np
import pytest
from open_answers import predict_grid

from paradl.grids.design_space import Configuration
from paradl.grids.entries.systems import System
from paradl.grids.entries.yamltext import format_entry
from paradl.grids.inputs.machine import Machine, Stack
from paradl.grids.library import find
from paradl.kernels.arrays import use_numpy
from paradl.kernels.parallelism.transfers import Transfers

US, GB = 1e-6, 1e9
M = 2.0**26
SIZE, ONE = np.array([M]), np.array([1.0])
RAIL = 0.8  # the share of bandwidths that is reached where none was measured


def line(latency, bandwidth):
    return {"latency": latency * US, "bandwidth": bandwidth * GB}


NODE = line(5, 400) | {
    "name": "node",
    "pes": 8,
    "collectives": {
        "all_reduce": [line(1, 480)],
        "all_gather": [line(2, 360), line(1, 100)],
        "reduce_scatter": [line(3, 300)],
        "all_to_all": [line(4, 250)],
    },
}
BEYOND = line(10, 40) | {
    "name": "network",
    "pes": 64,
    "collectives": {
        "all_reduce": [line(20, 45)],
        "all_gather": [line(30, 40)],
        "reduce_scatter": [line(35, 32)],
        "all_to_all": [line(15, 20)],
    },
}


@pytest.fixture(autouse=True)
def in_numpy():
    with use_numpy():
        yield


def make_system(*levels) -> System:
    definition = find("system", "dgx-h100", Path()).definition()
    changes = {"name": "measured", "levels": levels, "size": 64, "links_per_node": 8}
    return System.from_definition(definition | changes)


def make_transfers(system: System) -> Transfers:
    """Of a run on 64 PEs: 8 in a node, 8 nodes."""
    return Transfers(Stack(Machine(system), "bf16").find_speeds().fabric, np.array([64]))


@pytest.mark.parametrize(
    ("name", "degree", "stride", "expected"),
    [
        ("all_gather", 8, 1, min(7 * (2 * US + M / 8 / 360e9), 7 * (1 * US + M / 8 / 100e9))),
        # Two nodes by levels: (n-1) and (h-1) start-ups; 8 links of 40 GB/s carry one ring.
        ("all_gather", 16, 1, 30 * US + 7 * 2 * US + 15 / 16 * M / 320e9),
        ("reduce_scatter", 8, 1, 7 * (3 * US + M / 8 / 300e9)),
        ("reduce_scatter", 4, 8, 3 * (35 * US + M / 4 / 32e9)),
        # A tree's start-ups: 2 (h-1) in a node, 2 ceil(log2 n) beyond it.
        ("all_reduce", 8, 1, 2 * 7 * (1 * US + M / 8 / 480e9)),
        ("all_reduce", 4, 8, 2 * 2 * 20 * US + 2 * 3 / 4 * M / 45e9),
        ("all_reduce", 64, 1, 2 * (7 * US + 3 * 20 * US) + 2 * 63 / 64 * M / 360e9),
        # What messages reach was measured: no share of it is left out.
        ("split_send", 2, 1, 5 * US + M / 400e9),
        ("split_send", 2, 8, 10 * US + M / 40e9),
    ],
)
def test_measured_lines_count(name, degree, stride, expected):
    transfers = make_transfers(make_system(NODE, BEYOND))
    columns = (np.array([value]) for value in (degree, stride, M))
    send = transfers.split_send if name == "split_send" else partial(transfers.send, name)
    seconds = np.sum(send(*columns))
    assert seconds == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("degree", "expected"),
    [
        (8, 7 * (4 * US + M / 8 / 250e9)),
        (16, 7 * (4 * US + M / 16 / 250e9) + 15 * US + 8 / 16 * M / 20e9),
    ],
)
def test_all_to_all_by_its_lines(degree, expected):
    transfers = make_transfers(make_system(NODE, BEYOND))
    result = transfers.send_to_all(np.array([degree]), np.array([1]), SIZE, 1)
    assert result == pytest.approx(expected, rel=1e-12)


def test_levels_without_measurements_reach_a_share():
    plain = {key: value for key, value in BEYOND.items() if key != "collectives"}
    transfers = make_transfers(make_system(NODE, plain))
    two, eight = np.array([2]), np.array([8])
    near, far = (np.ravel(transfers.split_send(two, stride, SIZE)) for stride in (ONE, eight))
    assert near == pytest.approx([5 * US, M / 400e9], rel=1e-12)
    assert far == pytest.approx([10 * US, M / (40e9 * RAIL)], rel=1e-12)
    gathered = 7 * (10 * US + M / 8 / (40e9 * RAIL))
    assert transfers.send("all_gather", eight, eight, SIZE) == pytest.approx(gathered, rel=1e-12)


def test_what_was_not_measured_reaches_a_share():
    """Without lines of its own, an all-gather takes the level's latency and bandwidth."""
    node = NODE | {"collectives": {"all_reduce": [line(1, 480)]}}
    transfers = make_transfers(make_system(node, BEYOND))
    eight = np.array([8])
    expected = 7 * (5 * US + M / 8 / (RAIL * 400e9))
    assert transfers.send("all_gather", eight, ONE, SIZE) == pytest.approx(expected, rel=1e-12)
    assert transfers.send("reduce_scatter", eight, ONE, SIZE) == pytest.approx(expected, rel=1e-12)
    # All-to-alls were measured beyond the node: so they reach the node's bandwidth, too.
    expected = 7 * (5 * US + M / 8 / 400e9)
    assert transfers.send_to_all(eight, ONE, SIZE, 1) == pytest.approx(expected, rel=1e-12)


def test_layouts_take_the_measured_lines(tmp_path):
    """Tensor parallelism of Llama 2 7B: in each of 32 blocks two gathers and two scatters."""
    path = tmp_path / "measured.yaml"
    path.write_text(format_entry(make_system(NODE, BEYOND), "of a test"))
    words = "tp8 dp4 mb1 sp"
    asked = Configuration("llama2_7b", words, 32, 8, str(path), sequence=2048, precision="bf16")
    answer = predict_grid(asked.grid())
    m = 2048 * 4096 * 2  # bytes of a sequence's activations
    gather, scatter = 7 * (2 * US + m / 8 / 360e9), 7 * (3 * US + m / 8 / 300e9)
    expected = 8 * 32 * 4 * (gather + scatter)  # micro-batches, blocks, two forward, two backward
    of_iteration = answer["terms"]["tensor_exchange"] / answer["iterations"]
    assert of_iteration == pytest.approx(expected, rel=1e-9)
