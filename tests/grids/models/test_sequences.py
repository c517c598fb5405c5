"""Sequences: the effect of their steps on a sample, and what is refused."""

import pytest
from steps import IMAGE, infer_table, list_column

from paradl.grids.reading.errors import InputError


def test_a_matrix_for_each_position() -> None:
    table = infer_table({"linear": 4}, {"linear": {"features": "targets", "bias": False}})
    assert table.kinds == ("linear", "linear")
    assert list_column(table, "x") == [30, 20]
    assert list_column(table, "y") == [20, 35]
    assert list_column(table, "w") == [24, 28]
    assert list_column(table, "bias") == [4, 0]
    assert list_column(table, "flops") == [2 * 24 * 5, 2 * 28 * 5]
    assert table.multipliers == ("matmul",)


def test_no_group_divides_the_positions_of_a_sequence() -> None:
    table = infer_table({"linear": 4}, "layernorm")
    assert table.extents_x.tolist() == table.extents_y.tolist() == [[1, 1, 1]] * 2
    assert not table.windowed.any()


def test_patches_of_an_image_as_a_sequence() -> None:
    table = infer_table(
        {"conv": {"filters": 8, "kernel": 2, "stride": 2}},
        "to_sequence",
        "class_token",
        "positions",
        "layernorm",
        "first_token",
        {"fc": "targets"},
        shape=IMAGE,
    )
    assert table.kinds == ("conv", "class_token", "positions", "norm", "fc")
    assert list_column(table, "y") == [8 * 4, 8 * 5, 8 * 5, 8 * 5, 7]
    assert list_column(table, "w") == [8 * 3 * 4, 8, 8 * 5, 8, 8 * 7]
    assert list_column(table, "bias") == [8, 0, 0, 8, 7]
    assert table.inputs == ((-1,), (0,), (1,), (2,), (3,))  # views are no layers
    assert list_column(table, "x")[-1] == 8


@pytest.mark.parametrize("step", [{"linear": 4}, "class_token", "positions", "first_token"])
def test_an_image_is_no_sequence(step: object) -> None:
    message = r"expected a sequence, got an image of 3x4x4; write 'to_sequence' before it"
    with pytest.raises(InputError, match=message):
        infer_table(step, shape=IMAGE)


@pytest.mark.parametrize("step", [{"conv": {"filters": 4, "kernel": 1}}, {"maxpool": 2}])
def test_no_window_slides_over_a_sequence(step: object) -> None:
    message = "expected an image, got 5 positions of 6; use 'linear'"
    with pytest.raises(InputError, match=message):
        infer_table(step)


T, C, H = 5, 6, 4  # positions, features, units


def test_an_lstm_by_hand() -> None:
    table = infer_table({"lstm": {"hidden": H, "name": "a"}})
    assert table.names == ("a.input", "a.recurrent", "a.gates")
    assert table.kinds == ("linear", "recurrent", "gates")
    assert list_column(table, "w") == [C * 4 * H, H * 4 * H, 0]
    assert list_column(table, "bias") == [4 * H, 4 * H, 0]
    assert list_column(table, "x") == [T * C, T * 4 * H, T * 4 * H]
    assert list_column(table, "y") == [T * 4 * H, T * 4 * H, T * H]
    assert list_column(table, "flops")[:2] == [2 * T * C * 4 * H, 2 * T * H * 4 * H]
    # The input takes one product for all positions; the recurrence takes one per position.
    assert table.steps.tolist() == [1, T, T]
    assert table.reads.tolist() == [1, (2 * T + 1) / 3, 1]
    assert table.channels.tolist()[1] == H
    assert table.filters.tolist()[1] == 4 * H


def test_one_position_is_one_product() -> None:
    table = infer_table({"lstm": H}, shape=(C, 1))
    assert table.steps.tolist() == table.reads.tolist() == [1, 1, 1]


def test_what_an_lstm_keeps() -> None:
    table = infer_table({"lstm": H})
    # The sample with the first layer, whose sums become gates in place; the units and their state.
    assert list_column(table, "kept_items") == [T * C, T * 4 * H, 2 * T * H]


def test_a_projection_is_fed_back() -> None:
    table = infer_table({"lstm": {"hidden": H, "projection": 2, "biases": 1}})
    assert table.kinds == ("linear", "recurrent", "gates", "recurrent")
    assert list_column(table, "w") == [C * 16, 2 * 16, 0, H * 2]
    assert list_column(table, "bias") == [16, 0, 0, 0]
    assert table.steps.tolist() == [1, T, T, T]
    assert table.y[-1] == T * 2


def test_both_ways_read_the_same_and_are_put_side_by_side() -> None:
    table = infer_table({"linear": C}, {"lstm": {"hidden": H, "bidirectional": True, "name": "a"}})
    assert table.names[1::3] == ("a.forward.input", "a.backward.input", "a.concat")
    assert table.inputs[1] == table.inputs[4] == (0,)
    assert table.inputs[-1] == (3, 6)
    assert table.y[-1] == T * 2 * H


def test_layers_on_top_of_each_other() -> None:
    two = infer_table({"lstm": {"hidden": H, "layers": 2, "name": "a"}})
    assert two.names[::3] == ("a.1.input", "a.2.input")
    assert two.inputs[3] == (2,)
    assert two.parameters == sum(
        infer_table({"lstm": H}, shape=(features, T)).parameters for features in (C, H)
    )


def test_an_image_is_fed_to_no_lstm() -> None:
    message = "layer lstm1: expected a sequence, got an image of 3x4x4; write 'to_sequence' before"
    with pytest.raises(InputError, match=message):
        infer_table({"lstm": H}, shape=IMAGE)
    assert len(infer_table("to_sequence", {"lstm": H}, shape=IMAGE)) == 3
