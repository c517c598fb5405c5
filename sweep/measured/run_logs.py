"""Steps of a training run as trainers and profilers write them: seconds, memory, communication.

Lines of Megatron-LM (`elapsed time per iteration (ms): 252.1 | ... global batch size: 256`),
nanotron (`elapsed_time_per_iteration_ms: 1.2K`) and torchtitan (`step: 10 ... memory:
20.31GiB(25%)  tps: 3,012`: tokens per second of one PE), and PyTorch profiler's Chrome trace
(spans `ProfilerStep#3`, and kernels with `nccl` in their names).
"""

import gzip
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from grids.reading.errors import InputError
from grids.reading.textfile import parse_json, read_text, remove_escapes

Row = dict[str, str]  # fields by our columns, as text

MOST_LINE = 2**16  # [B] longer lines are read in pieces
MOST_STEPS = 1_000_000
MOST_TRACE = 2**29  # [B] of a trace, which is parsed as a whole
MOST_TIME = 1e18  # [us] of a trace: 30,000 years
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


def read_trace(path: Path) -> Iterator[tuple[int, Row]]:
    """Yield the steps of a Chrome trace: seconds, and those in which only NCCL's kernels run."""
    text = _read_gzip(path) if path.suffix == ".gz" else read_text(path, MOST_TRACE)
    trace = parse_json(text, path)
    events = trace.get("traceEvents") if isinstance(trace, dict) else trace
    if not isinstance(events, list):
        raise InputError("expected traceEvents", where=str(path), advice="is it a Chrome trace?")
    spans = [span for event in events if (span := _read_span(event))]
    kernels = [span for span in spans if span[3] == "kernel"]
    for name, start, end, kind in spans:
        # The GPU's copy of a step's span overlaps with those of the steps around it.
        if not name.startswith("ProfilerStep") or kind.startswith("gpu") or end <= start:
            continue
        # Kernels on the border of two steps count in each for their part.
        inside = [
            (name, max(first, start), min(last, end))
            for name, first, last, _ in kernels
            if last > start and first < end
        ]
        row = {"total_s": repr((end - start) / 1e6)}
        if inside:
            busy = _measure_union([span[1:] for span in inside])
            computing = _measure_union(
                [span[1:] for span in inside if "nccl" not in span[0].lower()]
            )
            exposed = busy - computing
            row |= {"comm_s": repr(exposed / 1e6), "comp_s": repr((end - start - exposed) / 1e6)}
        yield 1, row  # events have no lines of their own


def _read_gzip(path: Path) -> bytes:
    """Return the bytes of a compressed trace; InputError: damaged, or too large unpacked."""
    try:
        with gzip.open(path) as file:
            data = file.read(MOST_TRACE + 1)
    except (OSError, EOFError, zlib.error):
        raise InputError("not gzip, or cut off", where=str(path)) from None
    if len(data) > MOST_TRACE:
        raise InputError(f"more than {MOST_TRACE >> 20} MiB unpacked", where=str(path))
    return data


def _read_span(event: Any) -> tuple[str, float, float, str] | None:
    """Return name, start and end [us], and category of an event with a duration; else None."""
    if not isinstance(event, dict) or event.get("ph") != "X":
        return None
    start, lasts = event.get("ts"), event.get("dur")
    if not isinstance(start, int | float) or not isinstance(lasts, int | float):
        return None
    # Integers of hundreds of digits are no times, and nor are NaN and infinity.
    if not (abs(start) < MOST_TIME and abs(lasts) < MOST_TIME):
        return None
    return str(event.get("name")), start, start + lasts, str(event.get("cat", "")).lower()


def _measure_union(spans: list[tuple[float, float]]) -> float:
    """Return the length of the union of spans."""
    total, reached = 0.0, float("-inf")
    for start, end in sorted(spans):
        total += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    return total
