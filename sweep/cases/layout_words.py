"""Layouts as people write them, `tp8 pp4 dp32 mb1 zero1`."""

import re
from collections.abc import Iterable, Mapping
from math import prod

import numpy as np

from paradl.grids.entries.strategies import NEEDS
from paradl.grids.reading.errors import InputError, format_count, shorten
from paradl.kernels.layouts.transformer import COLUMNS, Layouts
from paradl.kernels.names.parallelisms import RECOMPUTE, WORDS

DEGREES = ("tp", "cp", "pp", "dp")
# The least number of a word, at which it is left out; tp, pp, dp and mb are always written.
LEAST = {"cp": 1, "ep": 1, "etp": 0, "v": 1, "group": 0, "zero": 0, "shard": 0}
MOST = 2**24  # far more PEs or sequences than any machine or batch has
HIGHEST_ZERO = 3


def write_layout(columns: Mapping[str, int]) -> str:
    """Write a layout as words; degrees that divide nothing are left out."""
    words = [
        f"{word}{columns[name]}" for word, name in WORDS.items() if columns[name] != LEAST.get(word)
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
    columns = {"sequence": 0, "recompute": 0}
    given: dict[str, int] = {}
    for word in text.split():
        _read_word(word, text, given, columns)
    if not given and not any(columns.values()):
        raise InputError("expected words such as tp8 pp4 dp2 mb1, got none", where="layout")
    rest = prod(given.get(word, 1) for word in DEGREES if word != "dp")
    if "dp" not in given and pes % rest == 0:
        given["dp"] = pes // rest
    _expect_product(given, pes)
    columns |= {name: given.get(word, LEAST.get(word, 1)) for word, name in WORDS.items()}
    _refuse_idle_words(columns)
    return Layouts.from_rows(np.array([[columns[name] for name in COLUMNS]]))


def _read_word(word: str, text: str, given: dict[str, int], columns: dict[str, int]) -> None:
    """Add the number of a word of the text to `given`, or its setting to `columns`."""
    name, _, value = word.partition("=")
    if name == "recompute":
        bits = parse_recompute(value, "layout")
        if columns["recompute"] not in (0, bits):
            raise InputError(
                "recompute stands there twice",
                where="layout",
                advice="join modules by commas, such as recompute=core_attn,mlp",
            )
        columns["recompute"] = bits
        return
    if word == "sp":
        columns["sequence"] = 1
        return
    match = re.fullmatch(r"([a-z]+)=?([0-9]+)", word)
    if match is None or match[1] not in WORDS:
        raise _explain_word(word, text)
    # Too large in any case, and `int` does not read thousands of digits.
    number = int(match[2]) if len(match[2]) < 10 else MOST + 1
    least = 0 if match[1] == "zero" else 1
    most = HIGHEST_ZERO if match[1] == "zero" else MOST
    if not least <= number <= most:
        raise InputError(
            f"{match[1]}: expected {least} to {most:,}, got {match[2][:20]}", where="layout"
        )
    if match[1] in given:
        raise InputError(f"{match[1]} stands there twice", where="layout")
    given[match[1]] = number


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
    degrees = {word: given.get(word, 1) for word in DEGREES}
    product = prod(degrees.values())
    if product == pes:
        return
    rest = product // degrees["dp"]
    advice = f"with dp{pes // rest} it is" if pes % rest == 0 else "change a degree"
    written = " x ".join(f"{word}{degree}" for word, degree in degrees.items() if degree > 1)
    raise InputError(
        f"{written or 'all degrees 1'} is {format_count(product, 'PE')}, not the {pes:,} of --pe",
        where="layout",
        advice=advice,
    )


def _refuse_idle_words(columns: Mapping[str, int]) -> None:
    """Raise InputError for a word that has no effect with the others."""
    words = {name: word for word, name in WORDS.items()} | {"sequence": "sp"}
    for name, (need, none) in NEEDS.items():
        if columns[name] and columns[need] == none:
            raise InputError(
                f"{words[name]} has no effect with {words[need]}{none}",
                where="layout",
                advice=f"take {words[need]}{none + 1}, or leave it out",
            )


def list_layouts(layouts: Layouts) -> Iterable[dict[str, int]]:
    """The columns of each layout by name."""
    return (dict(zip(COLUMNS, row, strict=True)) for row in layouts.to_rows().tolist())
