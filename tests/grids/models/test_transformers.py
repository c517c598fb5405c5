"""Transformers of the catalogue, against the papers' own numbers, and Hugging Face's files."""

import json
from pathlib import Path

import pytest

from grids.library import find
from grids.reading.errors import InputError, ShapeError


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
    assert count(model).active_parameters == pytest.approx(ACTIVE[model], rel=0.02)


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
    of_block = [name.startswith("h1.") for name in layers.names]
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


LLAMA = {
    "model_type": "llama",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
    "tie_word_embeddings": False,
    "rope_theta": 500000.0,
    "torch_dtype": "bfloat16",
}
QWEN = {
    "model_type": "qwen3_moe",
    "hidden_size": 2048,
    "intermediate_size": 6144,
    "moe_intermediate_size": 768,
    "num_hidden_layers": 48,
    "num_attention_heads": 32,
    "num_key_value_heads": 4,
    "head_dim": 128,
    "num_experts": 128,
    "num_experts_per_tok": 8,
    "decoder_sparse_step": 1,
    "mlp_only_layers": [],
    "use_sliding_window": False,
    "sliding_window": 4096,
    "vocab_size": 151936,
}
DEEPSEEK = {
    "model_type": "deepseek_v3",
    "hidden_size": 7168,
    "intermediate_size": 18432,
    "moe_intermediate_size": 2048,
    "num_hidden_layers": 61,
    "first_k_dense_replace": 3,
    "num_attention_heads": 128,
    "q_lora_rank": 1536,
    "kv_lora_rank": 512,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
    "n_routed_experts": 256,
    "n_shared_experts": 1,
    "num_experts_per_tok": 8,
    "topk_method": "noaux_tc",
    "vocab_size": 129280,
    "num_nextn_predict_layers": 1,
}
T5 = {
    "model_type": "t5",
    "d_model": 1024,
    "d_kv": 128,
    "d_ff": 65536,
    "num_layers": 24,
    "num_heads": 128,
    "vocab_size": 32128,
    "relative_attention_num_buckets": 32,
}
GPT2 = {
    "model_type": "gpt2",
    "n_embd": 768,
    "n_layer": 12,
    "n_head": 12,
    "n_positions": 1024,
    "vocab_size": 50257,
}


def write(folder: Path, config: object) -> str:
    """A config.json in a folder of its own; its path."""
    folder.mkdir()
    path = folder / "config.json"
    path.write_text(config if isinstance(config, str) else json.dumps(config))
    return str(path)


@pytest.mark.parametrize(
    ("config", "parameters"),
    [
        (LLAMA, PARAMETERS["llama3_8b"]),
        (QWEN, PARAMETERS["qwen3_30b_a3b"]),
        (DEEPSEEK, PARAMETERS["deepseek_v3"]),
        (T5, PARAMETERS["t5_11b"]),
        (GPT2, 124_439_808),  # GPT-2
    ],
    ids=lambda value: value["model_type"] if isinstance(value, dict) else "",
)
def test_a_file_of_hugging_face(tmp_path, config, parameters):
    model = find("model", write(tmp_path / "mine", config), Path())
    assert model.name == "mine"
    assert model.table(find("dataset", "pile:length=1024", Path())).parameters == parameters


def test_biases_of_qwen2(tmp_path):
    """Of queries, keys and values, and not of the output: 4096 + 2 x 1024 a block."""
    model = find("model", write(tmp_path / "mine", LLAMA | {"model_type": "qwen2"}), Path())
    table = model.table(find("dataset", "pile", Path()))
    assert table.parameters == PARAMETERS["llama3_8b"] + 32 * (4096 + 2 * 1024)


MISTAKES = [
    ({**LLAMA, "model_type": "lama"}, "did you mean 'llama'"),
    ({**LLAMA, "model_type": "mamba"}, "known: deepseek_v3, gpt2"),
    ({**LLAMA, "model_type": ["llama"]}, "model_type"),
    ({"hidden_size": 8}, "model_type: this key is missing"),
    ({key: value for key, value in LLAMA.items() if key != "vocab_size"}, "vocab_size"),
    ({**LLAMA, "hidden_size": "4k"}, "hidden_size: expected a whole number"),
    ({**LLAMA, "hidden_size": -8}, "hidden_size"),
    ({**LLAMA, "hidden_size": 1e400}, "hidden_size"),
    ({**LLAMA, "num_key_value_heads": 5}, "num_key_value_heads"),
    ({**LLAMA, "hidden_size": 4100}, "head_features: expected a whole number, got 128.125"),
    ({**LLAMA, "mlp_bias": True}, "mlp_bias: True is not modelled"),
    ({**LLAMA, "vocab_size": 10**10}, "vocab_size: expected a whole number from 1 to 2,147"),
    ({**LLAMA, "tie_word_embeddings": "false"}, "tie_word_embeddings: expected true or false"),
    ({**LLAMA, "attention_bias": 0}, "attention_bias: expected true or false"),
    ({**QWEN, "mlp_only_layers": [0]}, "mlp_only_layers"),
    ({**DEEPSEEK, "n_shared_experts": "x"}, "n_shared_experts"),
    ({**DEEPSEEK, "moe_layer_freq": 2}, "moe_layer_freq"),
    ({**T5, "num_decoder_layers": 12}, "num_decoder_layers"),
    ("[1, 2]", "expected a mapping"),
    ("{", "config.json:1"),
    ("[" * 100_000, "config.json"),
    ('{"model_type": "llama", "hidden_size": ' + "9" * 5000 + "}", "config.json"),
    ("", "config.json:1"),
    ('{"model_type": "gpt2", "n_layer": 12, "n_layer": 24}', "n_layer"),
    ('{"model_type": "gpt2", "mine": {"rope": 1, "rope": 1}}', "rope"),
]


@pytest.mark.parametrize(("config", "message"), MISTAKES, ids=range(len(MISTAKES)))
def test_a_mistake_in_a_file(tmp_path, config, message):
    with pytest.raises(InputError) as error:
        find("model", write(tmp_path / "mine", config), Path())
    assert message in str(error.value)
    assert "config.json" in str(error.value)


def test_a_sliding_window_is_refused_where_it_slides(tmp_path):
    config = {**LLAMA, "model_type": "mistral", "sliding_window": 4096}
    model = find("model", write(tmp_path / "mine", config), Path())
    assert model.table(find("dataset", "pile:length=4096", Path())).parameters > 8e9
    with pytest.raises(ShapeError, match="sliding window"):
        model.table(find("dataset", "pile:length=8192", Path()))


def test_the_window_of_a_qwen_slides_only_where_it_says_so(tmp_path):
    """Qwen2Config has use_sliding_window=False."""
    config = {**LLAMA, "model_type": "qwen2", "sliding_window": 4096}
    model = find("model", write(tmp_path / "mine", config), Path())
    assert model.table(find("dataset", "pile:length=8192", Path())).parameters > 8e9


def test_the_expressions_of_a_family_are_no_mistake_of_the_file(tmp_path):
    with pytest.raises(InputError, match="from 0 to 1,000, got 2000") as error:
        find("model", write(tmp_path / "mine", LLAMA | {"num_hidden_layers": 2000}), Path())
    assert "settings" not in str(error.value)
