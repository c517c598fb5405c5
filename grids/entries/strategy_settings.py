"""Settings of strategies: their values by word, and how they are read."""

from collections.abc import Mapping, Sequence
from typing import Literal, TypeVar

from paradl.grids.entries.parameters import PARAMETERS
from paradl.grids.reading.errors import InputError, shorten, suggest_name
from paradl.kernels.names.parallelisms import RECOMPUTE, WRITTEN
from paradl.kernels.options import Schedule, Zero

Chosen = TypeVar("Chosen")
# By word, the default first.
SCHEDULES: dict[str, Schedule] = {"gpipe": "gpipe", "1f1b": "1f1b", "zb1p": "zb1p"}
# Of layouts, whose default is the one that interleaves chunks.
LAYOUT_SCHEDULES: dict[str, Schedule] = {"1f1b": "1f1b", **SCHEDULES, "zbv": "zbv"}
DIMENSIONS = "dhw"  # depth, height, width: as everywhere, and as in the alphabet
Which = Literal["default", "all"]  # layers that a group splits: the oracle's choice, or every one
# By word, the default first.
LAYERS: dict[str, Which] = {"default": "default", "all": "all"}
ZERO: dict[str, Zero] = {"0": 0, "1": 1, "2": 2, "3": 3}
Size = int | Literal["best"] | None  # None: left open

# Columns of a layout that networks without blocks have, too.
OF_ALL = ("pipeline", "data", "micro", "recompute", "zero", "shard", "chunks")
# What these compute again, by the number of that column.
RECOMPUTED = {RECOMPUTE.get(name, 0): name for name in ("none", "layernorm", "full")}
# What may be left to each cell, in the order of choosing.
CHOICES = ("group", *WRITTEN, "segments")


def read_dims(value: str | None, where: str) -> str | None:
    """The spatial dimensions to split, in the order d, h, w; None for those with the least halo."""
    if value is None or value == "auto":
        return None
    if not value or set(value) - set(DIMENSIONS) or len(set(value)) != len(value):
        raise InputError(
            f"split: expected dimensions out of {DIMENSIONS!r}, or 'all' layers, "
            f"got {shorten(value)}",
            where=where,
            advice="write it like 'spatial:split=hw'",
        )
    return "".join(sorted(value))  # "wh" and "hw" are one strategy, and one label


def expect_settings(
    base: str, settings: Mapping[str, str], names: Sequence[str], where: str
) -> None:
    """InputError: a setting that is none of the names."""
    for key in settings:
        if key not in names:
            advice = suggest_name(key, names) if names else f"{base} has no settings"
            raise InputError(
                f"strategy {shorten(base)} has no setting {shorten(key)}",
                where=where,
                advice=advice,
            )


def read_one(name: str, value: str | None, known: Mapping[str, Chosen], where: str) -> Chosen:
    """The value that a word stands for, the first one by default."""
    word = next(iter(known)) if value is None else value
    if word not in known:
        raise InputError.unknown(name, word, known, where=where)
    return known[word]


def read_choice(name: str, value: str | None, where: str) -> Size:
    """A setting's whole number, within the parameter's bounds, or `best`; None: left open."""
    if value is None:
        return None
    if value == "best":
        return "best"
    return int(PARAMETERS[name].read(value, f"{where} {name}".strip()))


def write_size(name: str, size: Size) -> str | None:
    """A setting's number as a user writes it, such as `recompute=full`; None: left out."""
    return str(PARAMETERS[name].write(size)) if isinstance(size, int) else size
