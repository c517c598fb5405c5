"""Keys of Hugging Face's config.json: numbers, flags, and the windows of attention."""

from collections.abc import Mapping
from typing import Any

from paradl.grids.models.files.template import MOST_TIMES
from paradl.grids.reading.errors import InputError, format_count, shorten

Config = Mapping[str, Any]
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
            raise InputError(
                f"layer_types.{number}: {shorten(name)} is not modelled",
                advice=f"known: {', '.join(windows)}",
            )
        if name == "sliding_attention" and window is None:
            raise InputError(
                f"layer_types.{number}: 'sliding_attention' needs a sliding_window",
                advice="state it, and for a Qwen 'use_sliding_window': true",
            )
    return [windows[name] for name in types]
