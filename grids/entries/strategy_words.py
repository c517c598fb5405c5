"""Words of strategies: what each means, its limit, their order, and the settings behind them."""

from collections.abc import Mapping, Sequence
from typing import Literal, TypeVar

from paradl.grids.reading.errors import InputError, find_meant, shorten, suggest_name
from paradl.kernels.names.parallelisms import (
    ALSO,
    DATA,
    KINDS,
    RECOMPUTE,
    TRANSFORMERS,
    WRITTEN,
    explain_conflict,
)
from paradl.kernels.options import Schedule, Zero

Chosen = TypeVar("Chosen")
_TABLE_III = [name for name, kind in KINDS.items() if kind.table_iii]
_OTHERS = [name for name in KINDS if name not in _TABLE_III]


def _list_hybrids(names: list[str]) -> dict[str, str]:
    return {f"data+{name}": f"{name} inside a replica, data across replicas" for name in names}


# Of one parallelism inside a replica at most; several may be combined.
MEANING = {
    "serial": "one PE",
    "data": "samples divided, weights replicated; gradients all-reduced",
    **{name: KINDS[name].meaning for name in _TABLE_III},
    **_list_hybrids(_TABLE_III),
    **{name: KINDS[name].meaning for name in _OTHERS},
    **_list_hybrids(_OTHERS),
    **{f"data+{name}": kind.meaning for name, kind in TRANSFORMERS.items()},
}

# Those of Table III, which a spec has by default: to place operators takes seconds a model.
TABLE_III = ("serial", "data", *_TABLE_III, *_list_hybrids(_TABLE_III))

# In words, for the catalogue; `kernels/oracle/limits.py` computes them.
LIMIT = {
    "serial": "p = 1",
    "data": "p <= B",
    **{name: kind.limit for name, kind in KINDS.items()},
    **{f"data+{name}": f"p1 <= B, p2 as {name}" for name in KINDS},
    **{f"data+{name}": kind.limit for name, kind in TRANSFORMERS.items()},
}


def order_parts(base: str, where: str) -> str:
    """`data+filter` of `filter+data`: which of them is inside is no choice."""
    names = [part.strip() for part in base.split("+")]
    ordered = [name for name in (DATA, *WRITTEN) if name in names]
    if base in MEANING or sorted(names) != sorted(ordered):
        if base not in MEANING:
            what, advice = f"unknown strategy {shorten(base)}", _advise(base)
            raise InputError(what, where=where, advice=advice, page="unknown-name")
        return base
    conflict = explain_conflict(ordered)
    if conflict is not None:
        advice = "'paradl list strategies' lists what can be combined"
        raise InputError(f"no strategy {shorten(base)}: {conflict}", where=where, advice=advice)
    return "+".join(ordered)


def _advise(base: str) -> str:
    # Stages and versions are written behind a name: zero-3, fsdp2.
    parts = (part.strip().rstrip("-123") for part in base.casefold().split("+"))
    inner = next((part for part in parts if part in ALSO), None)
    if inner is not None:
        return f"{inner} is {ALSO[inner]}"
    names = suggest_name(base, MEANING)
    return names if find_meant(base, MEANING) else f"{names}; or a layout, as in 'tp8 pp4 dp2'"


def expect_replicas(base: str, where: str) -> None:
    """InputError: a layout without data parallelism, whose degree is what others leave of PEs."""
    if base.partition("+")[0] != DATA:
        what, advice = f"{shorten(base)} is no layout without 'data'", f"write 'data+{base}'"
        raise InputError(what, where=where, advice=advice)


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
        what = f"split: expected some of {DIMENSIONS!r}, such as hw, or all, got {shorten(value)}"
        raise InputError(what, where=where)
    return "".join(sorted(value))  # "wh" and "hw" are one strategy, and one label


def expect_settings(
    base: str, settings: Mapping[str, str], names: Sequence[str], where: str
) -> None:
    """InputError: a setting that is none of the names."""
    for key in settings:
        if key not in names:
            what = f"strategy {shorten(base)} has no setting {shorten(key)}"
            advice = suggest_name(key, names) if names else f"{base} has no settings"
            raise InputError(what, where=where, advice=advice)


def read_one(name: str, value: str | None, known: Mapping[str, Chosen], where: str) -> Chosen:
    """The value that a word stands for, the first one by default."""
    word = next(iter(known)) if value is None else value
    if word not in known:
        raise InputError.unknown(name, word, known, where=where)
    return known[word]
