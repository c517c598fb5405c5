"""Steps in a Chrome trace of PyTorch's profiler (spans `ProfilerStep#3`), in seconds.

Kernels with `nccl` in their names communicate; while no other kernel runs, that time is exposed. A
trace is a list of events, or an object with the list `traceEvents`.
"""

import gzip
import json
import zlib
from array import array
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from paradl.grids.reading.errors import InputError
from paradl.kernels.names.arrays import Floats
from paradl.sweep.measured.run_logs import MOST_STEPS, Row

MOST_TRACE = 2**29  # [B]
# Times its size that a packed trace may have; PyTorch's have 10 to 40. Small ones may have more.
MOST_RATIO, SMALL = 64, 2**22
MOST_TIME = 1e18  # [us] 30,000 years

Event = dict[str, Any]


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


def _read_span(event: dict[str, Any]) -> tuple[str, float, float, str] | None:
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
        raise InputError(
            f"{'unpacks to ' if is_packed else ''}more than {most:,} bytes",
            where=str(path),
            advice="is it the right file?",
        )
    try:
        # Objects become flags as they are read: events with their arguments take ten times the
        # room of their text.
        found = json.loads(text, object_hook=keep)
    except (ValueError, RecursionError):
        raise InputError("no JSON", where=str(path), advice="is it cut off?") from None
    if not isinstance(found, list) and found is not True:
        raise InputError("expected traceEvents", where=str(path), advice="is it a Chrome trace?")
