"""Networks from Hugging Face's config.json: `--model ./config.json`.

TYPES has a row for each `model_type` that is known: the family of the catalogue, and the keys that
its settings stand under. What changes a network and is not modelled is refused: a key with another
value than those of the row, keys of experts that the type does not have, a type without a row. Keys
of tokenizers, of generation and of how weights were first drawn change no prediction, and are
passed over.
"""

import json
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from paradl.grids.models.files.template import MOST_TIMES
from paradl.grids.models.steps.settings import describe_heads
from paradl.grids.reading.errors import InputError, add_place, format_count, shorten
from paradl.grids.reading.yamlfile import load

Config = Mapping[str, Any]  # what `load` gives
MOST_SIZE = 2**31
# Names of the number of experts: that of a type, and of others and other versions of Transformers.
EXPERTS = ("num_experts", "num_local_experts", "n_routed_experts")
WINDOW = 4096  # of classes of Transformers that have one unless the file says otherwise
FULL_BLOCKS = 28  # first blocks of Qwen 2 and 3 that read all positions, likewise


def find_key(config: Config, key: str) -> str:
    """The key that a number stands under: that of experts has several names."""
    names = (name for name in EXPERTS if key in EXPERTS and config.get(name) is not None)
    return key if config.get(key) is not None else next(names, key)


def read_count(config: Config, key: str, default: int = 0) -> int:
    """A whole number, which may be 0 or null."""
    return read_size(config, key) if config.get(key) else default * (key not in config)


def read_size(config: Config, key: str) -> int:
    """A whole number above 0."""
    key = find_key(config, key)
    if key not in config:
        raise InputError(f"{key}: this key is missing")
    size = config[key]
    # The exact type: JSON's true is an int to Python.
    if type(size) is not int or not 0 < size < MOST_SIZE:
        raise InputError(
            f"{key}: expected a whole number from 1 to {MOST_SIZE - 1:,}, got {shorten(size)}"
        )
    return size


def read_flag(config: Config, key: str, default: bool) -> bool:
    """True or false; the default where the file leaves it out."""
    flag = config.get(key, default)
    # A text such as "false" is true to Python; null is false.
    if flag is not None and not isinstance(flag, bool):
        raise InputError(f"{key}: expected true or false, got {shorten(flag)}")
    return bool(flag)


def list_windows(config: Config) -> list[int | None]:
    """List the most positions that a query of each block reads; None: all."""
    kind, blocks = config["model_type"], read_size(config, "num_hidden_layers")
    is_qwen = kind.startswith("qwen")
    # Mistral's files state the window alone, Qwen's also whether it is in use; by default not.
    in_use = read_flag(config, "use_sliding_window", not is_qwen)
    usual = WINDOW if is_qwen or kind == "mistral" else None
    window = None
    if in_use and config.get("sliding_window", usual) is not None:
        window = read_size({"sliding_window": usual, **config}, "sliding_window")
    if config.get("layer_types") is not None:
        return _read_layer_types(config["layer_types"], blocks, window)
    first = FULL_BLOCKS if kind in ("qwen2", "qwen3") else 0
    full = read_count(config, "max_window_layers", first) if is_qwen else 0
    return [None if block < full else window for block in range(min(blocks, MOST_TIMES))]


def _read_layer_types(types: object, blocks: int, window: int | None) -> list[int | None]:
    """List the windows of blocks by the kind of attention that the file states for each."""
    windows = {"full_attention": None, "sliding_attention": window}
    if not isinstance(types, list) or len(types) != blocks:
        raise InputError(f"layer_types: expected a list of {format_count(blocks, 'kind')}")
    for number, name in enumerate(types):
        if not isinstance(name, str) or name not in windows:
            what = f"layer_types.{number}: {shorten(name)} is not modelled"
            raise InputError(what, advice=f"known: {', '.join(windows)}")
        if name == "sliding_attention" and window is None:
            raise InputError(f"layer_types.{number}: 'sliding_attention' needs a sliding_window")
    return [windows[name] for name in types]


# Activations of Transformers whose backward pass reads their input. With a product in one kernel
# any other costs as much: its inputs are what is kept.
SMOOTH = (
    *("silu", "swish", "mish", "hardswish", "quick_gelu", "gelu", "gelu_new", "gelu_fast"),
    *("gelu_10", "gelu_accurate", "gelu_python", "gelu_python_tanh", "gelu_pytorch_tanh"),
)
GATES = (*SMOOTH, "relu", "relu2", "relu6", "leaky_relu", "sigmoid", "tanh")


@dataclass(frozen=True)
class ModelType:
    """A `model_type`.

    sizes: the keys of settings that are whole numbers, each required. optional: those that may be
    left out or null; the family then has a default. fixed: settings that its code fixes. derive:
    those that follow from several keys. values: what keys may say, if they are there; no other
    value is modelled. derived: keys of experts that only `derive` reads.
    """

    family: str
    sizes: Mapping[str, str]
    optional: Mapping[str, str] = field(default_factory=dict)
    derive: Callable[[Config], dict[str, object]] = lambda config: {}
    values: Mapping[str, tuple[object, ...]] = field(default_factory=dict)
    fixed: Mapping[str, object] = field(default_factory=dict)
    derived: Collection[str] = ()
    # Of positions and of norms, where a file leaves them out.
    rotary_base: float = 1e4
    epsilon: float = 1e-6


def _read_llama(config: Config) -> dict[str, object]:
    bias = read_flag(config, "attention_bias", False)
    return {"bias": bias, "output_bias": bias, **_read_attention(config)}


def _read_attention(config: Config) -> dict[str, object]:
    """The windows of blocks, and whether the table of words is the last matrix, too."""
    tied, windows = read_flag(config, "tie_word_embeddings", False), list_windows(config)
    # Most networks have one for all blocks.
    if len({*windows}) == 1:
        return {"window": windows[0], "tied": tied}
    return {"windows": windows, "tied": tied}


def _read_deepseek(config: Config) -> dict[str, object]:
    ranks = {
        "rank": "kv_lora_rank",
        "content": "qk_nope_head_dim",
        "rotary": "qk_rope_head_dim",
        "value": "v_head_dim",
    }
    latent = {setting: read_size(config, key) for setting, key in ranks.items()}
    query = None if config.get("q_lora_rank") is None else read_size(config, "q_lora_rank")
    shared = read_count(config, "n_shared_experts")
    return {
        **_read_attention(config),
        "latent": {**latent, "query_rank": query},
        "shared_hidden": shared * read_size(config, "moe_intermediate_size"),
        # Without an auxiliary loss, a bias per expert balances their loads.
        "corrects": config.get("topk_method") == "noaux_tc",
        "dense_blocks": read_count(config, "first_k_dense_replace"),
    }


def _read_t5(config: Config) -> dict[str, object]:
    # A file leaves out what its class has by default: tied tables here and in gpt2, not in llama.
    activation = str(config.get("feed_forward_proj", "relu"))
    tied = read_flag(config, "tie_word_embeddings", True)
    return {"gated": activation.startswith("gated"), "tied": tied}


DECODER = {
    "blocks": "num_hidden_layers",
    "features": "hidden_size",
    "heads": "num_attention_heads",
    "vocabulary": "vocab_size",
}
KEYS_AND_VALUES = {"kv_heads": "num_key_value_heads", "head_features": "head_dim"}
DENSE = {"hidden": "intermediate_size"}
GATED: dict[str, tuple[object, ...]] = {"hidden_act": GATES}


def _with_experts(count: str, hidden: str) -> dict[str, str]:
    """The keys of a decoder with experts: their number, and the features inside one."""
    experts = {"experts": count, "active": "num_experts_per_tok", "expert_hidden": hidden}
    return DECODER | experts


TYPES = {
    "gpt2": ModelType(
        "gpt",
        sizes={
            "blocks": "n_layer",
            "features": "n_embd",
            "heads": "n_head",
            "vocabulary": "vocab_size",
            "positions": "n_positions",
        },
        optional={"hidden": "n_inner"},
        derive=lambda config: {"tied": read_flag(config, "tie_word_embeddings", True)},
        values={"activation_function": SMOOTH, "add_cross_attention": (False,)},
        epsilon=1e-5,
    ),
    "llama": ModelType(
        "llama", DECODER | DENSE, KEYS_AND_VALUES, _read_llama, GATED | {"mlp_bias": (False,)}
    ),
    "mistral": ModelType("llama", DECODER | DENSE, KEYS_AND_VALUES, _read_llama, GATED),
    # Its config.json has no key for biases.
    "qwen2": ModelType(
        *("llama", DECODER | DENSE, KEYS_AND_VALUES, _read_attention, GATED),
        fixed={"bias": True, "output_bias": False},
    ),
    "qwen3": ModelType(
        *("llama", DECODER | DENSE, KEYS_AND_VALUES, _read_llama, GATED),
        fixed={"normalise_heads": True},
    ),
    "mixtral": ModelType(
        "moe",
        _with_experts("num_local_experts", "intermediate_size"),
        KEYS_AND_VALUES,
        _read_attention,
        GATED,
        rotary_base=1e6,
        epsilon=1e-5,
    ),
    "qwen3_moe": ModelType(
        "moe",
        DENSE | _with_experts("num_experts", "moe_intermediate_size"),
        KEYS_AND_VALUES | {"every": "decoder_sparse_step"},
        _read_attention,
        GATED | {"mlp_only_layers": ([], None), "attention_bias": (False,)},
        fixed={"normalise_heads": True},
    ),
    "deepseek_v3": ModelType(
        "moe",
        DENSE | _with_experts("n_routed_experts", "moe_intermediate_size"),
        derive=_read_deepseek,
        values=GATED | {"moe_layer_freq": (1,), "attention_bias": (False,)},
        derived=("n_shared_experts",),
    ),
    "t5": ModelType(
        "t5",
        sizes={
            "blocks": "num_layers",
            "features": "d_model",
            "heads": "num_heads",
            "head_features": "d_kv",
            "hidden": "d_ff",
            "vocabulary": "vocab_size",
        },
        optional={"distances": "relative_attention_num_buckets"},
        derive=_read_t5,
        values={"feed_forward_proj": ("relu", *(f"gated-{name}" for name in GATES))},
    ),
}


def read_config(path: Path) -> dict[str, object]:
    """The definition of the network that a config.json describes, as a model file has it.

    InputError: what is not known or not modelled.
    """
    where, config = str(path), load(path).data
    form, key = _find_type(config, where), "max_position_embeddings"
    with add_place(where):
        settings = _read_settings(config, form)
        longest = None if config.get(key) is None else read_size(config, key)
    source = f"config.json of Hugging Face, model_type {config['model_type']}"
    if left_out := config.get("num_nextn_predict_layers"):
        source += f"; without {left_out} layer(s) that predict further tokens"
    if config.get("quantization_config"):
        source += "; parameters stored in fp8, counted in the precision of the question"
    # All checkpoints have a config.json: the folder says of which model it is.
    name = (path.resolve().parent.name if path.name == "config.json" else path.stem) or "config"
    return {
        "name": name,
        "title": name,
        "source": [source],
        "rank": 1,
        "customary": "pile",
        "longest": longest,
        "constants": _read_constants(config, form),
        "family": {"name": form.family, **settings},
    }


def _read_constants(config: Config, form: ModelType) -> dict[str, object]:
    """The numbers that change no prediction, which the file states or its class has."""
    # Transformers 5 has them all under one key.
    stated = config.get("rope_parameters") or config.get("rope_scaling")
    rope: Config = stated if isinstance(stated, dict) else {}
    kind = rope.get("rope_type", rope.get("type"))
    # Of Llama 3: Megatron-LM has no other than these.
    usual = {"low_freq_factor": 1, "high_freq_factor": 4, "original_max_position_embeddings": 8192}
    if kind == "llama3" and any(rope.get(key, n) != n for key, n in usual.items()):
        kind = "llama3 of other frequencies"
    epsilon = config.get("rms_norm_eps") or config.get("layer_norm_epsilon")
    return {
        "rotary_base": config.get("rope_theta") or rope.get("rope_theta") or form.rotary_base,
        **({"rope_scaling": kind, "rope_factor": rope.get("factor")} if kind != "default" else {}),
        "norm_epsilon": epsilon or form.epsilon,
    }


def _find_type(config: Config, where: str) -> ModelType:
    name = config.get("model_type")
    if name is None:
        raise InputError("no config.json of Hugging Face: model_type is missing", where=where)
    if not isinstance(name, str) or name not in TYPES:
        # Without a hint: close names are other networks, as llama4 is no llama.
        advice = f"known: {', '.join(sorted(TYPES))}; write others as YAML (docs/your-model.md)"
        raise InputError(f"unknown model_type {shorten(name)}", where=where, advice=advice)
    return TYPES[name]


def _read_settings(config: Config, form: ModelType) -> dict[str, object]:
    """The settings of the family. InputError: a key that is missing, wrong or not modelled."""
    for key, values in form.values.items():
        if key in config and config[key] not in values:
            known = ", ".join(map(json.dumps, values))
            raise InputError(
                f"{key}: {shorten(config[key])} is not modelled", advice=f"known: {known}"
            )
    _refuse_experts(config, form)
    _refuse_quantised(config)
    sizes = {setting: read_size(config, key) for setting, key in form.sizes.items()}
    for setting, key in form.optional.items():
        if config.get(key) is not None:
            sizes[setting] = read_size(config, key)
    settings = {**sizes, **form.fixed, **form.derive(config)}
    features, heads, blocks = sizes["features"], sizes["heads"], sizes["blocks"]
    if not {"head_features", "latent"} & {*settings} and features % heads:
        raise InputError(f"{form.sizes['heads']}: {describe_heads(features, heads)}")
    if heads % sizes.get("kv_heads", 1):
        raise InputError(f"{form.optional['kv_heads']}: expected a divisor of {heads}")
    if "experts" in sizes:
        _expect_experts(settings)
    stacks = config.get("num_decoder_layers")
    if stacks not in (None, blocks):
        raise InputError(
            f"num_decoder_layers: {shorten(stacks)} is not modelled, other than "
            f"the {blocks} of the encoder"
        )
    return settings


def _refuse_experts(config: Config, form: ModelType) -> None:
    """Raise InputError for a key of experts that the type does not have."""
    read = {*form.sizes.values(), *form.optional.values(), *form.values, *form.derived}
    # The number may be there twice.
    count = config.get(find_key(config, form.sizes.get("experts", "")))
    known = {find_key(config, key) for key in read} | {
        key for key in EXPERTS if count is not None and config.get(key) == count
    }
    for key, value in config.items():
        # Texts and fractions are of how they are trained. A single expert is none, if not shared.
        harmless = isinstance(value, str | float) or value in (None, 0, [])
        harmless |= value == 1 and value is not True and "shared" not in key
        if key not in known and re.search("expert|moe", key) and not harmless:
            raise InputError(
                f"{key}: {shorten(value)} is not modelled for model_type {config['model_type']}",
                advice="write the network as YAML (docs/your-model.md)",
            )


def _expect_experts(settings: Mapping[str, Any]) -> None:
    """Raise InputError if no block has experts, or a token is sent to more than there are."""
    blocks, experts, active = (settings[name] for name in ("blocks", "experts", "active"))
    dense, every = settings.get("dense_blocks", 0), settings.get("every", 1)
    if dense + every > blocks:
        key = "first_k_dense_replace" if dense else "decoder_sparse_step"
        raise InputError(f"{key}: {dense or every} leaves none of {blocks} blocks with experts")
    if active > experts:
        raise InputError(f"num_experts_per_tok: expected at most {experts}, got {active}")


def _refuse_quantised(config: Config) -> None:
    """Raise InputError for weights that no training starts from; fp8 may be what it trained in."""
    stated = config.get("quantization_config")
    method = stated.get("quant_method") if isinstance(stated, dict) else stated
    if stated and method != "fp8":
        raise InputError(
            f"quantization_config: {shorten(method or stated)} is not modelled",
            advice="remove this key to train all weights in the precision of the question",
        )
