"""The layer table: columns, counts."""

from collections.abc import Callable

import numpy as np
import pytest

from grids.models.layers import KINDS, Layer, LayerTable


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
    return Layer(name, kind, extents_x=ones, extents_y=ones, kernel=ones, **{**rest, **counts})


@pytest.fixture
def table() -> LayerTable:
    return LayerTable.from_layers(
        [
            layer("conv1", "conv", w=10.0, bias=2.0, flops=100.0),
            layer("norm1", "norm", w=2.0, bias=2.0, flops=50.0),
            layer("fc1", "fc", w=20.0, bias=0.0, flops=40.0),
        ]
    )


def test_columns(table: LayerTable) -> None:
    assert len(table) == 3
    assert table.names == ("conv1", "norm1", "fc1")
    assert set(table.kinds) < set(KINDS)
    assert table.w.tolist() == [10, 2, 20]
    assert table.extents_x.shape == table.extents_y.shape == table.kernel.shape == (3, 3)
    assert table.x.dtype == table.kernel.dtype == np.float64


COUNTS: list[tuple[Callable[[LayerTable], float], float]] = [
    (lambda table: table.parameters, 36),
    (lambda table: table.macs, 70),  # half the operations of conv and fc
]


@pytest.mark.parametrize(("count", "expected"), COUNTS)
def test_counts(table: LayerTable, count: Callable[[LayerTable], float], expected: float) -> None:
    assert count(table) == expected
