"""Features of a model: counts and sizes of its layers, for samples of one shape."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from grids.models.kinds import KINDS
from grids.models.layers import Floats, LayerTable

# Of layers' sizes.
QUANTILES = (10, 50, 90)


@dataclass(frozen=True)
class Feature:
    """What a feature is: its unit, its meaning."""

    unit: str
    meaning: str


@dataclass(frozen=True)
class ModelFeature(Feature):
    """A number of a network's layers, for samples of one shape."""

    read: Callable[[LayerTable], float]


def _count_kind(kind: str) -> Callable[[LayerTable], float]:
    return lambda table: float(table.kinds.count(kind))


def _rank(column: str, percent: int) -> Callable[[LayerTable], float]:
    """A percentile of the layers that multiply by weights; 0 where none does."""

    def read(table: LayerTable) -> float:
        values = getattr(table, column)[table.multiplying]
        return float(np.percentile(values, percent)) if values.size else 0.0

    return read


def _find_least(values: Floats, chosen: NDArray[np.bool_]) -> float:
    """The least of the chosen values; 0 where there are none."""
    return float(values[chosen].min(initial=np.inf)) if chosen.any() else 0.0


def _find_least_channels(table: LayerTable) -> float:
    # The first layer has the sample's few channels, and is not split (grids/inputs/placement.py).
    later = np.arange(len(table)) != int(np.argmax(table.convolutions))
    return _find_least(table.channels, table.convolutions & later)


def _measure_intensity(table: LayerTable) -> float:
    moved = table.x.sum() + table.y.sum() + table.w.sum()
    return float(table.flops.sum() / moved)


SIZES = {"flops": "operations a sample, forward", "w": "weights", "y": "items of output a sample"}
COUNTS: dict[str, ModelFeature] = {
    "layer_count": ModelFeature("1", "layers", lambda table: float(len(table))),
    **{
        f"{kind}_layers": ModelFeature("1", f"layers of the kind {kind}", _count_kind(kind))
        for kind in KINDS
    },
    "parameter_count": ModelFeature(
        "1", "weights and biases", lambda table: float(table.parameters)
    ),
    "macs": ModelFeature("1", "multiply-accumulates a sample, forward", lambda table: table.macs),
    "activations": ModelFeature(
        "1", "items of all layers' outputs a sample", lambda table: float(table.y.sum())
    ),
    "kept_activations": ModelFeature(
        "1", "items a sample that the backward pass reads", lambda table: table.kept_items.sum()
    ),
    "largest_activation": ModelFeature(
        "1", "items a sample of the largest output", lambda table: float(table.y.max())
    ),
    "largest_weights": ModelFeature(
        "1", "weights of the layer that has the most", lambda table: float(table.w.max())
    ),
    "largest_crossing": ModelFeature(
        "1", "items a sample of the largest cut", lambda table: float(table.crossing.max())
    ),
    "intensity": ModelFeature(
        "1", "operations an item that is read or written", _measure_intensity
    ),
    "depth": ModelFeature(
        "1", "layers that multiply, on the longest way", lambda table: float(table.depth)
    ),
    "sample_items": ModelFeature("1", "items of a sample", lambda table: float(table.x[0])),
    "dimensions": ModelFeature(
        "1", "spatial dimensions", lambda table: 3.0 if table.volumetric else 2.0
    ),
    "least_filters": ModelFeature(
        "1",
        "filters of the convolution that has the fewest",
        lambda table: _find_least(table.filters, table.convolutions),
    ),
    "least_channels": ModelFeature(
        "1", "channels of the convolution that has the fewest, but the first", _find_least_channels
    ),
    **{
        f"layer_{column}_p{percent}": ModelFeature(
            "1",
            f"{percent}th percentile over layers that multiply of {words}",
            _rank(column, percent),
        )
        for column, words in SIZES.items()
        for percent in QUANTILES
    },
}
