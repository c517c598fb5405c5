"""Memory: the formula's factors, and what each strategy divides of it."""

import pytest
from toys import TIMES, divide, placement

from paradl.kernels.options import Options
from paradl.kernels.oracle.reduction import reduce_part
from paradl.kernels.oracle.table_iii import reduce_table
from paradl.kernels.paper.sums import find_fullest

pytestmark = pytest.mark.usefixtures("in_numpy")

WHOLE = 4 * (2 * 2 * (224 + 202) + 2 * 1640 + 22)  # b = 2, 4 bytes an item


def needed(group, split=(1, 1, 0), factors=(1, 1, 1), ends=(3,), p2=1.0, gamma=1.0):
    """Bytes of the toy for 2 samples."""
    places = placement(split, factors, ends)
    work = reduce_table(divide(places, p2, group), TIMES)
    return 4.0 * gamma * find_fullest(work.activations, work.parameters, 2.0)


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


def alive(group, p2=1.0, recompute="none", segments=1.0, ends=(3,), factors=(1, 1, 1)):
    """Bytes of the toy for 2 samples, tensor by tensor; 12 bytes a weight."""
    options = Options(oracle="machine", recompute=recompute)
    division = divide(
        placement(factors=factors, ends=ends),
        p2,
        group,
        options=options,
        segments=segments,
        state_bytes=12.0,
    )
    work = reduce_part(division, TIMES)
    return float(find_fullest(work.activations, work.parameters, 2.0))


STATES = 12 * (76 + 296 + 1290)


def test_what_is_alive_is_the_fullest_moment_of_a_pass() -> None:
    """conv1 keeps 96 items, conv2 128; their gradients are 96 and 192 items, fc's 138."""
    moments = (96 + 96, 96 + 128 + 192, 96 + 128 + 138)
    assert alive("none") == 2 * 4 * max(moments) + STATES


def test_gathered_outputs_are_whole_and_weights_divided() -> None:
    states = 12 * (36 + 144 + 1280 + 22)
    assert alive("filter", p2=2.0) == alive("channel", p2=2.0) == 2 * 4 * 416 + states


def test_a_spatial_group_holds_rows_of_every_layer_that_has_some() -> None:
    """Half of both convolutions; the inputs of fc are points."""
    assert alive("spatial", p2=2.0, factors=(1, 1, 2)) == 2 * 4 * (48 + 64 + 138) + STATES


def test_a_stage_keeps_what_waits_and_what_it_got() -> None:
    """Two segments: the first stage keeps 224 items, the second gets 128 and keeps none."""
    first = 2 * 4 * (224 / 2 + 416 / 2) + 12 * (76 + 296)
    second = 2 * 4 * (128 + 138 / 2) + 12 * 1290
    needed = alive("pipeline", p2=2.0, segments=2.0, ends=(2, 3))
    assert needed == max(first, second) == second
    more = 2 * 4 * (224 * 3 / 4 + 416 / 4) + 12 * (76 + 296)
    assert alive("pipeline", 2.0, segments=4.0, ends=(2, 3)) == max(
        more, 2 * 4 * (128 + 138 / 4) + 12 * 1290
    )


@pytest.mark.parametrize("group", ["none", "spatial", "filter", "channel", "pipeline"])
@pytest.mark.parametrize("segments", [1.0, 4.0])
def test_recomputing_never_takes_more(group, segments) -> None:
    p2, ends = (2.0, (2, 3)) if group == "pipeline" else (1.0, (3,))
    usual = alive(group, p2, segments=segments, ends=ends)
    assert alive(group, p2, "full", segments, ends) <= usual


@pytest.mark.parametrize("group", ["spatial", "filter", "channel", "pipeline"])
def test_one_pe_of_any_group_holds_the_same(group) -> None:
    assert alive(group, segments=4.0) == alive("none")
