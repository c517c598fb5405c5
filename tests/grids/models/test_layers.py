"""The layer table: columns, counts."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from paradl.grids.models.layers import MOST_LAYERS, Layer, LayerTable
from paradl.grids.models.tensors import NO_ROLE
from paradl.grids.reading.errors import InputError


def layer(name: str, kind: str, **counts: float) -> Layer:
    ones = (1.0, 1.0, 1.0)
    rest = {
        "x": 1.0,
        "y": 1.0,
        "w": 0.0,
        "bias": 0.0,
        "flops": 1.0,
        "channels": 1.0,
        "filters": 1.0,
    }
    return Layer(
        name,
        kind,
        extents_x=ones,
        extents_y=ones,
        kernel=ones,
        stride=ones,
        inputs=None,
        role=NO_ROLE,
        **{**rest, **counts},
    )


@pytest.fixture
def table() -> LayerTable:
    return LayerTable.from_layers(
        [
            layer("conv1", "conv", w=10.0, bias=2.0, flops=100.0),
            layer("norm1", "norm", w=2.0, bias=2.0, flops=50.0),
            layer("fc1", "fc", w=20.0, bias=0.0, flops=40.0),
        ]
    )


def test_layers_that_tell_no_inputs_are_a_chain(table: LayerTable) -> None:
    assert table.inputs == ((-1,), (0,), (1,))


def test_a_layer_reads_what_was_made_before_it() -> None:
    for inputs in ((), (1,), (2,), (-2,)):
        with pytest.raises(AssertionError):
            LayerTable.from_layers([layer("a", "fc"), replace(layer("b", "add"), inputs=inputs)])


@pytest.mark.parametrize(
    ("layers", "message"),
    [
        ([layer("a", "geluu")], "layer 'a': unknown kind 'geluu'; did you mean 'gelu'?"),
        ([layer("a", "other")], "layer 'a': unknown kind 'other'; known: add, "),
        ([], "no layers"),
        ([layer("a", "relu")] * (MOST_LAYERS + 1), "expected at most 5,000 layers, got 5,001"),
        ([layer("a", "fc", w=2e18)], "layer 'a': expected at most 1e+18 of weights"),
        ([layer("a", "fc", flops=10**400)], "layer 'a': expected at most 1e+18 of operations"),
        ([layer("a", "fc", x=float("nan"))], "layer 'a': expected at most 1e+18 of input items"),
    ],
)
def test_what_is_no_network_is_refused(layers: list[Layer], message: str) -> None:
    with pytest.raises(InputError) as error:
        LayerTable.from_layers(layers)
    assert str(error.value).startswith(message)


COUNTS: list[tuple[Callable[[LayerTable], float], float]] = [
    (lambda table: table.parameters, 36),
    (lambda table: table.macs, 70),  # half the operations of conv and fc
]


@pytest.mark.parametrize(("count", "expected"), COUNTS)
def test_counts(table: LayerTable, count: Callable[[LayerTable], float], expected: float) -> None:
    assert count(table) == expected
