"""Memory: the formula's factors, and what each strategy divides of it."""

import pytest
from toys import LAYERS, PROCESSOR, TIMES, placement

from kernels.division import Division
from kernels.memory import memory
from kernels.strategy import group_work

WHOLE = 4 * (2 * 2 * (224 + 202) + 2 * 1640 + 22)  # b = 2, 4 bytes an item


def needed(group, split=(1, 1, 0), factors=(1, 1, 1), ends=(3,), p2=1.0, gamma=1.0):
    """Bytes of the toy for 2 samples."""
    places = placement(split, factors, ends)
    work = group_work(Division(LAYERS, PROCESSOR, places, p2, 4.0, group), TIMES)
    return memory(work, 2.0, 4.0 * gamma)


def test_one_pe_holds_everything() -> None:
    assert needed("none") == WHOLE


def test_reuse_leaves_a_part() -> None:
    assert needed("none", gamma=0.25) == WHOLE / 4


def test_filter_and_channel_divide_weights_alone() -> None:
    expected = 4 * (2 * 2 * (224 + 202) + 2 * (360 / 2 + 1280) + 22)
    assert needed("filter", p2=2.0) == needed("channel", p2=2.0) == expected


def test_spatial_divides_activations_alone() -> None:
    expected = 4 * (2 * 2 * (288 / 2 + 138) + 2 * 1640 + 22)
    assert needed("spatial", factors=(1, 1, 2), p2=2.0) == expected


def test_the_fullest_stage_of_a_pipeline_counts() -> None:
    convolutions = 4 * (2 * 2 * 288 + 2 * 360 + 12)
    fully_connected = 4 * (2 * 2 * 138 + 2 * 1280 + 10)
    assert needed("pipeline", ends=(2, 3), p2=2.0) == max(convolutions, fully_connected)
    assert fully_connected > convolutions


@pytest.mark.parametrize("group", ["spatial", "filter", "channel", "pipeline"])
def test_a_group_of_one_holds_as_much_as_one_pe(group) -> None:
    assert needed(group) == WHOLE
