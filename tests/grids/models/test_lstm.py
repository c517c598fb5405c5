"""LSTMs: layers counted by hand, and what they keep."""

import pytest
from steps import IMAGE, infer_table, list_column

from paradl.grids.reading.errors import InputError

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
