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
    message = "expected an image, got 5 positions of 6; .* use 'linear'"
    with pytest.raises(InputError, match=message):
        infer_table(step)
