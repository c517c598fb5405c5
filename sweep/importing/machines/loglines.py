"""Lines of logs as a stream, so that gigabytes take no memory; the numbers in their columns."""

import re
from collections.abc import Iterator
from pathlib import Path

from paradl.grids.reading.errors import InputError, shorten
from paradl.grids.reading.textfile import open_file, remove_escapes

# [B] No benchmark writes longer lines; what does is no log.
MOST_LINE = 2**16
BLOCK = 2**18  # [B] read at once
# Rows that are read of all logs together: nccl-tests writes 31 from 8 B to 8 GiB.
MOST_ROWS = 100_000
# Prefixes of launchers and collectors: `[1,0]<stdout>:` (mpirun --tag-output),
# `0: ` (srun --label), `node7: ` (pdsh), `[rank0]:` (torchrun), `worker-0  | ` (compose), times.
PREFIX = re.compile(
    r"(?:\[[\d,]+\]<std\w+>:|\s*\d+: |[\w.-]+: |\[\w*rank ?\d+\]:?\s?|[\w.-]+ *\| "
    r"|\[?\d{4}-\d\d-\d\d[T ][\d:.,]+(?:Z|[+-]\d\d:?\d\d)?\]?\s)+"
)
DECIMAL_COMMA = re.compile(r"[+-]?\d+(?:,\d+)+(?:\.\d+)?")


def read_lines(path: Path, words: tuple[bytes, ...] = ()) -> Iterator[tuple[str, str]]:
    """Return the lines of a text file, each with its place, "file:line". InputError: it is no text.

    words: only lines with one of these; empty: all lines. Prefixes of launchers, colours, and what
    a progress bar has written over are left out.
    """
    with open_file(path) as file:
        number = 1
        # In blocks: of 2 GB of NCCL's debug lines few hold a word (10 s of CPU; 60 s by line).
        while block := file.read(BLOCK) + file.readline(MOST_LINE + 1):
            lines = block.split(b"\n") if not words or _has_any(block, words) else []
            for n, line in enumerate(lines, number):
                if len(line) > MOST_LINE or not words or _has_any(line, words):
                    yield f"{path}:{n}", _decode(line, f"{path}:{n}")
            number += block.count(b"\n")


def _has_any(text: bytes, words: tuple[bytes, ...]) -> bool:
    return any(word in text for word in words)


def _decode(line: bytes, where: str) -> str:
    """Return the text of a line, without its end."""
    if len(line) > MOST_LINE or b"\0" in line:
        raise InputError(
            f"expected lines of text, at most {MOST_LINE:,} bytes each",
            where=where,
            advice="is it the right file?",
        )
    # Programs that run beside a benchmark may write anything; figures are ASCII.
    text = line.decode("utf-8", errors="replace").removeprefix("\ufeff").rstrip()
    text = remove_escapes(text).rpartition("\r")[2]
    prefix = PREFIX.match(text)
    return text[prefix.end() :] if prefix else text


def parse_figure(text: str, where: str) -> float:
    """Return the number in a column of a log."""
    try:
        number = float(text)
    except ValueError:
        number = float("nan")
    if not 0 <= number < float("inf"):
        comma = DECIMAL_COMMA.fullmatch(text) is not None
        raise InputError(
            f"expected a number, got {shorten(text)}",
            where=where,
            advice="a decimal comma? Run the benchmark with LC_ALL=C" if comma else "",
        )
    return number
