"""No feature is an oracle's answer; sums over layers are right by hand."""

from pathlib import Path

import numpy as np
import pytest

from paradl.grids.entries.parameters import PARAMETERS
from paradl.grids.grid import Grid
from paradl.kernels.names.stored import ANSWERS
from paradl.kernels.names.terms import TERMS
from paradl.sweep.samples.columns import list_columns
from paradl.sweep.samples.features import FEATURES
from paradl.sweep.samples.model_features import MODEL
from paradl.sweep.samples.space import read_space
from paradl.sweep.surrogates.surrogate import load_surrogate

SPEC = Path(__file__).parents[3] / "examples" / "surrogate.yaml"


def test_no_feature_is_an_answer_a_term_or_a_time(trained):
    answers = {
        column.name for column in list_columns((), ()) if column.role not in ("feature", "label")
    }
    assert not answers & set(FEATURES)
    assert not {*TERMS, *ANSWERS} & set(FEATURES)
    # Times are parameters of a machine or latencies.
    seconds = {name for name, feature in FEATURES.items() if feature.unit == "s"}
    assert all(name in PARAMETERS or name.endswith("_latency") for name in seconds)
    surrogate = load_surrogate(trained)
    assert set(surrogate.encoding.watched) <= set(FEATURES)


@pytest.fixture(scope="module")
def table():
    """Two convolutions, 3 -> 8 with stride 2, 8 -> 16 in two groups, a ReLU between, on 8 x 8."""
    layers = [
        {"conv": {"filters": 8, "kernel": 3, "stride": 2, "padding": 1, "bias": False}},
        "relu",
        {"conv": {"filters": 16, "kernel": 3, "padding": 1, "groups": 2, "bias": False}},
    ]
    spec = {
        "axes": {
            "model": {"name": "two", "rank": 2, "layers": layers},
            "dataset": {"name": "tiny", "samples": 10, "shape": [3, 8, 8], "targets": 2},
            "system": "abci",
            "pe": 4,
            "batch": {"uniform": [1, 2]},
        }
    }
    grid: Grid = read_space(spec).grid
    return grid.fitting[0, 0]


def test_sums_over_layers_by_hand(table):
    first, second = 16 * 8 * 27, 16 * 16 * 36  # 4 x 4 places
    values = {name: feature.read(table) for name, feature in MODEL.items()}
    assert values["convolution_macs"] == values["divisible_macs"] == first + second
    assert values["later_macs"] == second
    assert values["macs_over_channels"] == pytest.approx(first / 3 + second / 8)
    assert values["macs_over_both"] == pytest.approx(first / 24 + second / 128)
    assert values["fetched_items"] == second * 2 / 16
    assert values["moved_items"] == 2 * 128  # of the ReLU
    assert values["multiplied_items"] == 192 + 128 + 128 + 256
    assert values["halo_layers"] == 2
    # Half a row of 3 x 8 x 8 on two sides, and a row of 8 x 4 x 4.
    assert values["halo_items"] == 2 * 0.5 * 24 + 2 * 1 * 32
    assert values["rows2_macs"] == (first + second) / 4
    assert values["stage2_macs"] == second
    assert values["stage2_crossing"] == 128
    assert values["weighted_layers"] == 2


def test_the_example_has_networks_of_many_families():
    grid = read_space(SPEC).grid
    networks = {model for model, _ in grid.fitting}
    assert len(networks) > 60
    values = np.array(
        [[feature.read(table) for feature in MODEL.values()] for table in grid.fitting.values()]
    )
    assert np.isfinite(values).all()
    assert (values >= 0).all()
