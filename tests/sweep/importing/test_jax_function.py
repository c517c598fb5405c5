"""JAX functions as models' files: parameters and operations worked out by hand."""

import jax
import jax.numpy as jnp
import pytest

import paradl
from paradl.grids.reading.errors import InputError


def struct(*shape):
    return jax.ShapeDtypeStruct(shape, "float32")


def convolve(x, kernel, stride=1, groups=1):
    return jax.lax.conv_general_dilated(
        x,
        kernel,
        (stride, stride),
        "SAME",
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
        feature_group_count=groups,
    )


def normalise(x, weights, axes):
    mean, variance = x.mean(axes, keepdims=True), x.var(axes, keepdims=True)
    scaled = (x - mean) * jax.lax.rsqrt(variance + 1e-5) * weights["scale"]
    return scaled + weights["shift"]


NORM = {"scale": struct(8), "shift": struct(8)}


def test_a_residual_network():
    def network(weights, x):
        y = jax.nn.relu(normalise(convolve(x, weights["first"], 2), weights["norm"], (0, 1, 2)))
        y = jax.lax.reduce_window(y, -jnp.inf, jax.lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME")
        y = jax.nn.silu(y + convolve(y, weights["deep"], groups=8))
        return y.mean((1, 2)) @ weights["matrix"] + weights["bias"]

    weights = {"first": struct(7, 7, 3, 8), "norm": NORM, "deep": struct(3, 3, 1, 8)}
    weights |= {"matrix": struct(8, 10), "bias": struct(10)}
    traced = paradl.trace_model(network, weights, (32, 32, 3))
    kinds = ("conv", "norm", "relu", "maxpool", "conv", "add", "silu", "avgpool", "fc")
    assert traced.table.kinds == kinds
    assert traced.table.parameters == 7 * 7 * 3 * 8 + 16 + 9 * 8 + 80 + 10
    assert traced.table.macs == 7 * 7 * 3 * 8 * 256 + 9 * 8 * 64 + 80
    assert traced.table.inputs[5] == (3, 4)
    assert traced.notes == ()


def test_a_note_counts_parameters_without_a_step():
    def network(weights, x):
        return convolve(x, weights["kernel"])

    weights = {"kernel": struct(3, 3, 3, 8), "unused": struct(5, 7)}
    traced = paradl.trace_model(network, weights, (8, 8, 3))
    assert traced.table.parameters == 3 * 3 * 3 * 8
    (note,) = traced.notes
    assert " 35 " in note


WIDTH, LAYERS, LENGTH, WORDS = 8, 3, 6, 50


def attend(x, block):
    y = normalise(x, block["norm"], -1)
    queries, keys, values = (
        (y @ block[name] + block[f"{name} bias"]).reshape(*y.shape[:2], 2, WIDTH // 2)
        for name in ("queries", "keys", "values")
    )
    scores = jax.nn.softmax(jnp.einsum("nthd,nshd->nhts", queries, keys))
    mixed = jnp.einsum("nhts,nshd->nthd", scores, values).reshape(y.shape)
    x = x + mixed @ block["out"] + block["out bias"]
    return x + jax.nn.gelu(x @ block["wide"]) @ block["narrow"], None


def test_a_transformer_whose_blocks_are_scanned():
    def network(weights, tokens):
        x = weights["table"][tokens] + weights["positions"]
        x, _ = jax.lax.scan(attend, x, weights["blocks"])
        return x @ weights["table"].T

    names = ("queries", "keys", "values", "out")
    blocks = {name: struct(LAYERS, WIDTH, WIDTH) for name in names}
    blocks |= {f"{name} bias": struct(LAYERS, WIDTH) for name in names}
    blocks["norm"] = {"scale": struct(LAYERS, WIDTH), "shift": struct(LAYERS, WIDTH)}
    blocks |= {"wide": struct(LAYERS, WIDTH, 32), "narrow": struct(LAYERS, 32, WIDTH)}
    weights = {"table": struct(WORDS, WIDTH), "positions": struct(LENGTH, WIDTH)}
    traced = paradl.trace_model(network, {**weights, "blocks": blocks}, (LENGTH,))
    table, block = traced.table, 4 * (WIDTH + 1) * WIDTH + 2 * WIDTH + 2 * 32 * WIDTH
    assert table.parameters == (WORDS + LENGTH) * WIDTH + LAYERS * block
    products = (4 * WIDTH**2 + 2 * 32 * WIDTH) * LENGTH + 2 * LENGTH**2 * WIDTH
    assert table.macs == LAYERS * products + WORDS * WIDTH * LENGTH
    assert table.kinds.count("matmul") == 2 * LAYERS
    assert table.kinds.count("softmax") == LAYERS + 1  # logits end in one
    assert table.kinds.count("gelu") == LAYERS
    assert traced.notes == ()


def test_an_operator_without_a_step_is_refused_by_name():
    def network(x):
        return jnp.sort(x, axis=1)

    with pytest.raises(InputError, match="sort"):
        paradl.trace_model(network, (8, 8, 3))
    traced = paradl.trace_model(network, (8, 8, 3), allow_unknown=True)
    assert traced.table.kinds == ("free",)


def test_a_traced_network_is_predicted(tmp_path, cli):
    traced = paradl.trace_model(
        lambda kernel, x: convolve(x, kernel), struct(3, 3, 3, 4), (224, 224, 3), name="mine"
    )
    path = tmp_path / "mine.yaml"
    path.write_text(traced.text)
    where = ("--dataset", "imagenet", "--system", "dgx-h100", "--strategy", "data", "--pe", 8)
    code, _, err = cli("predict", "--model", path, *where, "--batch", 32)
    assert code == 0, err
