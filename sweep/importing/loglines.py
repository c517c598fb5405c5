"""Lines of logs, streamed: a log of gigabytes takes no memory; and the numbers in them."""

import re
import stat
from collections.abc import Iterator
from pathlib import Path

from grids.reading.errors import InputError, shorten

# [B] No benchmark writes longer lines; what does is no log.
MOST_LINE = 2**16
# Rows that are read of all logs together: nccl-tests writes 31 from 8 B to 8 GiB.
MOST_ROWS = 100_000
DECIMAL_COMMA = re.compile(r"[+-]?\d+(?:,\d+)+(?:\.\d+)?")


def read_lines(path: Path, marks: bytes = b"") -> Iterator[tuple[str, str]]:
    """The lines of a text file, each with its place, "file:line". InputError: it is no text.

    marks: only lines that begin with one of these, behind blanks; empty: all lines.
    """
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise InputError("expected a file", where=str(path), advice="name a log")
        with path.open("rb") as file:
            number = 0
            while line := file.readline(MOST_LINE + 1):
                number += 1
                # 200 MB of NCCL's debug lines: 5.3 s of CPU without this, 0.7 s with it.
                if marks and line.lstrip()[:1] not in marks and len(line) <= MOST_LINE:
                    continue
                yield f"{path}:{number}", _decode(line, f"{path}:{number}")
    except FileNotFoundError:
        raise InputError("no such file", where=str(path), advice="check the path") from None
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", where=str(path)) from None


def _decode(line: bytes, where: str) -> str:
    """The text of a line, without its end."""
    if len(line) > MOST_LINE or b"\0" in line:
        raise InputError(
            f"expected lines of text, at most {MOST_LINE:,} bytes each",
            where=where,
            advice="is it the right file?",
        )
    # Programs that run beside a benchmark may write anything; figures are ASCII.
    return line.decode("utf-8", errors="replace").removeprefix("\ufeff").rstrip()


def parse_figure(text: str, where: str) -> float:
    """The number in a column of a log."""
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
