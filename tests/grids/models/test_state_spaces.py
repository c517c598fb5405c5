"""Layers with a state: their work, what they keep, and what tensor parallelism divides.

Parameters and products of whole networks: test_huggingface_types.py.
"""

import pytest

from paradl.grids.models.architecture import Architecture
from paradl.grids.models.layers import LayerTable
from paradl.grids.models.transformers import read_transformer
from paradl.grids.reading.errors import InputError

D, N, H, G, K, C = 128, 16, 4, 2, 4, 64
MAMBA2 = {"state_space": {"features": D, "state": N, "heads": H, "groups": G, "piece": 32}}
MAMBA1 = {"state_space": {"features": D, "state": N, "rank": 8}}
DELTA = {"linear_attention": {"heads": H, "value_features": 24, "key_features": 16, "kernel": K}}
DECAY = {"linear_attention": {"heads": H, "value_features": 24}}
CONV = {"short_conv": 3}
MIXERS = [MAMBA1, MAMBA2, DELTA, DECAY, CONV]


def build(*mixers: object) -> Architecture:
    """A network of blocks with these mixers."""
    blocks = [
        {"residual": {"name": f"h{n}.mix", "body": ["rmsnorm", mixer]}}
        for n, mixer in enumerate(mixers)
    ]
    table = {"embedding": {"vocabulary": 128, "features": C}}
    return Architecture.from_definition(
        {"name": "mine", "rank": 1, "layers": [table, *blocks, {"logits": 128}]}
    )


def infer(mixer: object, length: int) -> LayerTable:
    """The layers of a network of one block."""
    return build(mixer).layers_for((1, length), None)


def count_scan(mixer: object, length: int) -> float:
    """Operations of the scan."""
    table = infer(mixer, length)
    return sum(float(n) for n, kind in zip(table.flops, table.kinds, strict=True) if kind == "scan")


@pytest.mark.parametrize("mixer", MIXERS)
def test_work_grows_with_the_length_alone(mixer):
    """Attention's grows with its square."""
    once, twice = (infer(mixer, length).flops.sum() for length in (256, 512))
    assert twice == 2 * once


def test_the_work_of_scans_by_hand():
    """Of 64 positions: scores and sums inside a piece, states made and read."""
    piece, state = 2 * 32 * (G * N + D), 4 * D * N
    assert count_scan(MAMBA2, 64) == 64 * (piece + state)
    assert count_scan(MAMBA1, 64) == 64 * 9 * D * N
    assert count_scan(DECAY, 64) == 64 * H * (2 * 64 * 2 * 24 + 4 * 24 * 24)
    assert count_scan(DELTA, 64) == 64 * H * (2 * 64 * (3 * 16 + 2 * 24) + 6 * 16 * 24)
    # A sequence shorter than a piece is one.
    assert count_scan(MAMBA2, 8) == 8 * (2 * 8 * (G * N + D) + state)


@pytest.mark.parametrize("mixer", MIXERS)
def test_a_layout_divides_matrices_and_keeps_no_state(mixer):
    net = read_transformer(build(mixer, mixer))
    (block,) = net.kinds
    assert all(tensor.size != "scores" for tensor in block.tensors)
    columns = [w for w in block.weights if w.parts and w.by_columns and w.used]
    rows = [w for w in block.weights if w.parts and not w.by_columns]
    assert columns
    assert len(rows) == 1  # exchanged once, as an attention


def test_what_a_state_space_layer_needs():
    for settings in ({"features": D, "state": N}, MAMBA2["state_space"] | {"rank": 3}):
        with pytest.raises(InputError, match="got both or neither"):
            infer({"state_space": settings}, 8)
