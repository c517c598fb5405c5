"""Attention: layers counted by hand, and mismatches."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError
from steps import infer_table, list_column

from paradl.grids.library import find
from paradl.grids.models.architecture import Architecture
from paradl.grids.models.layers import LayerTable
from paradl.grids.reading.errors import InputError, ShapeError
from paradl.grids.reading.yamlfile import explain_error

T, C = 5, 6  # positions, features
ENCODER = {"linear": {"features": 6, "name": "encoder"}}


def rows(table: LayerTable) -> dict[str, int]:
    return {name.rpartition(".")[2]: row for row, name in enumerate(table.names)}


def test_self_attention_by_hand() -> None:
    table = infer_table({"attention": {"heads": 2, "features": 4, "name": "a"}})
    parts = ("query", "key", "value", "scores", "softmax", "context", "output")
    assert table.names == tuple(f"a.{part}" for part in parts)
    assert table.kinds == (*["linear"] * 3, "matmul", "softmax", "matmul", "linear")
    assert list_column(table, "w") == [24, 24, 24, 0, 0, 0, 24]
    assert list_column(table, "bias") == [4, 4, 4, 0, 0, 0, 6]
    assert list_column(table, "y") == [20, 20, 20, 2 * 25, 2 * 25, 20, 30]
    assert list_column(table, "x") == [30, 30, 30, 20 + 20, 50, 50 + 20, 20]
    # 2 T T d per head; a linear layer, 2 T C x features.
    assert list_column(table, "flops") == [240, 240, 240, 200, 50, 200, 240]
    assert list_column(table, "channels")[3:6:2] == [2, T]
    assert list_column(table, "filters")[3:6:2] == [T, 2]
    assert table.inputs == ((-1,), (-1,), (-1,), (0, 1), (3,), (4, 2), (5,))


@pytest.mark.parametrize("window", [2, T, 99])
def test_a_window_limits_the_positions_that_a_query_reads(window: int) -> None:
    table, keys = infer_table({"attention": {"heads": 2, "window": window}}), min(window, T)
    plain = infer_table({"attention": 2})
    at = rows(table)
    for name in ("scores", "softmax", "context"):
        assert table.flops[at[name]] * T == plain.flops[at[name]] * keys
    assert table.y[at["softmax"]] == 2 * T * keys
    assert table.y[at["context"]] == plain.y[at["context"]]


def test_what_is_kept_of_attention() -> None:
    table = infer_table({"attention": 2})
    # The sample with the first layer; everything but the scores, whose softmax is kept.
    assert list_column(table, "kept_items") == [30 + 30, 30, 30, 0, 50, 30, 0]


def test_attention_to_what_an_earlier_step_gives() -> None:
    table = infer_table(
        {"linear": {"features": 8, "name": "encoder"}},
        {"read": "sample"},
        {"linear": {"features": 4, "name": "decoder"}},
        {"attention": {"heads": 2, "keys": "encoder"}},
    )
    at = rows(table)
    assert table.w[[at["query"], at["key"], at["value"], at["output"]]].tolist() == [16, 32, 32, 16]
    assert table.inputs[at["query"]] == (at["decoder"],)
    assert table.inputs[at["key"]] == table.inputs[at["value"]] == (at["encoder"],)
    # Later layers read both, so each crosses the cut after the decoder's first layer once.
    assert table.crossing[at["decoder"]] == 8 * T + 4 * T


@pytest.mark.parametrize(("normalise", "biases"), [(True, [6, 1]), (False, [0, 0])])
def test_additive_attention_by_hand(normalise: bool, biases: list[int]) -> None:
    settings = {"score": "additive", "keys": "encoder", "normalise": normalise, "name": "a"}
    table = infer_table(ENCODER, {"attention": settings})
    parts = ("query", "key", "sum", "tanh", "scores", "softmax", "context")
    assert table.names == ("encoder", *(f"a.{part}" for part in parts))
    assert table.kinds[3:] == ("add", "tanh", "matmul", "softmax", "matmul")
    assert list_column(table, "w")[1:] == [36, 36, 0, 0, 6, 0, 0]
    assert [int(table.bias[row]) for row in (3, 5)] == biases
    pairs = T * T * C
    assert list_column(table, "y")[3:] == [pairs, pairs, T * T, T * T, T * C]
    assert list_column(table, "x")[3:] == [2 * T * C, pairs, pairs, T * T, T * T + T * C]
    assert table.flops[5] == 2 * pairs
    assert table.inputs[3:] == ((1, 2), (3,), (4,), (5,), (6, 0))


def test_attention_is_products_that_a_user_may_write() -> None:
    written = infer_table(
        {"linear": {"features": 6, "name": "q"}},
        {"read": "sample"},
        {"linear": {"features": 6, "name": "k"}},
        {"read": "sample"},
        {"linear": {"features": 6, "name": "v"}},
        {"read": "q"},
        {"matmul": {"by": "k", "transpose": True, "heads": 2}},
        "softmax",
        {"matmul": {"by": "v", "heads": 2}},
        {"linear": 6},
    )
    built = infer_table({"attention": 2})
    assert written.inputs == built.inputs
    for column in ("x", "y", "w", "bias", "flops", "channels", "filters", "kept_items"):
        np.testing.assert_array_equal(getattr(written, column), getattr(built, column))


@pytest.mark.parametrize(
    ("step", "message"),
    [
        ({"attention": {"heads": 4, "name": "a"}}, "net: layer a: heads:"),
        ({"attention": {"heads": 2, "keys": "encodr", "name": "a"}}, "net: layer a:"),
        ({"matmul": {"by": "later", "name": "a"}}, "net: layer a:"),
    ],
)
def test_mistakes(step: object, message: str) -> None:
    with pytest.raises(InputError) as error:
        infer_table(ENCODER, step)
    assert str(error.value).startswith(message)


def test_what_does_not_match() -> None:
    with pytest.raises(ShapeError, match="matmul1: 5 positions of 4 do not match 5 positions of 6"):
        infer_table({"linear": 4}, {"matmul": {"by": "sample", "transpose": True}})
    with pytest.raises(ShapeError, match=r"matmul1: 5 positions of 4 do not match .* in 1 heads"):
        infer_table({"linear": 4}, {"matmul": "sample"})


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "layers.0.attention: heads:"),
        ({"heads": 2, "normalise": True}, "normalise:"),
        ({"heads": 2, "score": "additive"}, "heads:"),
        ({"heads": 2, "score": "cosine"}, "score"),
    ],
)
def test_settings_that_contradict_each_other(settings: object, message: str) -> None:
    definition = {"name": "net", "rank": 1, "layers": [{"attention": settings}]}
    with pytest.raises(ValidationError) as error:
        Architecture.from_definition(definition)
    assert message in str(explain_error(error.value, "net", Architecture))


@pytest.mark.parametrize(
    "network",
    [
        {"layers": [{"linear": 4096}, {"attention": {"heads": 33}}]},
        {"layers": [{"linear": 4096}, {"attention": {"heads": 33, "head_features": 4096 / 33}}]},
        {
            "family": {
                **{"name": "llama", "blocks": 1, "features": 4096, "heads": 33},
                **{"hidden": 64, "vocabulary": 10},
            }
        },
    ],
)
def test_heads_that_share_no_features_evenly(network, tmp_path):
    with pytest.raises(InputError, match="33 heads cannot share 4,096 features"):
        infer_whole(network, tmp_path)


def infer_whole(network: dict[str, Any], folder: Path) -> LayerTable:
    model = find("model", {"name": "net", "rank": 1, **network}, folder)
    assert isinstance(model, Architecture)
    return model.layers_for((3, 5), None)
