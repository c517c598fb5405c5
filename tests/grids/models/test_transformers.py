"""Transformers of the catalogue, against the papers' own numbers."""

from pathlib import Path

import pytest

from paradl.grids.library import find
from paradl.grids.models.architecture import Architecture
from paradl.grids.models.transformers import read_transformer
from paradl.grids.reading.errors import ShapeError


def count(model: str, length: int = 2048):
    """The layers of a network of the catalogue for sequences of a length."""
    return find("model", model, Path()).table(find("dataset", f"pile:length={length}", Path()))


# As the checkpoints of Hugging Face have them, summed by hand from their shapes.
PARAMETERS = {
    "gpt3_175b": 174_604_259_328,
    "llama2_7b": 6_738_415_616,
    "llama2_13b": 13_015_864_320,
    "llama2_70b": 68_976_648_192,
    "llama3_8b": 8_030_261_248,
    "llama3_70b": 70_553_706_496,
    "llama3_405b": 405_853_388_800,
    "mixtral_8x7b": 46_702_792_704,
    "qwen3_30b_a3b": 30_532_122_624,
    "deepseek_v3": 671_026_419_200,
    "t5_11b": 11_307_321_344,
}


@pytest.mark.parametrize("model", PARAMETERS)
def test_parameters(model):
    assert count(model).parameters == PARAMETERS[model]


# As the papers round them; DeepSeek-V3's 37e9 leaves the table of words out.
ACTIVE = {
    "mixtral_8x7b": 12.9e9,
    "qwen3_30b_a3b": 3.3e9,
    "deepseek_v3": 37.6e9,
    "llama3_8b": 8.03e9,
}


@pytest.mark.parametrize("model", ACTIVE)
def test_active_parameters(model):
    layers = count(model)
    used = ((layers.w + layers.bias) * layers.active).sum()
    assert used == pytest.approx(ACTIVE[model], rel=0.02)


def test_parameters_of_gpt_as_narayanan_2021_counts_them():
    """SC21, equation 2: 12 l h^2 (1 + 13/(12 h) + (V + s)/(12 l h)), and the last norm's 2 h."""
    h, blocks, vocabulary, s = 12288, 96, 50257, 2048
    expected = 12 * blocks * h**2 * (1 + 13 / (12 * h) + (vocabulary + s) / (12 * blocks * h))
    assert count("gpt3_175b").parameters == pytest.approx(expected + 2 * h, rel=1e-12)


def test_operations_of_gpt_as_korthikanti_2022_counts_them():
    """Equation 7: 72 B l s h^2 (1 + s/(6 h) + V/(12 h l)), a third of it forward."""
    h, blocks, vocabulary, s = 12288, 96, 50257, 2048
    expected = 24 * blocks * s * h**2 * (1 + s / (6 * h) + vocabulary / (12 * h * blocks))
    assert 2 * count("gpt3_175b").macs == pytest.approx(expected, rel=1e-12)


def test_activations_of_a_block():
    """s b h (34 + 5 a s / h) bytes of Korthikanti's equation 1, without masks of dropout.

    Masks are 2 s h and a s^2 of them; and softmax keeps its output, not its input too (2 a s^2).
    """
    h, a, s = 12288, 96, 2048
    layers = count("gpt3_175b")
    of_block = [name.startswith("layers1.") for name in layers.names]
    kept = 2 * (layers.kept_items * of_block).sum()
    # The first norm's input is the block before it, the last addition the block behind it.
    assert kept == 32 * s * h + 2 * a * s**2


@pytest.mark.parametrize(
    ("model", "kappa", "g"), [("llama3_8b", 8 / 32, 3), ("llama2_13b", 1.0, 3)]
)
def test_activations_of_any_block_but_for_scores(model, kappa, g):
    """u (8 h + (4 + 4 kappa) h + 2 g f) bytes: norms, attention without scores, gated matrices."""
    s = 1024
    family = find("model", model, Path()).definition()["family"]
    assert isinstance(family, dict)
    h, f = family["features"], family["hidden"]
    layers = count(model, s)
    kept = sum(
        2 * items
        for name, items in zip(layers.names, layers.kept_items, strict=True)
        if name.startswith("layers1.") and not name.endswith("softmax")
    )
    assert kept == s * (8 * h + (4 + 4 * kappa) * h + 2 * g * f)


def test_a_sequence_longer_than_positions_does_not_fit():
    with pytest.raises(ShapeError, match="2,048 positions"):
        count("gpt3_175b", 4096)


def test_targets_of_tokens_are_not_known():
    with pytest.raises(ShapeError, match="targets"):
        count("gnmt")


def list_attentions(model: Architecture, name: str) -> list[list[object]]:
    """A fact of the attentions of each block."""
    samples = find("dataset", "imagenet", Path()) if model.name.startswith("vit") else None
    network = read_transformer(model, samples)
    return [
        [getattr(one, name) for one in network.kinds[kind].attentions] for kind in network.order
    ]


@pytest.mark.parametrize(
    ("model", "causal"),
    [
        ("gpt3_175b", [[True]] * 96),
        ("llama3_8b", [[True]] * 32),
        ("qwen3_30b_a3b", [[True]] * 48),
        ("deepseek_v3", [[True]] * 61),
        # Of an encoder, and of what a decoder reads of it, all positions.
        ("t5_11b", [[False]] * 24 + [[True, False]] * 24),
        ("vit_b_16", [[False]] * 12),
    ],
)
def test_decoders_read_no_later_position(model, causal):
    assert list_attentions(find("model", model, Path()), "causal") == causal


LLAMA = {"name": "llama", "hidden": 512}
MOE = {"name": "moe", "experts": 4, "active": 2, "expert_hidden": 128}
LATENT = {"rank": 8, "query_rank": None, "content": 8, "rotary": 8, "value": 8}


@pytest.mark.parametrize("family", [LLAMA, MOE, {**MOE, "latent": LATENT}])
@pytest.mark.parametrize(
    ("settings", "windows"),
    [
        ({}, [0] * 12),
        ({"window": 64}, [64] * 12),
        ({"windows": [64, None]}, [64, 0] * 6),  # Gemma 2
        ({"windows": [*[64] * 5, None]}, [*[64] * 5, 0] * 2),  # Gemma 3
        ({"windows": [None] * 3 + [64] * 9}, [0] * 3 + [64] * 9),
        ({"window": 32, "windows": [64, None]}, [64, 0] * 6),
    ],
)
def test_windows_of_families_in_turn(family, settings, windows):
    sizes = {"blocks": 12, "features": 256, "heads": 8, "vocabulary": 1000}
    definition = {"name": "mine", "title": "mine", "source": ["own"], "rank": 1}
    model = find("model", {**definition, "family": family | sizes | settings}, Path())
    assert list_attentions(model, "window") == [[window] for window in windows]
