"""PEs of each level that a layout occupies, by hand."""

import pytest
from reference_alignment import aligned, list_used
from reference_network import Network
from reference_transformers import Layout


def build_machine(*pes, links=8):
    levels = [(span, (j + 1) * 1e-6, 1e11 / (j + 1), 1.0 + j) for j, span in enumerate(pes)]
    return Network(pes_per_node=pes[0], links_per_node=links, levels=levels)


@pytest.mark.parametrize(
    ("degrees", "pes", "used"),
    [
        # Everything divides, or all is inside: each PE is used.
        ({"tensor": 8, "data": 4}, 8, 8),
        ({"data": 72}, 72, 72),
        ({"data": 36, "pipeline": 4}, 72, 72),
        ({"tensor": 3, "data": 5, "pipeline": 4}, 72, 72),
        ({"data": 144, "pipeline": 2}, 72, 72),
        # Whole groups, and as many of them as there are.
        ({"data": 64, "pipeline": 4}, 72, 64),
        ({"data": 16, "pipeline": 6}, 72, 48),
        ({"tensor": 16, "pipeline": 6}, 72, 48),
        ({"context": 16, "pipeline": 6}, 72, 48),
        ({"data": 10, "pipeline": 2}, 9, 5),
        ({"tensor": 3, "data": 64}, 8, 6),
        # Groups of more than a node's PEs, of which no divisor but 1 is inside, are cut.
        ({"data": 5, "pipeline": 2}, 4, 4),
        # A ring of all PEs is cut by no border: it crosses them all.
        ({"data": 96}, 72, 72),
        # Groups that hold experts go first, where one is inside.
        ({"data": 30, "expert": 6}, 16, 12),
        ({"data": 30, "expert": 6}, 4, 3),
        ({"data": 30, "tensor": 2, "expert": 3}, 16, 12),
        ({"data": 30, "expert": 3, "expert_tensor": 2}, 16, 12),
        # Ranks that share states.
        ({"data": 96, "zero": 1, "node_shards": 16}, 72, 48),
        ({"data": 96, "zero": 0, "node_shards": 16}, 72, 72),
        ({"data": 144, "zero": 1, "node_shards": 16}, 72, 48),
    ],
)
def test_used_of_a_node(degrees, pes, used):
    assert list_used(build_machine(pes, 4096), Layout(**degrees))[0] == used


@pytest.mark.parametrize(
    ("degrees", "used"),
    [
        ({"data": 64, "pipeline": 16}, [64, 512, 4096]),
        ({"data": 16, "pipeline": 18}, [48, 384, 3072]),
        ({"data": 72, "pipeline": 8}, [72, 576, 4608]),
        ({"data": 192, "pipeline": 5}, [64, 384, 3072]),
    ],
)
def test_used_of_wider_levels(degrees, used):
    """A level has room for the PEs that are used of those below it."""
    assert list_used(build_machine(72, 576, 4608), Layout(**degrees)) == used


@pytest.mark.parametrize(("links", "left"), [(72, 48), (8, 6), (1, 1)])
def test_network_of_the_used_pes(links, left):
    machine = build_machine(72, 576, links=links)
    lines = [machine.levels]
    whole = Network(
        pes_per_node=72,
        links_per_node=links,
        levels=machine.levels,
        measured={"all_gather": lines},
    )
    result = aligned(whole, Layout(data=16, pipeline=18))
    assert (result.pes_per_node, result.links_per_node) == (48, left)
    assert result.levels == [(48, 1e-6, 1e11, 1.0), (384, 2e-6, 5e10, 2.0)]
    assert result.measured == {"all_gather": [result.levels]}
    assert aligned(result, Layout(data=16, pipeline=18)) == result


@pytest.mark.parametrize(
    ("degrees", "used"),
    [
        ({"data": 72, "pipeline": 4}, 72),
        ({"data": 64, "pipeline": 4}, 64),
        ({"data": 16, "pipeline": 12}, 64),
        # A fifth rack is not there: all PEs of four are used, and groups are cut.
        ({"data": 48, "pipeline": 5}, 72),
        ({"data": 16, "pipeline": 18}, 72),
    ],
)
def test_whole_groups_of_four_racks(degrees, used):
    assert list_used(build_machine(72, 4608), Layout(**degrees), 288)[0] == used
