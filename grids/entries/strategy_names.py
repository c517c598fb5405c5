"""Words of strategies: what each means, its limit, and the order of what is written."""

import re

from paradl.grids.reading.errors import InputError, shorten, suggest_name
from paradl.kernels.names.parallelisms import (
    ALSO,
    DATA,
    KINDS,
    TRANSFORMERS,
    WORDS,
    WRITTEN,
    explain_conflict,
)

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
    """Advice on a name that is no strategy's."""
    if label := _read_words(base.casefold()):
        return f"write {label!r}, whose replicas are the PEs that remain"
    # Stages and versions are written behind a name: zero-3, fsdp2.
    parts = (part.strip().rstrip("-123") for part in base.casefold().split("+"))
    inner = next((part for part in parts if part in ALSO), None)
    return suggest_name(base, MEANING) if inner is None else f"{inner} is {ALSO[inner]}"


def _read_words(text: str) -> str:
    """Label of a strategy written as a layout, `tp8 pp4`, or with its degrees, `data+filter=8`."""
    words = re.findall(r"([a-z_]+)=?(\d*)", text)
    degrees = [(WORDS[word].name if word in WORDS else word, number) for word, number in words]
    names = {name for name, _ in degrees}
    inner = [name for name in WRITTEN if name in names]
    if not any(number for _, number in degrees) or not names <= {
        *(DATA, "chunks", "micro", "zero"),
        *WRITTEN,
    }:
        return ""
    # The only parallelism of other networks has groups, whose size is its degree.
    alone = len(inner) == 1 and inner[0] in KINDS
    settings = [
        f"{'group' if alone and name in inner else name}={number}"
        for name, number in degrees
        if name != DATA and number
    ]
    return ":".join(filter(None, ("+".join([DATA, *inner]), ",".join(settings))))


def expect_replicas(base: str, where: str) -> None:
    """InputError: a layout without data parallelism, whose degree is what others leave of PEs."""
    if base.partition("+")[0] != DATA:
        raise InputError(
            f"{shorten(base)} is no layout without 'data'",
            where=where,
            advice=f"write 'data+{base}': replicas are the PEs that its degrees leave",
        )
