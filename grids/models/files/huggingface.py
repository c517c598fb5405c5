"""Networks from Hugging Face's config.json: `--model ./config.json`.

TYPES has a row for each `model_type` that is known: the family of the catalogue, and the keys that
its settings stand under. What changes a network and is not modelled is refused: a key with another
value than those of the row, a type that has none. Keys of tokenizers, of generation and of how
weights were first drawn change no prediction, and are passed over.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from grids.reading.errors import InputError, add_place, shorten, suggest_name
from grids.reading.textfile import read_text

Config = Mapping[str, Any]
MOST_SIZE = 2**31


@dataclass(frozen=True)
class ModelType:
    """A `model_type`.

    sizes: the keys of settings that are whole numbers, each required. optional: those that may be
    left out or null; the family then has a default. derive: settings that follow from several keys.
    values: what keys may say, if they are there; no other value is modelled.
    """

    family: str
    sizes: Mapping[str, str]
    optional: Mapping[str, str] = field(default_factory=dict)
    derive: Callable[[Config], dict[str, Any]] = lambda config: {}
    values: Mapping[str, tuple[object, ...]] = field(default_factory=dict)


def _read_llama(config: Config) -> dict[str, Any]:
    bias = _read_flag(config, "attention_bias", False)
    return {"bias": bias, "output_bias": bias, **_read_attention(config)}


def _read_qwen2(config: Config) -> dict[str, Any]:
    # Fixed in the model's code: its config.json has no key for biases.
    return {"bias": True, "output_bias": False, **_read_attention(config)}


def _read_qwen3(config: Config) -> dict[str, Any]:
    return {**_read_llama(config), "normalise_heads": True}


def _read_attention(config: Config) -> dict[str, Any]:
    """The window, where it is in use, and whether the table of words is the last matrix, too."""
    # Mistral's files state the window alone, Qwen's also whether it is in use; by default not.
    is_qwen = str(config.get("model_type")).startswith("qwen")
    in_use = _read_flag(config, "use_sliding_window", not is_qwen)
    window = config.get("sliding_window") if in_use else None
    return {"window": window, "tied": _read_flag(config, "tie_word_embeddings", False)}


def _read_qwen3_moe(config: Config) -> dict[str, Any]:
    return {**_read_attention(config), "normalise_heads": True}


def _read_deepseek(config: Config) -> dict[str, Any]:
    ranks = {
        "rank": "kv_lora_rank",
        "content": "qk_nope_head_dim",
        "rotary": "qk_rope_head_dim",
        "value": "v_head_dim",
    }
    latent = {setting: _read_size(config, key) for setting, key in ranks.items()}
    query = None if config.get("q_lora_rank") is None else _read_size(config, "q_lora_rank")

    def read_count(key: str) -> int:
        return _read_size(config, key) if config.get(key) else 0

    shared = read_count("n_shared_experts")
    return {
        "latent": {**latent, "query_rank": query},
        "shared_hidden": shared * _read_size(config, "moe_intermediate_size"),
        # Without an auxiliary loss, a bias per expert balances their loads.
        "corrects": config.get("topk_method") == "noaux_tc",
        "dense_blocks": read_count("first_k_dense_replace"),
        "tied": _read_flag(config, "tie_word_embeddings", False),
    }


def _read_t5(config: Config) -> dict[str, Any]:
    # A file leaves out what its class has by default: tied tables here and in gpt2, not in llama.
    activation = str(config.get("feed_forward_proj", "relu"))
    tied = _read_flag(config, "tie_word_embeddings", True)
    return {"gated": activation.startswith("gated"), "tied": tied}


DECODER = {
    "blocks": "num_hidden_layers",
    "features": "hidden_size",
    "heads": "num_attention_heads",
    "vocabulary": "vocab_size",
}
KEYS_AND_VALUES = {"kv_heads": "num_key_value_heads", "head_features": "head_dim"}
DENSE = {"hidden": "intermediate_size"}


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
        derive=lambda config: {"tied": _read_flag(config, "tie_word_embeddings", True)},
        values={"add_cross_attention": (False,)},
    ),
    "llama": ModelType(
        "llama", DECODER | DENSE, KEYS_AND_VALUES, _read_llama, {"mlp_bias": (False,)}
    ),
    "mistral": ModelType("llama", DECODER | DENSE, KEYS_AND_VALUES, _read_llama),
    "qwen2": ModelType("llama", DECODER | DENSE, KEYS_AND_VALUES, _read_qwen2),
    "qwen3": ModelType("llama", DECODER | DENSE, KEYS_AND_VALUES, _read_qwen3),
    "mixtral": ModelType(
        "moe",
        _with_experts("num_local_experts", "intermediate_size"),
        KEYS_AND_VALUES,
        _read_attention,
    ),
    "qwen3_moe": ModelType(
        "moe",
        DENSE | _with_experts("num_experts", "moe_intermediate_size"),
        KEYS_AND_VALUES | {"every": "decoder_sparse_step"},
        _read_qwen3_moe,
        {"mlp_only_layers": ([],), "attention_bias": (False,)},
    ),
    "deepseek_v3": ModelType(
        "moe",
        DENSE | _with_experts("n_routed_experts", "moe_intermediate_size"),
        derive=_read_deepseek,
        values={"moe_layer_freq": (1,), "attention_bias": (False,)},
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
    ),
}


def read_config(path: Path) -> dict[str, Any]:
    """The definition of the network that a config.json describes, as a model file has it.

    InputError: what is not known or not modelled.
    """
    where, config = str(path), _load(path)
    form = _find_type(config, where)
    with add_place(where):
        settings, longest = _read_settings(config, form), _read_longest(config)
    # All checkpoints have a config.json: the folder says of which model it is.
    name = (path.resolve().parent.name if path.name == "config.json" else path.stem) or "config"
    left_out = config.get("num_nextn_predict_layers")
    heads = f"; without {left_out} layer(s) that predict further tokens" if left_out else ""
    return {
        "name": name,
        "title": name,
        "source": [f"config.json of Hugging Face, model_type {config['model_type']}{heads}"],
        "rank": 1,
        "customary": "pile",
        "longest": longest,
        "family": {"name": form.family, **settings},
    }


def _load(path: Path) -> Config:
    """The file's keys."""
    text = read_text(path)
    try:
        config = json.loads(text, object_pairs_hook=_expect_unique_keys)
    except InputError as error:
        raise InputError(str(error), where=str(path)) from None
    except json.JSONDecodeError as error:
        raise InputError(f"JSON syntax: {error.msg}", where=f"{path}:{error.lineno}") from None
    except (RecursionError, ValueError):
        raise InputError("nested too deeply, or a number too long", where=str(path)) from None
    if not isinstance(config, dict):
        raise InputError(f"expected a mapping of keys, got {shorten(config)}", where=str(path))
    return config


def _expect_unique_keys(pairs: Sequence[tuple[str, Any]]) -> Config:
    """Return a mapping of JSON's. InputError: a key is repeated, as in YAML."""
    mapping: dict[str, Any] = {}
    for key, value in pairs:
        if key in mapping:
            raise InputError(f"the key {shorten(key)} is repeated", advice="keep one")
        mapping[key] = value
    return mapping


def _find_type(config: Config, where: str) -> ModelType:
    name = config.get("model_type")
    if name is None:
        raise InputError(
            "model_type: this key is missing",
            where=where,
            advice="expected a config.json of Hugging Face",
        )
    if not isinstance(name, str) or name not in TYPES:
        raise InputError(
            f"unknown model_type {shorten(name)}",
            where=where,
            advice=f"{suggest_name(str(name), TYPES)}; or write the network as YAML "
            "(docs/your-model.md)",
        )
    return TYPES[name]


def _read_settings(config: Config, form: ModelType) -> dict[str, Any]:
    for key, values in form.values.items():
        if config.get(key, values[0]) not in values:
            raise InputError(f"{key}: {shorten(config[key])} is not modelled")
    settings = {setting: _read_size(config, key) for setting, key in form.sizes.items()}
    for setting, key in form.optional.items():
        if config.get(key) is not None:
            settings[setting] = _read_size(config, key)
    settings |= form.derive(config)
    if settings["heads"] % settings.get("kv_heads", 1):
        raise InputError(f"{form.optional['kv_heads']}: expected a divisor of {settings['heads']}")
    stacks = config.get("num_decoder_layers")
    if stacks not in (None, settings["blocks"]):
        raise InputError(
            f"num_decoder_layers: {shorten(stacks)} is not modelled, other than "
            f"the {settings['blocks']} of the encoder"
        )
    return settings


def _read_longest(config: Config) -> int | None:
    """Tokens of the longest sequence that it was trained for, where the file says so."""
    key = "max_position_embeddings"
    return None if config.get(key) is None else _read_size(config, key)


def _read_size(config: Config, key: str) -> int:
    """A whole number above 0."""
    if key not in config:
        raise InputError(f"{key}: this key is missing")
    size = config[key]
    # The exact type: JSON's true is an int to Python.
    if type(size) is not int or not 0 < size < MOST_SIZE:
        raise InputError(
            f"{key}: expected a whole number from 1 to {MOST_SIZE - 1:,}, got {shorten(size)}"
        )
    return size


def _read_flag(config: Config, key: str, default: bool) -> bool:
    """True or false; the default where the file leaves it out."""
    flag = config.get(key, default)
    # A text such as "false" is true to Python; null is false.
    if flag is not None and not isinstance(flag, bool):
        raise InputError(f"{key}: expected true or false, got {shorten(flag)}")
    return bool(flag)
