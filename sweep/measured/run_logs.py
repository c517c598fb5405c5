"""Steps of a training run as trainers write them: seconds, memory, samples.

Lines of Megatron-LM (`elapsed time per iteration (ms): 252.1 | ... global batch size: 256`),
nanotron (`elapsed_time_per_iteration_ms: 1.2K`) and torchtitan (`step: 10 ... memory:
20.31GiB(25%)  tps: 3,012`: tokens per second of one PE).
"""

import re
from collections.abc import Iterator
from pathlib import Path

from paradl.grids.reading.errors import InputError
from paradl.grids.reading.textfile import remove_escapes

Row = dict[str, str]  # fields by our columns, as text

MOST_LINE = 2**16  # [B] longer lines are read in pieces
MOST_STEPS = 1_000_000
NUMBER = r"(\d+(?:\.\d*)?(?:[eE][+-]?\d+)?)"
MEGATRON = re.compile(rf"elapsed time per iteration \(ms\): *{NUMBER}")
NANOTRON = re.compile(rf"elapsed_time_per_iteration_ms: *{NUMBER}([KM]?)")
TORCHTITAN = re.compile(r"\bstep: *\d+ .*?\btps: *(\d[\d,]*)")
SUFFIXES = {"": 1.0, "K": 1e3, "M": 1e6}
# nanotron rounds 1,024 to 1.02K: such a batch is not exact, and has to be given.
BATCH = re.compile(r"global[ _]batch[ _]size: *(\d+)(?![\d.]*[\dKMB])")
# torchtitan's and nanotron's peaks have units; Megatron's MB are 2^20 bytes.
MEMORY = re.compile(
    rf"(?:\bmemory: *{NUMBER} *GiB|\bpeak reserved: *{NUMBER} *MiB|\bmax reserved: *{NUMBER})", re.I
)
MEMORY_UNITS = (2**30, 2**20, 2**20)
# Bytes that lines with a step or with memory have.
WANTED = (b"elapsed", b"tps:", b"reserved")
# The rank that wrote a line: torchrun's `[rank3]:` or `[default3]:`, srun's `3: `.
RANK = re.compile(r"\[(?:rank ?|default)\d+\]|^ *\d+: ")


def read_log(path: Path, tokens: float | None) -> Iterator[tuple[int, Row]]:
    """Yield the steps that a log reports, each with its line number.

    tokens: tokens of one PE per step, which turn torchtitan's rate into seconds.
    """
    steps, number = 0, 0
    first_rank = ""
    memory: str | None = None
    with path.open("rb") as file:
        while raw := file.readline(MOST_LINE):
            # Only the last piece of a long line has its end.
            number += raw.endswith(b"\n")
            # Before decoding: of a log of gigabytes, few lines report a step.
            if not any(word in raw for word in WANTED):
                continue
            line = remove_escapes(raw.decode("utf-8", "replace"))
            # Megatron states its peak on a line of its own, which holds for the steps behind it.
            memory = _read_memory(line) or memory
            row = _read_step(line, f"{path}:{number}", tokens)
            rank = match[0] if (match := RANK.search(line)) else ""
            # Where all ranks report, each step counts once.
            if not row or rank != (first_rank := first_rank or rank):
                continue
            steps += 1
            if steps > MOST_STEPS:
                raise InputError(f"more than {MOST_STEPS:,} steps", where=str(path))
            yield number, row | ({"memory": memory} if memory else {})


def _read_memory(line: str) -> str | None:
    """Return the peak memory that a line states [B], as text."""
    if not (match := MEMORY.search(line)):
        return None
    return next(
        repr(float(text) * unit)
        for text, unit in zip(match.groups(), MEMORY_UNITS, strict=True)
        if text
    )


def _read_step(line: str, where: str, tokens: float | None) -> Row:
    """Return the columns of a line's step; empty if it reports none."""
    if match := MEGATRON.search(line):
        row = {"total_s": repr(float(match[1]) / 1e3)}
    elif match := NANOTRON.search(line):
        row = {"total_s": repr(float(match[1]) * SUFFIXES[match[2]] / 1e3)}
    elif match := TORCHTITAN.search(line):
        row = {"total_s": repr(_find_seconds(match[1], where, tokens))}
    else:
        return {}
    return row | ({"global_batch": match[1]} if (match := BATCH.search(line)) else {})


def _find_seconds(rate: str, where: str, tokens: float | None) -> float:
    """Return seconds per step from tokens per second of one PE."""
    if tokens is None:
        raise InputError(
            "a rate of tokens needs 'tokens_per_pe' to become seconds",
            where=where,
            advice="write the tokens of one PE per step into the mapping file",
        )
    per_second = float(rate.replace(",", ""))
    if per_second <= 0:
        raise InputError("expected tokens per second above 0", where=where)
    return tokens / per_second
