"""Graphs: their contents, and what is refused."""

import pytest

from paradl.grids.graphs.graph import NamedTensor, Operator, link_operators
from paradl.grids.reading.errors import InputError


def link(names, *tensors):
    operators = [Operator(name, 1.0, 2.0) for name in names]
    return link_operators(
        "toy", operators, [NamedTensor(*tensor) for tensor in tensors], where="here"
    )


def test_operators_stand_in_an_order_in_which_they_run():
    graph = link("cab", ("a", ("b", "c"), 8.0), ("b", ("c",), 4.0))
    assert [operator.name for operator in graph.operators] == ["a", "b", "c"]
    assert [(tensor.maker, tensor.takers) for tensor in graph.tensors] == [(0, (1, 2)), (1, (2,))]
    assert (graph.forward, graph.backward, graph.serial_time) == (3.0, 6.0, 9.0)


REFUSED = [
    ((), (), "here:"),
    ("aa", (), "here:"),
    ("ab", [("a", ("c",), 1.0)], "here:"),
    ("ab", [("c", ("a",), 1.0, "line 3")], "line 3: unknown operator 'c'"),
    ("ab", [("a", (), 1.0)], "here:"),
    ("ab", [("a", ("b", "b"), 1.0)], "here:"),
    ("ab", [("a", ("a",), 1.0)], "here: operators wait for each other: 'a' -> 'a'"),
    (
        "abcd",
        [("a", ("b",), 1.0), ("b", ("c",), 1.0), ("c", ("b", "d"), 1.0)],
        "here: operators wait for each other: 'b' -> 'c' -> 'b'",
    ),
]


@pytest.mark.parametrize(("names", "tensors", "message"), REFUSED)
def test_what_is_no_graph_is_refused(names, tensors, message):
    with pytest.raises(InputError) as error:
        link(names, *tensors)
    assert str(error.value).startswith(message)
    assert len(str(error.value)) < 1000


def test_a_cycle_is_stated_in_the_order_in_which_tensors_flow():
    with pytest.raises(InputError, match="'a' -> 'b' -> 'c' -> 'a'"):
        link("abc", ("a", ("b",), 1.0), ("b", ("c",), 1.0), ("c", ("a",), 1.0))
