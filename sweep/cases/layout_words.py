"""Layouts as people write them, `tp8 pp4 dp32 mb1 zero1`."""

import re
from collections.abc import Iterable, Mapping
from math import prod

from paradl.grids.reading.errors import InputError, format_count, shorten
from paradl.kernels.names.parallelisms import (
    DATA,
    LAYOUT_COLUMNS,
    LAYOUT_DEGREES,
    NEEDS,
    RECOMPUTE,
    WORDS,
)
from paradl.kernels.work.layouts import COLUMNS, Layouts

MOST = 2**24  # far more PEs or sequences than any machine or batch has


def write_layout(columns: Mapping[str, int]) -> str:
    """Write a layout as words; degrees that divide nothing are left out."""
    words = [
        f"{word}{columns[row.name]}"
        for word, row in WORDS.items()
        if row.always or columns[row.name] != row.usual
    ]
    # Without tensor parallelism there is nothing for it to divide.
    words += ["sp"] if columns["sequence"] and columns["tensor"] > 1 else []
    again = name_recompute(columns["recompute"])
    return " ".join([*words, f"recompute={again}"] if again != "none" else words)


def name_recompute(bits: int) -> str:
    """Names of the recomputed modules, joined by commas, or none."""
    return ",".join(name for name, bit in RECOMPUTE.items() if bits & bit) or "none"


def parse_recompute(text: str, where: str = "recompute") -> int:
    """The bits of modules that commas join; none: 0."""
    names = [] if text == "none" else text.split(",")
    for name in names:
        if name not in RECOMPUTE:
            raise InputError.unknown("module", name, [*RECOMPUTE, "none"], where=where)
    # A set, since a name that stands twice would carry into another bit.
    return sum(RECOMPUTE[name] for name in {*names})


def parse_layout(text: str, pes: int) -> Layouts:
    """Parse one layout on `pes` PEs; `dp` defaults to the PEs that remain.

    InputError: an unknown word, a word twice, one without effect, or degrees whose product is not
    `pes`.
    """
    given: dict[str, int] = {}
    for word in text.split():
        _read_word(word, text, given)
    if not given:
        raise InputError("expected words such as tp8 pp4 dp2 mb1, got none", where="layout")
    rest = prod(given.get(name, 1) for name in LAYOUT_DEGREES)
    if DATA not in given and pes % rest == 0:
        given[DATA] = pes // rest
    _expect_product(given, pes)
    _refuse_idle_words(given)
    return Layouts.from_names([given])


def _read_word(word: str, text: str, given: dict[str, int]) -> None:
    """Add the number of a word of the text to `given`, by column."""
    name, _, value = word.partition("=")
    if name == "recompute":
        bits = parse_recompute(value, "layout")
        if given.setdefault(name, bits) != bits:
            raise InputError(
                "recompute stands there twice",
                where="layout",
                advice="join modules by commas, such as recompute=core_attn,mlp",
            )
        return
    if word == "sp":
        given["sequence"] = 1
        return
    match = re.fullmatch(r"([a-z]+)=?([0-9]+)", word)
    if match is None or match[1] not in WORDS:
        raise _explain_word(word, text)
    row = WORDS[match[1]]
    # Too large in any case, and `int` does not read thousands of digits.
    number = int(match[2]) if len(match[2]) < 10 else MOST + 1
    most = min(row.most, MOST)
    if not row.usual <= number <= most:
        raise InputError(
            f"{row.word}: expected {row.usual} to {most:,}, got {match[2][:20]}", where="layout"
        )
    if row.name in given:
        raise InputError(f"{row.word} stands there twice", where="layout")
    given[row.name] = number


def _explain_word(word: str, text: str) -> InputError:
    """Return the error for a word of a layout that is none."""
    start = re.match("[A-Za-z]*", word)
    assert start
    known = (*WORDS, "sp", "recompute")
    # Words joined by commas, dashes or crosses, in capitals, or apart from their numbers.
    again = re.sub(r"[\s,;_x-]*([a-z]+)[\s:]*(\d+)", r" \1\2", text.lower()).split()
    if all(re.fullmatch(rf"({'|'.join(WORDS)})\d+|sp|recompute=\S+", part) for part in again):
        return InputError(
            f"not a word of a layout: {shorten(word)}",
            where="layout",
            advice=f"write {' '.join(again)!r}",
        )
    if start[0] in WORDS:
        return InputError(
            f"expected a number behind {start[0]}, got {shorten(word)}", where="layout"
        )
    return InputError.unknown("word", start[0] or word, known, where="layout")


def _expect_product(given: Mapping[str, int], pes: int) -> None:
    """Raise InputError unless the product of the degrees is the number of PEs."""
    degrees = {name: given.get(name, 1) for name in (*LAYOUT_DEGREES, DATA)}
    product = prod(degrees.values())
    if product == pes:
        return
    rest = product // degrees[DATA]
    advice = f"with dp{pes // rest} it is" if pes % rest == 0 else "change a degree"
    written = " x ".join(
        f"{LAYOUT_COLUMNS[name].word}{degree}" for name, degree in degrees.items() if degree > 1
    )
    raise InputError(
        f"{written or 'all degrees 1'} is {format_count(product, 'PE')}, not the {pes:,} of --pe",
        where="layout",
        advice=advice,
    )


def _refuse_idle_words(given: Mapping[str, int]) -> None:
    """Raise InputError for a word that has no effect with the others."""
    for name, (need, none) in NEEDS.items():
        if given.get(name) and given.get(need, none) == none:
            needed = LAYOUT_COLUMNS[need].word
            raise InputError(
                f"{LAYOUT_COLUMNS[name].word} has no effect with {needed}{none}",
                where="layout",
                advice=f"take {needed}{none + 1}, or leave it out",
            )


def list_layouts(layouts: Layouts) -> Iterable[dict[str, int]]:
    """The columns of each layout by name."""
    return (dict(zip(COLUMNS, row, strict=True)) for row in layouts.to_rows().tolist())
