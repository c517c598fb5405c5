"""Steps that read earlier outputs by name, and repeated steps."""

import pytest
from steps import infer_table, list_column

from paradl.grids.reading.errors import InputError


def test_reading_goes_on_from_an_earlier_step() -> None:
    table = infer_table(
        {"linear": {"features": 2, "name": "a"}}, {"linear": 3}, {"read": "a"}, "relu"
    )
    assert table.inputs == ((-1,), (0,), (0,))
    assert table.y[-1] == 2 * 5


def test_what_was_read_is_joined_and_added() -> None:
    table = infer_table(
        {"linear": {"features": 6, "name": "a"}},
        {"linear": {"features": 4, "name": "b"}},
        {"concat": [[], [{"read": "a"}]]},
        {"residual": {"body": [{"linear": 6}], "shortcut": [{"read": "sample"}]}},
    )
    assert table.inputs[2] == (1, 0)
    assert table.inputs[-1] == (3, -1)


def test_names_inside_are_looked_up_from_the_innermost_step_outwards() -> None:
    inner = [{"linear": {"features": 6, "name": "a"}}, "relu", {"read": "a"}, "tanh"]
    table = infer_table(
        {"linear": {"features": 6, "name": "a"}}, {"residual": {"body": inner, "name": "block"}}
    )
    assert table.names == ("a", "block.a", "block.relu1", "block.tanh1", "block.add")
    assert table.inputs[3] == (1,)
    outside = infer_table({"linear": {"features": 6, "name": "a"}}, {"residual": inner[2:]})
    assert outside.inputs[1] == (0,)


def test_a_step_inside_is_named_from_outside() -> None:
    body = {"body": [{"linear": {"features": 6, "name": "a"}}], "name": "block"}
    table = infer_table({"residual": body}, {"read": "block.a"}, "relu", {"read": "block"}, "tanh")
    assert table.names[1:] == ("block.add", "relu1", "tanh1")
    assert table.inputs[2:] == ((0,), (1,))


def test_layers_that_are_repeated_have_weights_of_their_own() -> None:
    table = infer_table({"repeat": {"times": 3, "layers": [{"linear": 6}], "name": "block"}})
    assert table.names == ("block.1.linear1", "block.2.linear1", "block.3.linear1")
    assert table.inputs == ((-1,), (0,), (1,))
    assert list_column(table, "w") == [36, 36, 36]


@pytest.mark.parametrize("reference", ["b", "block.b", "relu2"])
def test_no_step_reads_what_is_not_there_yet(reference: str) -> None:
    with pytest.raises(InputError, match=f"layer read1: no step '{reference}' before it; .*known"):
        infer_table("relu", {"read": reference}, {"linear": {"features": 6, "name": "b"}}, "relu")
