"""Features of a model: counts and sizes of its layers, for samples of one shape."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from grids.models.kinds import KINDS
from grids.models.layers import Floats, LayerTable

# Percentiles of layers' sizes.
QUANTILES = (10, 50, 90)
Read = Callable[[LayerTable], float]


@dataclass(frozen=True)
class Feature:
    """A number that learners are given of each row."""

    unit: str
    meaning: str


@dataclass(frozen=True)
class ModelFeature(Feature):
    """A number of a network's layers, for samples of one shape."""

    read: Read


def _count_kind(kind: str) -> Read:
    return lambda table: table.kinds.count(kind)


def _rank(column: str, percent: int) -> Read:
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


def make_features(rows: Mapping[str, tuple[str, Read]]) -> dict[str, ModelFeature]:
    """The features of rows `name: (meaning, read)`; all are numbers without a unit."""
    return {name: ModelFeature("1", *row) for name, row in rows.items()}


SIZES = {"flops": "operations a sample, forward", "w": "weights", "y": "items of output a sample"}
COUNTS = make_features(
    {
        "layer_count": ("layers", len),
        **{f"{kind}_layers": (f"layers of the kind {kind}", _count_kind(kind)) for kind in KINDS},
        "parameter_count": ("weights and biases", lambda table: table.parameters),
        "macs": ("multiply-accumulates a sample, forward", lambda table: table.macs),
        "activations": ("items of all layers' outputs a sample", lambda table: table.y.sum()),
        "kept_activations": (
            "items a sample that the backward pass reads",
            lambda table: table.kept_items.sum(),
        ),
        "largest_activation": (
            "items a sample of the largest output",
            lambda table: table.y.max(),
        ),
        "largest_weights": (
            "weights of the layer that has the most",
            lambda table: table.w.max(),
        ),
        "largest_crossing": (
            "items a sample of the largest cut",
            lambda table: table.crossing.max(),
        ),
        "intensity": ("operations an item that is read or written", _measure_intensity),
        "depth": ("layers that multiply, on the longest way", lambda table: table.depth),
        "sample_items": ("items of a sample", lambda table: table.x[0]),
        "dimensions": ("spatial dimensions", lambda table: 3.0 if table.volumetric else 2.0),
        "least_filters": (
            "filters of the convolution that has the fewest",
            lambda table: _find_least(table.filters, table.convolutions),
        ),
        "least_channels": (
            "channels of the convolution that has the fewest, but the first",
            _find_least_channels,
        ),
        **{
            f"layer_{column}_p{percent}": (
                f"{percent}th percentile over layers that multiply of {words}",
                _rank(column, percent),
            )
            for column, words in SIZES.items()
            for percent in QUANTILES
        },
    }
)
