"""Layouts as people write them, `tp8 pp4 dp32 mb1 zero1`, as columns by name."""

import re
from collections.abc import Mapping
from math import prod

from paradl.grids.entries.strategy_words import LAYOUT_SCHEDULES, read_one
from paradl.grids.reading.errors import InputError, format_count, shorten
from paradl.kernels.names.parallelisms import (
    DATA,
    KINDS,
    LAYOUT_COLUMNS,
    LAYOUT_DEGREES,
    NEEDS,
    RECOMPUTE,
    WORDS,
    LayoutColumn,
)
from paradl.kernels.options import Schedule

# In answers the words of a layout. An axis of a spec may have that name, too: its values are the
# numbers of its rows, which mean nothing to a reader.
LAYOUT = "layout"
MOST = 2**24  # far more PEs or sequences than any machine or batch has
# Words without a number of their own.
FLAG, SET, SCHEDULE = "sp", "recompute", "schedule"
USUAL = next(iter(LAYOUT_SCHEDULES))
NUMBERED = re.compile(rf"({'|'.join(WORDS)})=?\d+")


def write_layout(columns: Mapping[str, int], schedule: str = USUAL) -> str:
    """Write a layout as words; degrees that divide nothing are left out, and an open data degree.

    schedule: of its pipeline, left out without stages, and if it is the usual one.
    """
    words = [
        _write_number(row, columns[row.name])
        for row in WORDS.values()
        if row.name in columns and (row.always or columns[row.name] != row.usual)
    ]
    # Without tensor parallelism there is nothing for it to divide.
    words += [FLAG] if columns["sequence"] and columns["tensor"] > 1 else []
    modules = name_recompute(columns["recompute"])
    words += [f"{SET}={modules}"] if modules != "none" else []
    is_usual = schedule == USUAL or not _has_stages(columns)
    return " ".join(words if is_usual else [*words, f"{SCHEDULE}={schedule}"])


def _has_stages(columns: Mapping[str, int]) -> bool:
    staged = (name for name, kind in KINDS.items() if kind.divides == "layers")
    return any(columns.get(name, 1) > 1 for name in staged)


def _write_number(row: LayoutColumn, number: int) -> str:
    """Write the number of a column behind its word, such as tp8; of some a name: shard=node."""
    name = next((name for name, value in row.words.items() if value == number), None)
    return f"{row.word}={name}" if name else f"{row.word}{number}"


def name_recompute(bits: int) -> str:
    """Names of the recomputed modules, joined by +, or none."""
    return "+".join(name for name, bit in RECOMPUTE.items() if bits & bit) or "none"


def is_layout(text: str) -> bool:
    """True if a text begins like a layout: with a word and its number."""
    words = text.split()
    return bool(words) and any(NUMBERED.fullmatch(word) for word in words)


def respell(text: str) -> str:
    """Words of a layout that are joined, in capitals, or apart from their numbers; else empty."""
    # Joined by commas, dashes or crosses: tp8xpp4; apart from a number: tp:8 pp 4.
    parts = re.sub(r"[\s,;_x-]*([a-z]+)[\s:]*(\d+)", r" \1\2", text.lower()).split()
    for part in parts:
        name, _, value = part.partition("=")
        named = part == FLAG or name in (SET, SCHEDULE)
        if not (
            NUMBERED.fullmatch(part) or named or (name in WORDS and value in WORDS[name].words)
        ):
            return ""
    return " ".join(parts)


def parse_layout(text: str, where: str) -> tuple[dict[str, int], Schedule]:
    """Parse a layout into its columns and the schedule of its pipeline.

    Columns that are left out have their usual numbers, apart from the replicas: these are the PEs
    that remain. InputError: an unknown word, a word twice, or one without effect.
    """
    given: dict[str, int] = {}
    schedules: list[str] = []
    for word in text.split():
        name, _, value = word.partition("=")
        if name == SCHEDULE:
            schedules.append(value)
        else:
            _read_word(word, text, given, where)
    if len(schedules) > 1:
        raise InputError(f"{SCHEDULE} is repeated", where=where, advice="keep one")
    _refuse_idle_words(given, where)
    if schedules and not _has_stages(given):
        raise InputError(f"{SCHEDULE} has no effect with pp1", where=where, advice="leave it out")
    usual = {name: row.usual for name, row in LAYOUT_COLUMNS.items() if name != DATA}
    schedule = schedules[0] if schedules else None
    return usual | given, read_one(SCHEDULE, schedule, LAYOUT_SCHEDULES, where)


def count_pes(columns: Mapping[str, int]) -> int:
    """Count the PEs of a layout, or those of a replica if its data degree is open."""
    return prod(columns.get(name, 1) for name in (*LAYOUT_DEGREES, DATA))


def expect_pes(columns: Mapping[str, int], counts: list[int], where: str) -> None:
    """Raise InputError if the degrees of a layout give none of these numbers of PEs."""
    product = count_pes(columns)
    if product in counts or (DATA not in columns and any(pes % product == 0 for pes in counts)):
        return
    names = [name for name in (*LAYOUT_DEGREES, DATA) if columns.get(name, 1) > 1]
    written = " x ".join(f"{LAYOUT_COLUMNS[name].word}{columns[name]}" for name in names)
    raise InputError(
        f"{written or 'all degrees 1'} is {format_count(product, 'PE')}, not "
        f"{' to '.join(f'{pes:,}' for pes in dict.fromkeys((counts[0], counts[-1])))}",
        where=where,
        advice="change a degree",
    )


def _read_word(word: str, text: str, given: dict[str, int], where: str) -> None:
    """Add the number of a word of the text to `given`, by column."""
    name, _, value = word.partition("=")
    if name == SET:
        names = set() if value == "none" else {*re.split("[+,]", value)}
        if unknown := sorted(names - {*RECOMPUTE}):
            raise InputError.unknown("module", unknown[0], [*RECOMPUTE, "none"], where=where)
        number = sum(RECOMPUTE[module] for module in names)
    elif word == FLAG:
        name, number = "sequence", 1
    else:
        name, number = _read_number(word, text, where)
    if name in given:
        joined = "; modules are joined by +: recompute=core_attn+mlp" if name == SET else ""
        what, advice = f"{LAYOUT_COLUMNS[name].word} is repeated", f"keep one{joined}"
        raise InputError(what, where=where, advice=advice)
    given[name] = number


def _read_number(word: str, text: str, where: str) -> tuple[str, int]:
    """Return the column and number of a word such as tp8 or shard=node."""
    name, _, value = word.partition("=")
    if name in WORDS and value in WORDS[name].words:
        return WORDS[name].name, WORDS[name].words[value]
    match = re.fullmatch(r"([a-z]+)=?([0-9]+)", word)
    if match is None or match[1] not in WORDS:
        if again := respell(text):
            what, advice = f"unknown word {shorten(word)}", f"write {again!r}"
            raise InputError(what, where=where, advice=advice)
        if name in WORDS:
            raise InputError(f"expected a number after {name}, got {shorten(word)}", where=where)
        start = word.rstrip("0123456789=")
        raise InputError.unknown("word", start, (*WORDS, FLAG, SET, SCHEDULE), where=where)
    row = WORDS[match[1]]
    # Too large in any case, and `int` does not read thousands of digits.
    number = int(match[2]) if len(match[2]) < 10 else MOST + 1
    most = min(row.most, MOST)
    if not row.usual <= number <= most:
        raise InputError(
            f"{row.word}: expected {row.usual} to {most:,}, got {match[2][:20]}", where=where
        )
    return row.name, number


def _refuse_idle_words(given: Mapping[str, int], where: str) -> None:
    """Raise InputError for a word that has no effect with the others."""
    for name, (need, none) in NEEDS.items():
        if given.get(name) and given.get(need, none) == none:
            needed = LAYOUT_COLUMNS[need].word
            what = f"{LAYOUT_COLUMNS[name].word} has no effect with {needed}{none}"
            advice = f"write {needed}{none + 1}, or leave it out"
            raise InputError(what, where=where, advice=advice)
