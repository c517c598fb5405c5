"""Steps of a training run, as trainers and profilers log them: seconds, memory, communication.

Lines of Megatron-LM (`elapsed time per iteration (ms): 252.1 | ... global batch size: 256`), of
nanotron (`elapsed_time_per_iteration_ms: 252`), of torchtitan (`step: 10 ... memory: 20.31GiB(25%)
tps: 3,012`, tokens a second of a PE), and PyTorch profiler's Chrome trace (`ProfilerStep#3`, and
kernels whose names have `nccl`).
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from grids.reading.errors import InputError
from grids.reading.textfile import read_text

Row = dict[str, str]  # by our columns

MOST_LINE = 2**16
MOST_STEPS = 1_000_000
MOST_TRACE = 2**29  # [B] of a trace, which is read at once
MEGATRON = re.compile(r"elapsed time per iteration \(ms\): *([\d.]+)")
NANOTRON = re.compile(r"elapsed_time_per_iteration_ms: *([\d.]+)([KM]?)")
TORCHTITAN = re.compile(r"\bstep: *\d+ .*?\btps: *([\d,]+)")
BATCH = re.compile(r"global[ _]batch[ _]size: *(\d+)\b")
MEMORY = re.compile(r"\bmemory: *([\d.]+) *GiB")
SIZES = {"": 1.0, "K": 1e3, "M": 1e6}
COLOURS = re.compile(r"\x1b\[[\d;]*m")


def read_log(path: Path, tokens: float | None) -> Iterator[tuple[int, Row]]:
    """The lines of a log that report a step, with their numbers.

    tokens: those of a PE in a step, of which torchtitan's rate makes seconds.
    """
    steps = 0
    with path.open("rb") as file:
        number = 0
        while raw := file.readline(MOST_LINE):
            number += raw.endswith(b"\n")
            # Bytes first: of a log of gigabytes few lines report a step.
            if b"elapsed" not in raw and b"tps:" not in raw:
                continue
            row = _read_step(raw.decode("utf-8", "replace"), f"{path}:{number}", tokens)
            if row:
                steps += 1
                if steps > MOST_STEPS:
                    raise InputError(f"more than {MOST_STEPS:,} steps", where=str(path))
                yield number, row


def _read_step(coloured: str, where: str, tokens: float | None) -> Row:
    """The columns that a line states; none where it reports no step."""
    line, row = COLOURS.sub("", coloured), Row()
    if match := MEGATRON.search(line):
        row["total_s"] = repr(float(match[1]) / 1e3)
    elif match := NANOTRON.search(line):
        row["total_s"] = repr(float(match[1]) * SIZES[match[2]] / 1e3)
    elif match := TORCHTITAN.search(line):
        if tokens is None:
            raise InputError(
                "a rate of tokens takes 'tokens_per_pe' for seconds",
                where=where,
                advice="write the tokens of a PE in a step into the mapping file",
            )
        rate = float(match[1].replace(",", ""))
        if rate <= 0:
            raise InputError("expected tokens per second above 0", where=where)
        row["total_s"] = repr(tokens / rate)
    else:
        return row
    if match := BATCH.search(line):
        row["global_batch"] = match[1]
    if match := MEMORY.search(line):
        row["memory"] = f"{match[1]} GiB"
    return row


def read_trace(path: Path) -> Iterator[tuple[int, Row]]:
    """The steps of a Chrome trace: seconds, and those in which only NCCL's kernels run."""
    try:
        trace = json.loads(read_text(path, MOST_TRACE))
    except (ValueError, RecursionError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"no JSON: {str(error)[:100]}", where=str(path)) from None
    events = trace.get("traceEvents") if isinstance(trace, dict) else trace
    if not isinstance(events, list):
        raise InputError("expected traceEvents", where=str(path), advice="is it a Chrome trace?")
    spans = [span for event in events if (span := _read_span(event))]
    kernels = [span for span in spans if span[3] == "kernel"]
    for name, start, end, kind in spans:
        if not name.startswith("ProfilerStep") or kind.startswith("gpu"):
            continue
        inside = [k for k in kernels if k[2] > start and k[1] < end]
        both = _measure([(max(a, start), min(b, end)) for _, a, b, _ in inside])
        own = _measure(
            [(max(a, start), min(b, end)) for n, a, b, _ in inside if "nccl" not in n.lower()]
        )
        row = {"total_s": repr((end - start) / 1e6)}
        if inside:
            row |= {
                "comm_s": repr((both - own) / 1e6),
                "comp_s": repr((end - start - both + own) / 1e6),
            }
        yield 1, row


def _read_span(event: Any) -> tuple[str, float, float, str] | None:
    """Name, start and end [us], and category of an event that lasts; None: it is another."""
    if not isinstance(event, dict) or event.get("ph") != "X":
        return None
    start, lasts = event.get("ts"), event.get("dur")
    if not isinstance(start, int | float) or not isinstance(lasts, int | float):
        return None
    return str(event.get("name")), start, start + lasts, str(event.get("cat", "")).lower()


def _measure(spans: list[tuple[float, float]]) -> float:
    """Length of the union of spans."""
    total, reached = 0.0, float("-inf")
    for start, end in sorted(spans):
        total += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    return total
