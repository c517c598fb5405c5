"""Networks from Hugging Face's config.json."""

import json
from pathlib import Path

import pytest

from paradl.grids.library import find
from paradl.grids.models.transformers import read_transformer
from paradl.grids.reading.errors import InputError
from paradl.kernels.work.transformer import Transformer

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


MIXTRAL = {
    "model_type": "mixtral",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "num_local_experts": 8,
    "num_experts_per_tok": 2,
    "vocab_size": 32000,
}
OF_LLAMA = 8_030_261_248


def write(folder: Path, config: object) -> str:
    """A config.json in a folder of its own; its path."""
    folder.mkdir()
    path = folder / "config.json"
    path.write_text(config if isinstance(config, str) else json.dumps(config))
    return str(path)


def list_windows(network: Transformer) -> list[int]:
    """The window of each block's attention; 0: all positions."""
    return [network.kinds[kind].attentions[0].window for kind in network.order]


@pytest.mark.parametrize(
    ("config", "parameters"),
    [
        (LLAMA, OF_LLAMA),
        (QWEN, 30_532_122_624),
        (MIXTRAL, 46_702_792_704),
        (DEEPSEEK, 671_026_419_200),
        (T5, 11_307_321_344),
        (GPT2, 124_439_808),  # GPT-2
    ],
    ids=lambda value: value["model_type"] if isinstance(value, dict) else "",
)
def test_a_file_of_hugging_face(tmp_path, config, parameters):
    model = find("model", write(tmp_path / "mine", config), Path())
    assert model.name == "mine"
    assert model.table(find("dataset", "pile:length=1024", Path())).parameters == parameters


def test_experts_have_a_bias_where_the_class_has_one(tmp_path):
    """Transformers 5 writes no method, and its class has the bias."""
    config = {key: value for key, value in DEEPSEEK.items() if key != "topk_method"}
    model = find("model", write(tmp_path / "mine", config), Path())
    table = model.table(find("dataset", "pile:length=1024", Path()))
    assert table.parameters == 671_026_419_200


@pytest.mark.parametrize("method", ["greedy", "group_limited_greedy", ""])
def test_experts_have_a_bias_only_without_an_auxiliary_loss(tmp_path, method):
    """One for each of 256 experts in 58 blocks, as `noaux_tc` alone has them."""
    config = DEEPSEEK | {"topk_method": method}
    model = find("model", write(tmp_path / "mine", config), Path())
    table = model.table(find("dataset", "pile:length=1024", Path()))
    assert table.parameters == 671_026_419_200 - 58 * 256


def test_biases_of_qwen2(tmp_path):
    """Of queries, keys and values, and not of the output: 4096 + 2 x 1024 a block."""
    model = find("model", write(tmp_path / "mine", LLAMA | {"model_type": "qwen2"}), Path())
    table = model.table(find("dataset", "pile", Path()))
    assert table.parameters == OF_LLAMA + 32 * (4096 + 2 * 1024)


def test_a_checkpoint_is_a_folder_with_a_config(tmp_path):
    path = write(tmp_path / "mine", LLAMA)
    assert find("model", str(tmp_path / "mine"), Path()) == find("model", path, Path())
    assert find("model", "./mine", tmp_path) == find("model", path, Path())
    with pytest.raises(InputError, match=r"write \./mine"):
        find("model", "mine", tmp_path)
    with pytest.raises(InputError, match=r"config\.json: no such file"):
        find("model", f"{tmp_path}/", Path())


@pytest.mark.parametrize(("kind", "longest"), [("bert", 514), ("roberta", 512)])
def test_positions_behind_the_paddings_are_the_longest_sequence(tmp_path, kind, longest):
    of_bert = {"hidden_act": "gelu", "max_position_embeddings": 514, "model_type": kind}
    config = {**LLAMA, **of_bert, "num_hidden_layers": 2, "tie_word_embeddings": True}
    assert find("model", write(tmp_path / "mine", config), Path()).longest == longest


MISTAKES = [
    ({**LLAMA, "model_type": "lama"}, "blocks of llama (rmsnorm before parts, gated MLPs)"),
    ({**LLAMA, "model_type": "rwkv"}, "docs/your-model.md"),
    ({**LLAMA, "model_type": "decoder"}, "unknown model_type"),
    ({**LLAMA, "model_type": ["llama"]}, "model_type"),
    ({"hidden_size": 8}, "model_type is missing"),
    ({key: value for key, value in LLAMA.items() if key != "vocab_size"}, "vocab_size"),
    ({**LLAMA, "hidden_size": "4k"}, "hidden_size: expected a whole number"),
    ({**LLAMA, "hidden_size": -8}, "hidden_size"),
    (
        {**LLAMA, "hidden_size": None},
        "hidden_size: expected a whole number from 1 to 2,147,483,647, got null",
    ),
    ({**LLAMA, "hidden_size": 1e400}, "hidden_size"),
    ({**LLAMA, "num_key_value_heads": 5}, "num_key_value_heads"),
    ({**LLAMA, "hidden_size": 4100}, "num_attention_heads: 32 heads"),
    ({**LLAMA, "num_attention_heads": 33}, "33 heads cannot share 4,096"),
    ({**LLAMA, "mlp_bias": "no"}, "mlp_bias: expected true or false"),
    ({**LLAMA, "vocab_size": 10**10}, "vocab_size: expected a whole number from 1 to 2,147"),
    ({**LLAMA, "tie_word_embeddings": "false"}, "tie_word_embeddings: expected true or false"),
    ({**LLAMA, "attention_bias": 0}, "attention_bias: expected true or false"),
    ({**QWEN, "mlp_only_layers": 3}, "mlp_only_layers"),
    ({**QWEN, "mlp_only_layers": [*range(48)]}, "leaves none of 48 blocks with experts"),
    ({**DEEPSEEK, "n_shared_experts": "x"}, "n_shared_experts"),
    ({**DEEPSEEK, "moe_layer_freq": 2}, "moe_layer_freq"),
    ({**DEEPSEEK, "first_k_dense_replace": 61}, "first_k_dense_replace: 61 leaves none of 61"),
    ({**DEEPSEEK, "first_k_dense_replace": 100}, "first_k_dense_replace"),
    ({**QWEN, "decoder_sparse_step": 49}, "decoder_sparse_step: 49 leaves none of 48"),
    ({**QWEN, "num_experts_per_tok": 129}, "num_experts_per_tok: expected at most 128"),
    ({**QWEN, "num_local_experts": 64}, "num_local_experts: 64 is not modelled"),
    ({**QWEN, "n_shared_experts": 1}, "n_shared_experts: 1 is not modelled"),
    ({**QWEN, "shared_expert_intermediate_size": 5632}, "shared_expert_intermediate_size"),
    ({**MIXTRAL, "moe_intermediate_size": 768}, "moe_intermediate_size: 768 is not modelled"),
    ({**MIXTRAL, "num_local_experts": None}, "num_local_experts"),
    ({**LLAMA, "hidden_act": "swiglu"}, "hidden_act: 'swiglu' is not modelled"),
    ({**LLAMA, "hidden_act": None}, "hidden_act"),
    ({**DEEPSEEK, "hidden_act": "linear"}, "hidden_act"),
    ({**GPT2, "activation_function": "relu"}, "activation_function"),
    ({**T5, "feed_forward_proj": "gated-gelo"}, "feed_forward_proj"),
    ({**T5, "feed_forward_proj": "gelu"}, "feed_forward_proj"),
    ({**LLAMA, "sliding_window": "4k"}, "sliding_window"),
    ({**LLAMA, "sliding_window": 0}, "sliding_window"),
    ({**LLAMA, "sliding_window": 64, "layer_types": ["sliding_attention"]}, "list of 32 kinds"),
    ({**LLAMA, "layer_types": ["full_attention"] * 31 + ["mamba"]}, "layer_types.31: 'mamba'"),
    ({**LLAMA, "layer_types": ["sliding_attention"] * 32}, "needs a sliding_window"),
    ({**LLAMA, "layer_types": "full_attention"}, "layer_types"),
    ({**T5, "num_decoder_layers": -12}, "num_decoder_layers"),
    ({"model_type": "llava", "text_config": {"model_type": "llava"}}, "unknown model_type"),
    ({"model_type": "llava", "text_config": []}, "unknown model_type"),
    ("[1, 2]", "expected a mapping"),
    ("{", "config.json:1"),
    ("[" * 100_000, "config.json"),
    ('{"model_type": "llama", "hidden_size": ' + "9" * 5000 + "}", "config.json"),
    ("", "config.json: expected a mapping"),
    ('{"model_type": "gpt2", "n_layer": 12, "n_layer": 24}', "n_layer"),
    ('{"model_type": "gpt2", "mine": {"rope": 1, "rope": 1}}', "rope"),
]


@pytest.mark.parametrize(("config", "message"), MISTAKES, ids=range(len(MISTAKES)))
def test_a_mistake_in_a_file(tmp_path, config, message):
    with pytest.raises(InputError) as error:
        find("model", write(tmp_path / "mine", config), Path())
    assert message in str(error.value)
    assert "config.json" in str(error.value)


def test_the_expressions_of_a_family_are_no_mistake_of_the_file(tmp_path):
    with pytest.raises(InputError, match="from 0 to 1,000, got 2000") as error:
        find("model", write(tmp_path / "mine", LLAMA | {"num_hidden_layers": 2000}), Path())
    assert "settings" not in str(error.value)


@pytest.mark.parametrize("name", ["llama5", "qwen2_moa", "deepseek_v4", "qwen4_vl", "gpt_neoy"])
def test_no_other_architecture_is_suggested(tmp_path, name):
    """Who renames a type gets another network without a word: blocks are asked for instead."""
    with pytest.raises(InputError) as error:
        find("model", write(tmp_path / "mine", {**LLAMA, "model_type": name}), Path())
    assert "did you mean" not in str(error.value)


EXPERT_KEYS = {
    **{"num_experts": 16, "num_local_experts": 16, "n_routed_experts": 16, "n_shared_experts": 1},
    **{"moe_intermediate_size": 768, "num_experts_per_tok": 2, "moe_layers": [1, 3]},
    **{"enable_moe_block": True},
}


@pytest.mark.parametrize("key", EXPERT_KEYS)
@pytest.mark.parametrize("name", ["llama", "mistral", "qwen2", "qwen3"])
def test_keys_of_experts_are_refused_where_there_are_none(tmp_path, name, key):
    config = {**LLAMA, "model_type": name, key: EXPERT_KEYS[key]}
    with pytest.raises(InputError, match=f"{key}: .* is not modelled for model_type {name}"):
        find("model", write(tmp_path / "mine", config), Path())
    for nothing in (None, 0, False, *(() if "shared" in key else (1,))):
        path = write(tmp_path / str(nothing), config | {key: nothing})
        assert read_transformer(find("model", path, Path())).parameters > 8e9


@pytest.mark.parametrize("config", [QWEN, MIXTRAL, DEEPSEEK], ids=lambda one: one["model_type"])
@pytest.mark.parametrize("key", ["num_experts", "num_local_experts", "n_routed_experts"])
def test_the_number_of_experts_has_several_names(tmp_path, config, key):
    """Transformers 5 writes Qwen3-MoE's as num_local_experts; a file may have two of them."""
    names = {"num_experts", "num_local_experts", "n_routed_experts"}
    (known,) = names & {*config}
    renamed = {name: value for name, value in config.items() if name != known}
    files = {"one": renamed | {key: config[known]}, "two": config | {key: config[known]}}
    for folder, given in files.items():
        network = read_transformer(find("model", write(tmp_path / folder, given), Path()))
        assert network.experts == (config[known],)


@pytest.mark.parametrize("method", ["gptq", "awq", "bitsandbytes", "mxfp4", "compressed-tensors"])
def test_quantised_weights_are_read_as_what_is_trained_and_stated(tmp_path, method):
    config = {**LLAMA, "quantization_config": {"quant_method": method}}
    model = find("model", write(tmp_path / "mine", config), Path())
    assert f"parameters stored in {method}" in model.source[0]
    assert read_transformer(model).parameters == OF_LLAMA


def test_weights_stored_in_fp8_are_read_and_stated(tmp_path):
    """As DeepSeek-V3's own file has them."""
    quantised = {"quant_method": "fp8", "fmt": "e4m3", "weight_block_size": [128, 128]}
    path = write(tmp_path / "mine", {**DEEPSEEK, "quantization_config": quantised})
    model = find("model", path, Path())
    assert "fp8" in model.source[0]
    assert read_transformer(model).parameters == 671_026_419_200


@pytest.mark.parametrize("activation", ["silu", "swish", "gelu_pytorch_tanh", "relu"])
def test_other_activations_cost_the_same(tmp_path, activation):
    networks = [
        read_transformer(find("model", write(tmp_path / name, LLAMA | more), Path()))
        for name, more in (("usual", {}), ("other", {"hidden_act": activation}))
    ]
    assert networks[0] == networks[1]


FULL, SLIDING = "full_attention", "sliding_attention"
HALVES = [FULL] * 16 + [SLIDING] * 16
QWEN2 = {"model_type": "qwen2", "use_sliding_window": True, "sliding_window": 1024}


@pytest.mark.parametrize(
    ("more", "windows"),
    [
        ({}, [0] * 32),
        ({"sliding_window": 1024}, [1024] * 32),
        ({"sliding_window": None}, [0] * 32),
        ({"sliding_window": 1024, "layer_types": [SLIDING, FULL] * 16}, [1024, 0] * 16),
        ({"layer_types": [FULL] * 32}, [0] * 32),
        # Classes of Transformers have defaults of their own.
        ({"model_type": "mistral"}, [4096] * 32),
        ({"model_type": "mistral", "sliding_window": None}, [0] * 32),
        ({"model_type": "qwen2", "sliding_window": 1024}, [0] * 32),
        (QWEN2 | {"use_sliding_window": False, "max_window_layers": 8}, [0] * 32),
        (QWEN2, [0] * 28 + [1024] * 4),
        (QWEN2 | {"max_window_layers": 0}, [1024] * 32),
        (QWEN2 | {"max_window_layers": 8}, [0] * 8 + [1024] * 24),
        (QWEN2 | {"max_window_layers": 70}, [0] * 32),
        (QWEN2 | {"max_window_layers": 8, "layer_types": HALVES}, [0] * 16 + [1024] * 16),
        ({"model_type": "qwen3", "use_sliding_window": True}, [0] * 28 + [4096] * 4),
    ],
)
def test_windows_of_blocks(tmp_path, more, windows):
    network = read_transformer(find("model", write(tmp_path / "mine", LLAMA | more), Path()))
    assert list_windows(network) == windows
    # Blocks that read alike are alike.
    assert len(network.kinds) == len({*windows})


@pytest.mark.parametrize("config", [QWEN, MIXTRAL, DEEPSEEK], ids=lambda one: one["model_type"])
def test_windows_of_blocks_with_experts(tmp_path, config):
    blocks = config["num_hidden_layers"]
    types = {"layer_types": [SLIDING if block % 6 else FULL for block in range(blocks)]}
    more = {"use_sliding_window": True, "sliding_window": 512, **types}
    network = read_transformer(find("model", write(tmp_path / "mine", config | more), Path()))
    assert list_windows(network) == [512 if block % 6 else 0 for block in range(blocks)]


def test_a_window_saves_operations_where_sequences_are_longer(tmp_path):
    """Of 4 s w h, and w is at most s."""
    long, short = (find("dataset", f"pile:length={length}", Path()) for length in (8192, 1024))
    whole, windowed = (
        find("model", write(tmp_path / str(window), {**LLAMA, "sliding_window": window}), Path())
        for window in (None, 2048)
    )
    saved = whole.table(long).macs - windowed.table(long).macs
    assert saved == 32 * 2 * 8192 * (8192 - 2048) * 4096
    assert whole.table(short).macs == windowed.table(short).macs
