"""Measured collectives and messages: what logs of communication benchmarks hold.

The size m of a collective is NCCL's: the bytes that a PE has in the end (all-gather), in the
beginning (reduce-scatter, all-to-all), or in both (all-reduce). Of q PEs NCCL's bus bandwidth is
m / time x `find_bus_factor`: on a ring, what each link carries. Lines are read as a stream, so that
logs of gigabytes take no memory.
"""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from paradl.grids.reading.errors import InputError, format_count, shorten
from paradl.grids.reading.textfile import open_file, remove_escapes
from paradl.grids.reading.units import format_quantity

# A ring's steps, as a multiple of q - 1; each moves m / q bytes.
STEPS = {"all_reduce": 2, "all_gather": 1, "reduce_scatter": 1, "all_to_all": 1}
# Collectives whose time does not depend on the number of PEs, in nccl-tests' words.
OTHERS = ("send", "broadcast", "reduce", "gather", "scatter", "hypercube")
NAMES = (*STEPS, *OTHERS)
# Names of programs, lower case and without separators, and of what they measure.
WORDS = {
    **{name.replace("_", ""): name for name in NAMES},
    "alltoall": "all_to_all",
    "sendrecv": "send",
}
# Words that hold others come first: "reduce" is part of "all_reduce".
ORDER = sorted(WORDS, key=len, reverse=True)

MOST_PES, MOST_BYTES = 2**24, 2**60


@dataclass(frozen=True)
class Sample:
    """One row: m bytes took so many seconds."""

    size: float
    seconds: float


@dataclass(frozen=True)
class Measurement:
    """The rows of one run of a benchmark.

    collective: of `NAMES`. pes: PEs that took part. nodes: 0 where the log does not state them.
    device: the PE's name where the log has it. tool: the program that wrote it. cut: whether the
    log ends without the last line of its tool. wrong: figures of runs with wrong results.
    """

    where: str
    tool: str
    collective: str
    pes: int
    nodes: int
    samples: tuple[Sample, ...]
    device: str = ""
    cut: bool = False
    wrong: int = 0

    def __post_init__(self) -> None:
        """Check the figures. InputError: they are no machine's."""
        if not (1 <= self.pes <= MOST_PES and 0 <= self.nodes <= self.pes):
            raise InputError(
                f"expected 1 to {MOST_PES:,} PEs, and no more nodes than PEs, got "
                f"{shorten(self.pes)} in {shorten(self.nodes)}",
                where=self.where,
            )
        if any(row.size > MOST_BYTES or not 1e-9 < row.seconds < 1e6 for row in self.samples):
            raise InputError("a row has an implausible size or time", where=self.where)

    @property
    def described(self) -> str:
        """The run in words."""
        nodes = "" if self.nodes < 2 else f" in {self.nodes} nodes"
        rows = format_count(len(self.samples), "row")
        return f"{self.collective} of {self.pes} PEs{nodes}, {rows}"


def find_collective(text: str) -> str | None:
    """Return the collective that a text names; None if it names none."""
    folded = "".join(character for character in text.lower() if character.isalnum())
    word = next((word for word in ORDER if word in folded), None)
    return None if word is None else WORDS[word]


def find_bus_factor(collective: str, pes: int) -> float:
    """Return bus bandwidth over m / time."""
    return STEPS[collective] * (pes - 1) / pes if collective in STEPS else 1.0


def count_ranks(collective: str, factor: float) -> int:
    """Return the PEs of a ring with this bus factor; 0 if the factor does not tell."""
    steps = STEPS.get(collective, 0)
    if not 0 < factor < steps:
        return 0
    return round(1 / (1 - factor / steps))


def expect_plausible(size: float, seconds: float, stated: float, digit: float, where: str) -> None:
    """Raise InputError if a row's size over its time is not the bandwidth [B/s] that it states.

    digit: the last digit of that column [B/s]. Times in another unit than the header's show here.
    """
    bandwidth = size / seconds
    if not math.isclose(bandwidth, stated, rel_tol=0.03, abs_tol=digit):
        raise InputError(
            f"{size:,.0f} B in {seconds:.4g} s are {format_quantity(bandwidth, 'B/s')}, but the "
            f"row states {format_quantity(stated, 'B/s')}",
            where=where,
            advice="are all columns in the units of the header?",
        )


# [B] No benchmark writes longer lines; what does is no log.
MOST_LINE = 2**16
BLOCK = 2**18  # [B] read at once
# Rows that are read of all logs together: nccl-tests writes 31 from 8 B to 8 GiB.
MOST_ROWS = 100_000
# Prefixes of launchers and collectors: `[1,0]<stdout>:` (mpirun --tag-output), `0: ` (srun
# --label), `node7: ` (pdsh), `[rank0]:` (torchrun), `[pod/a/b] ` (kubectl), `worker-0  | `
# (compose), times.
PREFIX = re.compile(
    r"(?:\[[^\]\s]+\](?:<std\w+>)?:?\s?|\s*\d+: |[\w.-]+: |[\w.-]+ *\| "
    r"|\[?\d{4}-\d\d-\d\d[T ][\d:.,]+(?:Z|[+-]\d\d:?\d\d)?\]?\s"
    r"|\w{3} \w{3} [\d ]\d [\d:]+ \d{4}(?:<std\w+>:)?)+"
)
DECIMAL_COMMA = re.compile(r"[+-]?\d+(?:,\d+)+(?:\.\d+)?")


def read_lines(path: Path, words: tuple[bytes, ...] = (b"",)) -> Iterator[tuple[str, str]]:
    """Return the lines of a text file, each with its place, "file:line". InputError: it is no text.

    words: only lines with one of these; by default all. Prefixes of launchers, colours, and what a
    progress bar has written over are left out.
    """
    with open_file(path) as file:
        number = 1
        # In blocks: of 2 GB of NCCL's debug lines few hold a word (10 s of CPU; 60 s by line).
        while block := file.read(BLOCK) + file.readline(MOST_LINE + 1):
            lines = block.split(b"\n") if any(word in block for word in words) else []
            for n, line in enumerate(lines, number):
                if len(line) > MOST_LINE or any(word in line for word in words):
                    yield f"{path}:{n}", _decode(line, f"{path}:{n}")
            number += block.count(b"\n")


def _decode(line: bytes, where: str) -> str:
    if len(line) > MOST_LINE or b"\0" in line:
        what = f"expected lines of text, at most {MOST_LINE:,} bytes each"
        raise InputError(what, where=where)
    # Programs that run beside a benchmark may write anything; figures are ASCII.
    text = line.decode("utf-8", errors="replace").removeprefix("\ufeff").rstrip()
    text = remove_escapes(text).rpartition("\r")[2]
    prefix = PREFIX.match(text)
    return text[prefix.end() :] if prefix else text


def report_cut(columns: int, got: int, where: str) -> InputError:
    """Return the error of a row of a log with less, or more, columns than its header."""
    return InputError(
        f"the row is cut off: expected {columns} columns, got {got}",
        where=where,
        advice="delete it, or run the benchmark again",
    )


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
