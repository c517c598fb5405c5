"""Elasticities against central differences of predictions, parameter by parameter."""

import json
import math
from itertools import product

import pytest
from open_answers import list_sensitivities

import paradl
from paradl.grids.design_space import SpaceValues, make_grid
from paradl.grids.entries.parameters import PARAMETERS
from paradl.grids.reading.errors import InputError

STEP = 1e-4


def ask(oracle, strategy, **parameters):
    """All elasticities of AlexNet on 16 PEs."""
    options = SpaceValues(
        *("alexnet", 16, 32, "imagenet", "abci"),
        strategy=strategy,
        parameters=parameters,
        settings={"oracle": oracle},
    )
    return list_sensitivities(make_grid(options))


def predict(oracle, strategy, **parameters):
    return paradl.predict(
        "alexnet",
        strategy,
        16,
        32,
        dataset="imagenet",
        system="abci",
        parameters={
            name: f"{value!r} {PARAMETERS[name].unit}".removesuffix(" 1")
            for name, value in parameters.items()
        },
        settings={"oracle": oracle},
    )["epoch_time"]


# `inter_latency` sets all levels beyond the node to one value: on ABCI 16 PEs see the first alone.
CASES = [
    (
        "paper",
        "data+filter:group=4",
        ("inter_bandwidth", "inter_latency", "intra_bandwidth", "memory_bandwidth"),
    ),
    ("machine", "data", ("inter_bandwidth", "flow", "jitter", "layer_overhead", "peak_flops")),
]


@pytest.mark.parametrize(("oracle", "strategy", "names"), CASES)
def test_against_central_differences(oracle, strategy, names):
    rows = {row["parameter"]: row for row in ask(oracle, strategy)}
    for name in names:
        value = rows[name]["value"]
        up, down = (
            predict(oracle, strategy, **{name: value * factor}) for factor in (1 + STEP, 1 - STEP)
        )
        slope = math.log(up / down) / math.log((1 + STEP) / (1 - STEP))
        assert rows[name]["elasticity"] == pytest.approx(slope, rel=1e-5, abs=1e-9), name


def test_upgrades_are_predictions():
    strategy, phi = "data+filter:group=4", {"phi": 1.5}
    rows = ask("paper", strategy, **phi)
    changes = [row["change"] for row in rows if row["change"] is not None]
    assert changes == sorted(changes)
    # No contention is less than 1.
    assert next(row["change"] for row in rows if row["parameter"] == "phi") is None
    row = next(row for row in rows if row["parameter"] == "inter_bandwidth")
    doubled = predict("paper", strategy, **phi, inter_bandwidth=2 * row["value"])
    assert row["upgrade"] == "doubled"
    assert row["change"] == pytest.approx(doubled / predict("paper", strategy, **phi) - 1, rel=1e-6)


def test_only_the_paper_s_parameters_of_the_paper_s_oracle():
    assert all(
        PARAMETERS[row["parameter"]].oracle != "machine"
        for row in ask("paper", "data+filter:group=4")
    )


def test_what_is_zero_has_no_row(cli):
    place = ("--model", "alexnet", "--dataset", "imagenet", "--system", "abci")
    named = {}
    for value in ("0", "1e-6"):
        code, out, err = cli(
            *("sensitivity", *place, "--strategy", "data", "--pe", "8", "--batch", "8"),
            *("--set", f"inter_latency={value}"),
            *("--calibration", "none", "--format", "json"),
        )
        assert (code, err) == (0, "")
        named[value] = {row["parameter"] for row in json.loads(out)}
    # `startup` is a factor on the latency.
    assert named["1e-6"] - named["0"] == {"inter_latency", "startup"}
    assert "inter_bandwidth" in named["0"]


def test_too_many_cells():
    grid = make_grid(
        SpaceValues(
            "alexnet", pe="1..2000", dataset="imagenet", system="abci", batch=8, strategy="data"
        )
    )
    with pytest.raises(InputError, match="2,000 cells"):
        list_sensitivities(grid)


def test_rows_are_in_the_order_of_the_labels_and_then_of_the_axes():
    """As nested loops: models slowest, then strategies, PE counts, batches."""
    options = SpaceValues(
        *(["vgg16", "alexnet"], [16, 8], [32, 16], "imagenet", "abci"),
        strategy=["data+filter:group=4", "data"],
        settings={"oracle": "paper"},
    )
    rows = list_sensitivities(make_grid(options))
    keys = ("model", "strategy", "pe", "batch")
    cells = list(dict.fromkeys(tuple(row[key] for key in keys) for row in rows))
    assert cells == list(
        product(["vgg16", "alexnet"], ["data+filter:group=4", "data"], [8, 16], [16, 32])
    )
