"""Steps in a Chrome trace of PyTorch's profiler (spans `ProfilerStep#3`), in seconds.

Kernels with `nccl` in their names communicate; while no other kernel runs, that time is exposed. A
trace is read as a stream: its events are objects of a list, or of the list `traceEvents`.
"""

import codecs
import gzip
import json
import re
import zlib
from array import array
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from paradl.grids.reading.errors import InputError
from paradl.kernels.names.arrays import Floats
from paradl.sweep.measured.run_logs import MOST_STEPS, Row

BLOCK = 2**20  # [B] read at once
MOST_EVENT = 2**23  # [B]
MOST_TRACE = 2**29  # [B]
# Times its size that a packed trace may have; PyTorch's have 10 to 40. Small ones may have more.
MOST_RATIO, SMALL = 64, 2**22
MOST_TIME = 1e18  # [us] 30,000 years
EVENTS = re.compile(rb'"traceEvents"\s*:\s*\[')
OVERLAP = 64  # [B] in which that may stand, between two blocks
ESCAPED = re.compile(rb"\\.", re.DOTALL)

Read = Callable[[int], bytes]


def read_trace(path: Path) -> Iterator[tuple[int, Row]]:
    """Yield the steps of a trace: seconds, and those in which only NCCL's kernels run."""
    steps: list[tuple[float, float]] = []
    kernels = array("d")
    for event in _stream_events(path):
        if not (span := _read_span(event)):
            continue
        name, start, end, kind = span
        if kind == "kernel":
            kernels.extend((start, end, "nccl" in name.lower()))
        # The GPU's copy of a step's span overlaps with those of the steps around it.
        elif name.startswith("ProfilerStep") and not kind.startswith("gpu"):
            steps.append((start, end))
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


def _read_span(event: dict[str, Any]) -> tuple[str, float, float, str] | None:
    """Return name, start and end [us], and category of an event with a duration; else None."""
    start, lasts = event.get("ts"), event.get("dur")
    if not isinstance(start, int | float) or not isinstance(lasts, int | float):
        return None
    # Integers of hundreds of digits are no times, and nor are NaN and infinity.
    if not (abs(start) < MOST_TIME and 0 < lasts < MOST_TIME):
        return None
    return str(event.get("name")), start, start + lasts, str(event.get("cat", "")).lower()


def _stream_events(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the events with a duration of a trace, packed or not.

    InputError: it is none, damaged, or too large.
    """
    packed = path.suffix == ".gz"
    most = max(SMALL, MOST_RATIO * path.stat().st_size) if packed else MOST_TRACE
    left = min(most, MOST_TRACE)

    def read(size: int) -> bytes:
        nonlocal left
        block = file.read(size)
        left -= len(block)
        if left < 0:
            what = f"{'unpacks to ' if packed else ''}more than {min(most, MOST_TRACE):,} bytes"
            raise InputError(what, where=str(path), advice="is it the right file?")
        return block

    try:
        with (gzip.open if packed else open)(path, "rb") as file:
            text: bytes | None = _find_list(read, path)
            while text is not None:
                text, events = _take_events(text, read, path)
                yield from (e for e in events if isinstance(e, dict) and e.get("ph") == "X")
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise InputError("not gzip, or cut off", where=str(path)) from None
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", where=str(path)) from None


def _find_list(read: Read, path: Path) -> bytes:
    """Read to the list of events, and return what is read of it."""
    text = read(BLOCK).removeprefix(codecs.BOM_UTF8).lstrip()
    if text.startswith(b"["):
        return text[1:]
    while not (match := EVENTS.search(text)):
        if not (more := read(BLOCK)):
            raise InputError(
                "expected traceEvents", where=str(path), advice="is it a Chrome trace?"
            )
        text = text[-OVERLAP:] + more
    return text[match.end() :]


def _take_events(text: bytes, read: Read, path: Path) -> tuple[bytes | None, list[Any]]:
    """Return the whole events in a part of the list, and what follows; None at its end."""
    # Brackets in texts are none; an escaped quote does not end a text.
    codes = np.frombuffer(ESCAPED.sub(b"__", text), np.uint8)
    outside = np.bitwise_xor.accumulate(codes == ord('"')) == 0 if len(codes) else codes > 0
    opened = ((codes == ord("[")) | (codes == ord("{"))) & outside
    closed = ((codes == ord("]")) | (codes == ord("}"))) & outside
    depth = np.cumsum(opened.view(np.int8) - closed.view(np.int8), dtype=np.int32)
    ends = np.flatnonzero(depth < 0)[:1]
    commas = np.flatnonzero((depth == 0) & outside & (codes == ord(",")))[-1:]
    problem = InputError("no JSON", where=str(path), advice="is it cut off?")
    try:
        if len(ends):
            return None, json.loads(b"[" + text[: ends[0]] + b"]")
        if len(commas):
            return text[commas[0] + 1 :], json.loads(b"[" + text[: commas[0]] + b"]")
    except (ValueError, RecursionError):
        raise problem from None
    # Twice as much each time, since a long event is searched again.
    more = read(max(BLOCK, len(text))) if len(text) < MOST_EVENT else b""
    if not more:
        raise problem
    return text + more, []
