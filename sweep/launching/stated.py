"""Facts that statements of a script are, those that are a framework's defaults, and the rest."""

import re
from collections.abc import Sequence
from functools import cache
from math import prod
from typing import NamedTuple

from paradl.grids.reading.errors import InputError, shorten
from paradl.sweep.launching.conversions import CONVERSIONS
from paradl.sweep.launching.facts import (
    CONFIGURATIONS,
    VARIABLE,
    Facts,
    Framework,
    Statement,
    load_table,
)
from paradl.sweep.launching.networks import find_name
from paradl.sweep.launching.python_file import Maker


def is_harmless(key: str) -> bool:
    """Return whether a parameter changes no prediction, of those that no table has."""
    harmless, loud = _load_harmless()
    key = key.lower().rpartition("overrides.")[2]  # Primus: modules.pre_trainer.overrides.
    return bool(harmless.search(key)) and not loud.search(key)


@cache
def _load_harmless() -> tuple[re.Pattern[str], re.Pattern[str]]:
    data = load_table("harmless")
    words = "|".join(word for row in data["harmless"] for word in row)
    return re.compile(rf"^\w$|(^|[._])({words})"), re.compile(data["loud"])


class Stated(NamedTuple):
    """Facts of a script; those that are the framework's defaults; what is not known.

    open: variables of the environment that facts wait for, by the fact.
    """

    facts: Facts
    defaults: Facts
    open: dict[str, str]
    unknown: list[Statement]


def read_facts(framework: Framework, statements: Sequence[Statement]) -> Stated:
    """Return the facts that statements are; later ones replace earlier ones.

    InputError: a value that its parameter does not take.
    """
    facts, waiting, unknown = Facts(), dict[str, str](), list[Statement]()
    for statement in statements:
        row = framework.find_row(statement.key)
        if row is None:
            is_file = str(statement.value)[-9:].endswith(CONFIGURATIONS)
            if not (is_file or isinstance(statement.value, Maker) or is_harmless(statement.key)):
                unknown.append(statement)
            continue
        if match := VARIABLE.search(str(statement.value)[:10_000]):
            waiting[row.name] = f"${match[1]}" if match[1] else "a command"
            facts.pop(row.name, None)
            continue
        try:
            value = row.read(statement.value)
        except (ValueError, OverflowError):
            known = f"known: {', '.join(map(str, row.words.values()))}" if row.words else ""
            what = f"{shorten(statement.value)} is not understood"
            raise InputError(what, where=statement.key, advice=known) from None
        if value is None and facts.get(row.name) is None and str(statement.value) == "auto":
            waiting[row.name] = "auto"
        # What makes a value is the network's name only if it is one.
        is_known = row.name not in ("model_name", "recipe") or find_name(str(value))
        is_maker = isinstance(statement.value, Maker) and row.name == "model_name"
        is_worse = not is_known and (facts.get(row.name) or is_maker)
        if (value is not None or row.name not in facts) and not is_worse:
            facts[row.name] = value
        if value is not None:
            waiting.pop(row.name, None)
    stated = {name for name, value in facts.items() if value is not None} | {*waiting}
    # Parameters of one fact agree on its default, or the first one has it.
    defaults: Facts = {}
    for row in framework.rows.values():
        if row.name not in stated and row.usual is not None:
            defaults.setdefault(row.name, row.usual)
    facts |= defaults
    return Stated(facts, defaults, waiting, unknown)


def fold(framework: Framework, facts: Facts) -> Facts:
    """Return our facts of a framework's. InputError: what is not modelled."""
    return CONVERSIONS[framework.conversion][0](framework.fold(facts))


def complete(facts: Facts, pes: int | None) -> Facts:
    """Return facts with what follows from the number of PEs and of blocks: batch, chunks."""
    found = facts | {"chunks": facts.get("chunks") or 1}
    stages = int(facts.get("pipeline") or 1)
    if facts.get("chunk_blocks") and facts.get("blocks"):
        blocks = facts["blocks"] + (facts.get("chunk_less") or 0)
        parts = -(-blocks // facts["chunk_blocks"])
        # Megatron's parts are even, torchtitan's last one may be smaller.
        if parts % stages or (not facts.get("chunk_less") and blocks % facts["chunk_blocks"]):
            what = f"{blocks} blocks do not fill {stages} stages with chunks of "
            advice = "change the blocks of a chunk, or give --strategy"
            raise InputError(what + str(facts["chunk_blocks"]), where="launch", advice=advice)
        found["chunks"] = int(parts // stages)
    if facts.get("method") == "block":  # of each part, so many
        some = int(facts.get("again") or 1) * stages * found["chunks"]
        found["some_blocks"] = some < (facts.get("blocks") or 0)
    local = facts.get("local_batch") or facts.get("micro")
    if pes and local and not facts.get("global_batch"):
        passes = local * (facts.get("accumulate") or 1)
        found["global_batch"] = int(passes * max(pes // count_inside(facts), 1))
    return found


def count_inside(facts: Facts) -> int:
    """Count the PEs of a replica."""
    return prod(int(facts.get(name) or 1) for name in ("tensor", "context", "pipeline"))
