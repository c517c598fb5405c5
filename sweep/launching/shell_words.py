"""Words and statements of a bash script, with their quotes, and files that words name."""

import re
from collections.abc import Iterator
from pathlib import Path

from paradl.grids.reading.errors import InputError

MOST_TEXT = 2**20  # characters of a script, and of all that variables make of it
IN_PARENTHESES = r"\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)"
PIECES = re.compile(
    rf"""(?P<gap>[ \t\r]+|\\\r?\n|[12&]?>>?(?:&[12]|[ \t]*[^\s;&|()]+)?)
    |(?P<comment>(?<![^\s;(])\#[^\n]*)
    |(?P<end>\n|;;|;|&&|\|\||\||&(?![>\d]))
    |(?P<parenthesis>[()])
    |(?P<piece>'[^']*'|"(?:\\.|[^"\\])*"|\${IN_PARENTHESES}|\$\{{[^}}]*\}}+|\$\w+|\$[@*\#]|`[^`]*`|\\.
        |[^\s;&|()\\'"`$\#]+|.)""",
    re.VERBOSE | re.DOTALL,
)
Sentence = tuple[list[str], str]  # words of a statement, and its end


def list_statements(text: str) -> Iterator[Sentence]:
    """Yield the words of each statement, with their quotes, and its end; an array is one word."""
    if len(text) > MOST_TEXT:
        raise InputError("too long for a launch script", where="launch script")
    words: list[str] = []
    word = ""
    inside = 0  # the parentheses of an array
    for piece in PIECES.finditer(text):
        kind, found = piece.lastgroup, piece[0]
        if inside:
            inside += (found == "(") - (found == ")")
            word += " " if kind in ("gap", "comment") or found == "\n" else found
            continue
        if kind == "piece":
            word += found
        elif found == "(" and re.fullmatch(r"\w+\+?=", word):
            word, inside = word + found, 1
        else:
            if found == "|" and words[:1] == [] and word and not word.startswith("["):
                word += found  # patterns of a case
                continue
            is_pattern = found == ")" and not words and word
            words += [word + found] if is_pattern else [word] if word else []
            word = ""
            if (kind == "end" or is_pattern or found in "()") and words:
                yield words, found
                words = []
    words += [word] if word else []
    if words:
        yield words, ""


def split_words(text: str) -> list[str]:
    """Split a text into words, with their quotes."""
    return [word for words, _ in list_statements(text) for word in words]


def take_body(statements: Iterator[Sentence], depth: int) -> Iterator[Sentence]:
    """Yield the statements up to the brace that closes a function."""
    for words, end in statements:
        depth += (words[0] == "{") - (words[0] == "}")
        if depth <= 0:
            return
        yield words, end


def find_file(base: Path, word: str) -> Path | None:
    """Find a file that a script names: also beside it, or below it if a variable says where."""
    plain = re.sub(r".*[})`]/|^\$\w+/", "", word)
    near = (base / word, base / plain, base / plain.rpartition("/")[2])
    is_name = len(word) < 200 and "\0" not in word
    return next((path for path in near if is_name and path.is_file()), None)
