"""Steps of a training run as trainers write them: seconds, memory, samples.

Lines of Megatron-LM (`elapsed time per iteration (ms): 252.1 | ... global batch size: 256`),
nanotron (`elapsed_time_per_iteration_ms: 1.2K`) and torchtitan (`step: 10 ... memory:
20.31GiB(25%)  tps: 3,012`: tokens per second of one PE).

Chrome traces of PyTorch's profiler (spans `ProfilerStep#3`): a list of events, or an object with
the list `traceEvents`. Kernels with `nccl` in their names communicate; while no other kernel runs,
that time is exposed.
"""

import gzip
import json
import re
import zlib
from array import array
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from paradl.grids.reading.errors import InputError
from paradl.grids.reading.textfile import remove_escapes
from paradl.kernels.names.arrays import Floats

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
        what = f"a rate of tokens needs 'tokens_per_pe' of {'mapping.yaml'!r} to become seconds"
        raise InputError(what, where=where)
    per_second = float(rate.replace(",", ""))
    if per_second <= 0:
        raise InputError("expected tokens per second above 0", where=where)
    return tokens / per_second


MOST_TRACE = 2**29  # [B]
# Times its size that a packed trace may have; PyTorch's have 10 to 40. Small ones may have more.
MOST_RATIO, SMALL = 64, 2**22
MOST_TIME = 1e18  # [us] 30,000 years

Event = dict[str, object]


def read_trace(path: Path) -> Iterator[tuple[int, Row]]:
    """Yield the steps of a trace: seconds, and those in which only NCCL's kernels run.

    InputError: it is none, damaged, or too large.
    """
    steps: list[tuple[float, float]] = []
    kernels = array("d")

    def keep_times(event: Event) -> bool:
        """Return whether an object holds the events; of an event, its times alone are kept."""
        if event.get("ph") == "X" and (span := _read_span(event)):
            name, start, end, kind = span
            if kind == "kernel":
                kernels.extend((start, end, "nccl" in name.lower()))
            # The GPU's copy of a step's span overlaps with those of the steps around it.
            elif name.startswith("ProfilerStep") and not kind.startswith("gpu"):
                steps.append((start, end))
        return isinstance(event.get("traceEvents"), list)

    _parse_trace(path, keep_times)
    if len(steps) > MOST_STEPS:
        raise InputError(f"more than {MOST_STEPS:,} steps", where=str(path))
    spans = np.array(kernels).reshape(-1, 3)
    borders = np.array(steps).reshape(-1, 2)
    # Kernels on the border of two steps count in each for their part.
    busy = _measure_within(borders, spans[:, :2])
    computing = _measure_within(borders, spans[spans[:, 2] == 0, :2])
    for (start, end), used, hidden in zip(steps, busy.tolist(), computing.tolist(), strict=True):
        row = {"total_s": repr((end - start) / 1e6)}
        if used:
            exposed = max(0.0, used - hidden)  # sums of many spans round
            row |= {"comm_s": repr(exposed / 1e6), "comp_s": repr((end - start - exposed) / 1e6)}
        yield 1, row  # events have no lines of their own


def _measure_within(steps: Floats, spans: Floats) -> Floats:
    """Return the length of the union of spans within each step [step]."""
    if not len(spans):
        return np.zeros(len(steps))
    spans = spans[spans[:, 0].argsort()]
    reached = np.maximum.accumulate(spans[:, 1])
    # Spans that overlap are one; the union is their ends, and its length so far at each of them.
    first = np.flatnonzero(np.append(True, spans[1:, 0] > reached[:-1]))
    ends = np.stack([spans[first, 0], reached[np.append(first[1:], len(spans)) - 1]], axis=1)
    lengths = np.diff(ends, axis=1).ravel()
    after = lengths.cumsum()
    so_far = np.stack([after - lengths, after], axis=1)
    within: Floats = np.diff(np.interp(steps, ends.ravel(), so_far.ravel()), axis=1).ravel()
    return within


def _read_span(event: Event) -> tuple[str, float, float, str] | None:
    """Return name, start and end [us], and category of an event with a duration; else None."""
    start, lasts = event.get("ts"), event.get("dur")
    if not isinstance(start, int | float) or not isinstance(lasts, int | float):
        return None
    # Integers of hundreds of digits are no times, and nor are NaN and infinity.
    if not (abs(start) < MOST_TIME and 0 < lasts < MOST_TIME):
        return None
    return str(event.get("name")), start, start + lasts, str(event.get("cat", "")).lower()


def _parse_trace(path: Path, keep: Callable[[Event], bool]) -> None:
    """Parse a trace, packed or not; each of its objects is what `keep` returns of it."""
    is_packed, size = path.suffix == ".gz", path.stat().st_size
    most = min(MOST_TRACE, max(SMALL, MOST_RATIO * size) if is_packed else size)
    try:
        with (gzip.open if is_packed else open)(path, "rb") as file:
            text = file.read(most + 1)
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise InputError("not gzip, or cut off", where=str(path)) from None
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", where=str(path)) from None
    if len(text) > most:
        what = f"{'unpacks to ' if is_packed else ''}more than {most:,} bytes"
        raise InputError(what, where=str(path))
    try:
        # Objects become flags as they are read: events with their arguments take ten times the
        # room of their text.
        found = json.loads(text, object_hook=keep)
    except (ValueError, RecursionError):
        raise InputError("no JSON", where=str(path), advice="is it cut off?") from None
    if not isinstance(found, list) and found is not True:
        raise InputError("expected traceEvents", where=str(path), advice="is it a Chrome trace?")
