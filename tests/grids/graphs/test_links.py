"""Links between devices: a DGX-1's cube mesh against its published table, and paths through it."""

from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from pydantic import ValidationError

from paradl.grids.entries.connections import Mesh
from paradl.grids.graphs.links import link_devices
from paradl.grids.library import find
from paradl.grids.reading.errors import InputError

# `nvidia-smi topo -m` of a DGX-1 with V100, as published: NV1, NV2, or SYS, a way through the host.
TOPOLOGY = """
  X NV1 NV1 NV2 NV2 SYS SYS SYS
NV1   X NV2 NV1 SYS NV2 SYS SYS
NV1 NV2   X NV2 SYS SYS NV1 SYS
NV2 NV1 NV2   X SYS SYS SYS NV1
NV2 SYS SYS SYS   X NV1 NV1 NV2
SYS NV2 SYS SYS NV1   X NV2 NV1
SYS SYS NV1 SYS NV1 NV2   X NV2
SYS SYS SYS NV1 NV2 NV1 NV2   X
"""
DGX1 = find("system", "dgx1-v100", Path())
NODE = DGX1.levels[0]


def test_the_mesh_of_a_dgx1_is_the_published_one():
    counts = {"X": 0, "SYS": 0, "NV1": 1, "NV2": 2}
    rows = [[counts[word] for word in row.split()] for row in TOPOLOGY.strip().splitlines()]
    assert DGX1.mesh is not None
    assert [list(row) for row in DGX1.mesh.links] == rows
    assert {sum(row) for row in rows} == {6}  # six links of 25 GB/s: the node's 150 GB/s
    assert 6 * DGX1.mesh.bandwidth == NODE.bandwidth


def test_messages_take_the_links_there_are():
    links = link_devices(DGX1, 8)
    times = links.time_message(25e9)  # a second over one link
    assert times[0, 1] == pytest.approx(1 + NODE.latency)
    assert times[0, 3] == pytest.approx(1 / 2 + NODE.latency)
    # From 0 to 5: over 1 by one link and two, or over 4 by two and one; they are equal.
    assert times[0, 5] == pytest.approx(3 / 2 + 2 * NODE.latency)
    assert times[0, 7] == pytest.approx(1 + 2 * NODE.latency)  # over 4, by two and two
    assert np.array_equal(times, times.T)
    assert not times.diagonal().any()


def test_more_devices_keep_the_links_of_fewer():
    chosen = [link_devices(DGX1, devices).pes for devices in range(1, 9)]
    assert chosen[1] == (0, 3)  # two links
    assert chosen[3] == (0, 1, 2, 3)  # of a quad, in which each has a link to each
    assert all({*fewer} < {*more} for fewer, more in combinations(chosen, 2))


def test_devices_of_a_switch_are_alike():
    times = link_devices(find("system", "abci", Path()), 4).time_message(50e9)
    assert times[~np.eye(4, dtype=bool)] == pytest.approx(1 + 9e-6)


@pytest.mark.parametrize("devices", [0, 9])
def test_a_node_has_so_many_devices(devices):
    with pytest.raises(InputError, match=r"1 to 8 .* dgx1-v100"):
        link_devices(DGX1, devices)


@pytest.mark.parametrize(
    ("links", "message"),
    [
        ([[0, 1], [2, 0]], "links.1.0:"),
        ([[0, 1], [1]], "links.1:"),
        ([[1, 1], [1, 0]], "links.0:"),
        ([[0, 0], [0, 0]], "links:"),
    ],
)
def test_what_is_no_mesh_is_refused(links, message):
    with pytest.raises(ValidationError, match=message):
        Mesh(bandwidth=25e9, links=links)


def test_a_mesh_is_of_the_node():
    definition = DGX1.definition() | {"mesh": {"bandwidth": 25e9, "links": [[0, 1], [1, 0]]}}
    with pytest.raises(InputError, match=r"mesh.links: expected 8 rows"):
        find("system", definition, Path())


@pytest.mark.parametrize("level", [0, 1])
def test_only_switches_of_a_node_sum(level):
    """A DGX-1 has none in its nodes."""
    levels = [one.model_dump() for one in DGX1.levels]
    levels[level]["switch_latency"] = 25e-6
    with pytest.raises(InputError, match="switch_latency"):
        find("system", DGX1.definition() | {"levels": levels}, Path())


def test_only_the_pes_of_a_node_share_a_path():
    levels = [one.model_dump() for one in DGX1.levels]
    levels[1]["shared"] = 1e9
    with pytest.raises(InputError, match="expected shared at the node"):
        find("system", DGX1.definition() | {"levels": levels}, Path())
