"""Networks from Hugging Face's config.json: `--model ./config.json`.

grids/catalogue/model_types.yaml has a row for each `model_type` that is known. What changes a
network and is not modelled is refused: a key with another value than those of the row, keys of
experts that the type does not have, a type without a row. Keys of tokenizers, of generation and of
how weights were first drawn change no prediction, and are passed over.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from paradl.grids.models.files.expressions import fill_in
from paradl.grids.models.files.model_types import (
    PATTERNS,
    WORDS,
    ModelType,
    list_types,
)
from paradl.grids.models.files.template import MOST_TIMES, load_family
from paradl.grids.models.steps.settings import describe_heads
from paradl.grids.reading.errors import InputError, add_place, find_meant, format_count, shorten
from paradl.grids.reading.yamlfile import load

Config = Mapping[str, Any]  # what `load` gives
MOST_SIZE = 2**31
# Where files have a list of the kinds of blocks, and of their MLPs.
LAYERS = (
    *("layer_types", "layers_block_type", "hybrid_override_pattern"),
    *("attention_layers", "attn_type_list"),
)
MLPS = {"dense": "mlp", "sparse": "experts"}
SLIDES = ("sliding_attention", "chunked_attention", "local")  # kinds that a window bounds
# Where a network of several parts has the one of text.
TEXT = ("text_config", "llm_config", "language_config", "thinker_config")
# Keys of experts that say how they are trained, or run.
RUN = re.compile("capacity|aux|loss|drop|dispatch|overlap|mixed_mlp|router|scoring")
NONE = re.compile("first|shared|offset|window|experts$|start|type_vocab|per_tok")  # may be 0
SHARED = ("model_type", "tie_word_embeddings")  # of a part that does not state its own
WORDS_OUT = re.compile("LM|Conditional|MTModel|ForPreTraining|ChatGLM")  # classes that have them
EPSILONS = ("rms_norm_eps", "layer_norm_epsilon", "layer_norm_eps", "norm_epsilon", "norm_eps")


def read_config(path: Path) -> dict[str, object]:
    """The definition of the network that a config.json describes, as a model file has it.

    InputError: what is not known or not modelled.
    """
    where, whole = str(path), load(path).data
    with add_place(where):
        kind, config = _find_text(whole)
        form = list_types()[kind]
        is_whole = config is whole
        for part in form.parts:
            if isinstance(inner := config.get(part), dict):
                config = {**inner, **config}
        reader = _Reader(kind, form, config, is_whole)
        settings = reader.read_settings()
        longest = reader.find_key("max_position_embeddings")
        positions = (
            None if config.get(longest) is None else read_size(config, longest) - form.reserved
        )
    source = f"config.json of Hugging Face, model_type {kind}"
    if not is_whole or "vision_config" in whole:
        source += f", the text part of {whole.get('model_type')} alone"
    ends = str(whole.get("architectures") or "LM").strip("[]'")
    if form.rank == 1 and not WORDS_OUT.search(ends):
        source += f"; with the matrix that predicts words, not the end of {shorten(ends)}"
    if left_out := config.get("num_nextn_predict_layers"):
        source += f"; without {left_out} layer(s) that predict further tokens"
    if stored := _name_quantised(config, whole):
        source += f"; parameters stored in {stored}, counted in the precision of the question"
    # All checkpoints have a config.json: the folder says of which model it is.
    name = (path.resolve().parent.name if path.name == "config.json" else path.stem) or "config"
    return {
        "name": name,
        "title": name,
        "source": [source],
        "rank": form.rank,
        "customary": form.customary,
        "longest": positions if form.rank == 1 else None,
        "constants": _read_constants(config, form),
        "family": {"name": form.family, **settings},
    }


def _find_text(config: Config) -> tuple[str, Config]:
    """Find the type and the keys of a network, or of its part for text.

    InputError: a type without a row.
    """
    for key in TEXT:
        if isinstance(part := config.get(key), dict):
            usual = {key: config[key] for key in SHARED if config.get(key) is not None}
            return _find_text(usual | {key: n for key, n in part.items() if n is not None})
    name = config.get("model_type")
    if name is None:
        raise InputError("no config.json of Hugging Face: model_type is missing")
    if not isinstance(name, str) or name not in list_types():
        raise InputError(f"unknown model_type {_quote(name)}", advice=_ask_for_blocks(name))
    return name, config


def _ask_for_blocks(name: object) -> str:
    """Ask whether blocks are as of a type that is known: close names are other networks."""
    types = list_types()
    nearest = find_meant(str(name), types) or "llama"
    settings = load_family(types[nearest].family).settings | types[nearest].settings
    norm = f"{settings.get('norm', '$')} {settings.get('norms', '$')} parts"
    words = [] if "$" in norm else [norm]
    words.append("gated MLPs" if settings.get("gated") else "MLPs without gates")
    words += [word for word in ("experts", "latent", "sinks", "gates") if settings.get(word)]
    return (
        f"{len(types)} are known (docs/your-model.md). Does it have the blocks of {nearest} "
        f"({', '.join(words)}), or which? Write them as YAML: family decoder has settings for each"
    )


class _Reader(NamedTuple):
    """A configuration, and what its type makes of it. is_whole: it is no part of another."""

    kind: str
    form: ModelType
    config: Config
    is_whole: bool

    def read_settings(self) -> dict[str, Any]:
        """The settings of the family. InputError: a key that is missing, wrong or not modelled."""
        names = self.read_keys()
        self.refuse_experts()
        names |= PATTERNS
        settings = {
            setting: _fill(value, names)
            for setting, value in self.form.settings.items()
            if setting in load_family(self.form.family).settings
        }
        self.expect_shares(settings)
        if "mixers" in load_family(self.form.family).settings:
            settings |= self.read_layers(names)
        if "experts" in self.form.settings:
            self.expect_experts(settings)
        return settings

    def read_keys(self) -> dict[str, Any]:
        """All keys of the row by their usual names, those that a file leaves out by default."""
        form, names = self.form, dict[str, Any]()
        if self.config.get(self.find_key("num_hidden_layers")) is None:
            listed = next((self.config[key] for key in LAYERS if key in self.config), None)
            if isinstance(listed, str | list):
                names["num_hidden_layers"] = len(listed)
        for key, default in form.sizes.items():
            name = self.find_key(key)
            if key in names:
                continue
            if default is None and self.config.get(name) is None:
                names[key] = None
            elif not self.is_whole and name not in self.config:
                names[key] = default
            else:
                names[key] = read_size(self.config, name)
        names |= {key: self.read_key(key, default) for key, default in form.keys.items()}
        for key, known in form.only.items():
            values = WORDS[known] if isinstance(known, str) else known
            if names[key] not in values or isinstance(names[key], bool) is not any(
                isinstance(value, bool) for value in values
            ):
                raise InputError(
                    f"{self.find_key(key)}: {_quote(names[key])} is not modelled",
                    advice=f"known: {', '.join(map(json.dumps, values))}",
                )
        return names

    def read_key(self, key: str, default: object) -> object:
        """The value of a key, of its default's kind; numbers may be left out as null."""
        name = self.find_key(key)
        value = self.config.get(name, default)
        if isinstance(default, list) and (value is None or isinstance(value, list)):
            return value or []
        if isinstance(value, list) and len({*map(str, value)}) == 1:
            value = value[0]  # of each block, all alike
        if isinstance(known := self.form.only.get(key), list) and value in known:
            return value
        if isinstance(default, bool):
            # A text such as "false" is true to Python; null is false.
            if value is not None and not isinstance(value, bool):
                raise InputError(f"{name}: expected true or false, got {_quote(value)}")
            return bool(value)
        if value is None or (type(value) is type(default) and value == default):
            return value
        if isinstance(default, str | float) and type(value) in (type(default), int):
            return value
        may_be_0 = default is not None and (default == 0 or NONE.search(key))
        if type(value) is int and value == 0 and may_be_0:
            return 0
        return read_size({name: value}, name)

    def find_key(self, key: str) -> str:
        """The key that the file has: its type's own, the usual one, or that of other versions."""
        names = self.form.list_names(key)
        return next((name for name in names if self.config.get(name) is not None), names[0])

    def read_layers(self, names: Mapping[str, Any]) -> dict[str, Any]:
        """The mixer, window and MLP of each block."""
        blocks, form = min(names["num_hidden_layers"], MOST_TIMES), self.form
        stated = next((key for key in LAYERS if self.config.get(key) is not None), None)
        turns = _fill(form.layers, names) if stated is None else self.config[stated]
        if not isinstance(turns, str | list) or not turns or (stated and len(turns) != blocks):
            what = f"expected a list of {format_count(blocks, 'kind')}"
            raise InputError(f"{stated or 'layers'}: {what}")
        window = None if form.window is None else _fill(form.window, names)
        mixers, windows, mlps = list[str](), list[int | None](), list[str | None]()
        for block in range(blocks):
            word = str(turns[block % len(turns)])
            if word not in form.kinds:
                what = f"{stated}.{block}: {_quote(turns[block % len(turns)])} is not modelled"
                raise InputError(what, advice=f"known: {', '.join(form.kinds)}")
            if stated and word == "sliding_attention" and not window:
                what = f"{stated}.{block}: 'sliding_attention' needs a sliding_window"
                raise InputError(what)
            mixer, mlp = form.kinds[word]
            mixers.append(mixer)
            windows.append(window or None if word in SLIDES else None)
            mlps.append(mlp)
        stated_mlps = self.config.get("mlp_layer_types")
        if stated_mlps is not None:
            words = {*map(str, stated_mlps)} if isinstance(stated_mlps, list) else set[str]()
            if not words or not words <= {*MLPS} or len(stated_mlps) != blocks:
                what = f"expected {blocks} of {', '.join(MLPS)}"
                raise InputError(f"mlp_layer_types: {what}")
            mlps = [MLPS[word] for word in stated_mlps]
        dense = mlps.index("experts") if "experts" in mlps else 0
        if stated_mlps and mlps == ["mlp"] * dense + ["experts"] * (blocks - dense):
            mlps = []
        return {
            **({"dense_blocks": dense} if stated_mlps and not mlps else {}),
            **({"mixers": _shorten_turns(mixers)} if {*mixers} != {"attention"} else {}),
            **({"mlps": _shorten_turns(mlps)} if any(mlps) else {}),
            **({"window": windows[0]} if len({*windows}) == 1 else {"windows": windows}),
        }

    def expect_shares(self, settings: Mapping[str, Any]) -> None:
        """Raise InputError if heads do not divide features, or keys' heads those of queries."""
        form, heads, features = self.form, settings["heads"], settings["features"]
        # Unless the file states the features of a head, they are a quotient.
        depth = settings.get("head_features", features / heads)
        if "latent" not in settings and depth != int(depth):
            raise InputError(f"{form.find_key('heads')}: {describe_heads(features, heads)}")
        if heads % settings.get("kv_heads", 1):
            key = self.find_key("num_key_value_heads")
            what = f"{form.find_key('kv_heads')}: expected a divisor of {heads}"
            if key not in self.config:
                what += f", got {settings['kv_heads']}, which Transformers has without this key"
            raise InputError(what)

    def expect_experts(self, settings: dict[str, Any]) -> None:
        """Raise InputError if no block has experts, or a token is sent to more than there are."""
        form, mlps = self.form, settings.get("mlps") or ["experts"]
        blocks, experts, active = (settings[name] for name in ("blocks", "experts", "active"))
        if any(mlp for _, mlp in form.kinds.values()) and "experts" not in mlps:
            experts = settings["experts"] = 0  # as the list of blocks says
        elif not experts and settings["hidden"] and experts is not None:
            settings["mlps"] = ["mlp" if mlp == "experts" else mlp for mlp in mlps]
        elif not experts:
            read_size({form.find_key("experts"): experts}, form.find_key("experts"))
        elif (
            settings.get("dense_blocks", 0) + settings.get("every", 1) > blocks
            or "experts" not in mlps[:blocks]
        ):
            places = ("dense_blocks", "mlps" if settings.get("mlps") else "every")
            key = form.find_key(next(name for name in (*places, "mlps") if settings.get(name)))
            what = f"{key}: {_quote(self.config.get(key))} leaves none of {blocks} blocks"
            raise InputError(f"{what} with experts")
        elif not active or active > experts:
            what = f"expected at most {experts}, got {active}"
            raise InputError(f"{form.find_key('active')}: {what}")

    def refuse_experts(self) -> None:
        """Raise InputError for a key of experts that the type does not have."""
        # A number may be there under several names.
        known = {"mlp_layer_types"}
        for key in (*self.form.sizes, *self.form.keys):
            value = self.config.get(self.find_key(key))
            names = (key, *self.form.list_names(key))
            known |= {name for name in names if self.config.get(name) in (None, value)}
        for key, value in self.config.items():
            # Texts and fractions are of how they are trained. A single expert is none, if not
            # shared.
            harmless = isinstance(value, str | float) or value in (None, 0, [])
            harmless |= value == 1 and value is not True and "shared" not in key
            harmless |= RUN.search(key) is not None
            if key not in known and re.search("expert|moe", key) and not harmless:
                raise InputError(
                    f"{key}: {_quote(value)} is not modelled for model_type {self.kind}",
                    advice="write the network as YAML (docs/your-model.md)",
                )


def read_size(config: Config, key: str) -> int:
    """A whole number above 0."""
    if key not in config:
        raise InputError(f"{key}: this key is missing")
    size = config[key]
    # The exact type: JSON's true is an int to Python.
    if type(size) is not int or not 0 < size < MOST_SIZE:
        raise InputError(
            f"{key}: expected a whole number from 1 to {MOST_SIZE - 1:,}, got {_quote(size)}"
        )
    return size


def _quote(value: object) -> str:
    """A value for a message: null, true and false as JSON has them."""
    return json.dumps(value) if value in (None, True, False) else shorten(value)


def _fill(value: object, names: Mapping[str, Any]) -> Any:
    """A value of a row with its expressions computed."""
    if isinstance(value, dict):
        return {key: _fill(part, names) for key, part in value.items()}
    return fill_in(value, names) if isinstance(value, str) else value


def _shorten_turns(turns: list[Any]) -> list[Any]:
    """The kinds of blocks in turn: one if all are alike."""
    return turns[:1] if len({*turns}) == 1 else turns


def _read_constants(config: Config, form: ModelType) -> dict[str, object]:
    """The numbers that change no prediction, which the file states or its class has."""
    # Transformers 5 has them all under one key, and of several kinds of blocks in turn.
    stated = config.get("rope_parameters") or config.get("rope_scaling")
    stated = stated if isinstance(stated, dict) else {}
    rope: Config = stated.get("full_attention", stated)
    rope = rope if isinstance(rope, dict) else {}
    scaling = rope.get("rope_type", rope.get("type"))
    # Of Llama 3: Megatron-LM has no other than these.
    usual = {"low_freq_factor": 1, "high_freq_factor": 4, "original_max_position_embeddings": 8192}
    if scaling == "llama3" and any(rope.get(key, n) != n for key, n in usual.items()):
        scaling = "llama3 of other frequencies"
    of_class = {"rotary_base": 1e4, "norm_epsilon": 1e-6} | form.constants
    base, epsilon = of_class["rotary_base"], of_class["norm_epsilon"]
    epsilon = next((config[key] for key in EPSILONS if config.get(key)), epsilon)
    scaled = {"rope_scaling": scaling, "rope_factor": rope.get("factor")}
    return {
        "rotary_base": config.get("rope_theta") or rope.get("rope_theta") or base,
        **(scaled if scaling not in ("default", None) else {}),
        "norm_epsilon": epsilon,
    }


def _name_quantised(*configs: Config) -> str:
    """The format that a checkpoint stores its parameters in, if none of those of training."""
    stated = next((config.get("quantization_config") for config in configs), None)
    method = stated.get("quant_method") if isinstance(stated, dict) else stated
    return str(method or "")[:40]
