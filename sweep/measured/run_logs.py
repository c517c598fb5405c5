"""Steps of a training run as trainers' logs have them: seconds or a rate, memory, global batch.

Chrome traces of PyTorch's profiler (spans `ProfilerStep#3`): a list of events, or an object with
the list `traceEvents`. Kernels with `nccl` in their names communicate; while no other kernel runs,
that time is exposed. Collectives are events `record_param_comms` of hosts, or else kernels with the
same arguments (PyTorch 2.3).
"""

import gzip
import json
import math
import re
import zlib
from array import array
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from paradl.grids.reading.errors import InputError
from paradl.grids.reading.textfile import remove_escapes
from paradl.kernels.names.arrays import Floats
from paradl.kernels.names.layout_terms import VOLUMES
from paradl.sweep.measured import log_formats
from paradl.sweep.measured.log_formats import FACTORS, FORMATS, INVERSE, MS, LogFormat
from paradl.sweep.measured.rates import MEAN, SAMPLES, STATED_BATCH, STATED_PES, STEP_TOKENS, Row

Step = tuple[int, Row]  # its line in the file, and its columns

MOST_LINE = 2**16  # [B] longer lines are read in pieces
MOST_STEPS = 1_000_000
# The rank that wrote a line: torchrun's `[rank3]:` or `[default3]:`, srun's `3: `.
RANK = re.compile(r"\[(?:rank ?|default)\d+\]|^ *\d+: ")
CLOCK = (1.0, 60.0, 3600.0, 86400.0)  # [s] of `1 day, 2:03:04`, from behind


def read_log(path: Path) -> list[Step]:
    """Return the steps that a log reports, of the first of FORMATS that it has any of."""
    readers, memory = [*map(_StepReader, FORMATS)], Row()
    stated: dict[str, set[str]] = {STATED_BATCH: set(), STATED_PES: set()}
    for number, raw in _read_lines(path):
        # Before decoding: of a log of gigabytes, few lines report a step.
        if not log_formats.WANTED.search(raw):
            continue
        line = remove_escapes(raw.decode("utf-8", "replace"))
        # Megatron states its peak on a line of its own, which holds for the steps behind it.
        for pattern, unit in log_formats.MEMORY.items():
            if match := re.search(pattern, line, re.I):
                memory = {"memory": repr(_read_number(match["value"]) * unit)}
        match = re.search(log_formats.BATCH, line)
        batch = {"global_batch": f"{_read_number(match[1]):.0f}"} if match else {}
        # Several formats may read a line.
        if not sum(reader.read(line, (number, memory | batch), path) for reader in readers):
            stated[STATED_BATCH].update(batch.values())
        stated[STATED_PES].update(re.findall(log_formats.PES, line))
    steps = next((reader.steps for reader in readers if reader.steps), [])
    # Configurations may have a batch for validation, too. Some state memory at the end.
    sure = {name: found.pop() for name, found in stated.items() if len(found) == 1}
    if steps:
        steps[-1][1].update(memory)
    return [(number, sure | row) for number, row in steps]


def _read_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield each line of a file with its number; each drawing of a bar is a line of its own."""
    number, rest = 1, b""
    with path.open("rb") as file:
        while raw := file.readline(MOST_LINE):
            # Only the last piece of a long line has its end.
            is_end = raw.endswith(b"\n")
            *lines, rest = (rest + raw).split(b"\r")
            if is_end or len(rest) > MOST_LINE:
                lines, rest = [*lines, rest], b""
            for line in lines:
                yield number, line
            number += is_end
    yield number, rest


def _read_number(text: str) -> float:
    return float(text.replace(",", ""))


class _StepReader:
    """Steps of one format, as the lines of a log are read in turn."""

    def __init__(self, form: LogFormat) -> None:
        self.form, self.steps = form, list[Step]()
        self.first: tuple[str, str] | None = None  # rank and total
        self.since: tuple[float, float] | None = None  # count and clock
        self.step = ""

    def read(self, line: str, step: Step, path: Path) -> bool:
        """Add the step of a line to others of its columns; return whether the format has it."""
        if self.form.word not in line or not (match := re.search(self.form.pattern, line)):
            return False
        groups = {name: text or "" for name, text in match.groupdict().items()}
        found = RANK.search(line)
        writer = found[0] if found else "", groups.get("total", "")
        self.first = self.first or writer
        # Where all ranks report, each step counts once.
        is_new = writer == self.first and (groups.get("step") or None) != self.step
        if not is_new or (value := self._find_value(groups)) is None:
            return True
        self.step = groups.get("step", "")
        columns = {name: groups[name] for name in (SAMPLES, STEP_TOKENS) if groups.get(name)}
        columns["total_s" if self.form.column == MS else self.form.column] = repr(value)
        if self.form.is_mean:  # with what one before may have said besides
            columns = (self.steps.pop()[1] if self.steps else {MEAN: MEAN}) | columns
        if len(self.steps) >= MOST_STEPS:
            raise InputError(f"more than {MOST_STEPS:,} steps", where=str(path))
        self.steps.append((step[0], step[1] | columns))
        return True

    def _find_value(self, groups: Row) -> float | None:
        """Return the value of a line, or its growth per second; None if it has none."""
        if not groups["value"]:
            return None
        value, suffix = _read_number(groups["value"]), groups.get("suffix", "")
        if suffix == INVERSE:
            return value and 1 / value
        if "clock" not in groups:
            return value * FACTORS[suffix] / (1e3 if self.form.column == MS else 1)
        numbers = re.findall(r"\d+", groups["clock"])[::-1]
        units = CLOCK if len(numbers) > 1 else (1e-3,)
        now = sum(int(number) * unit for number, unit in zip(numbers, units, strict=False))
        first, since = self.since or (value, now)
        # A run that was started again counts from another start.
        if groups.get("start") or value <= first or now <= since:
            self.since = value, now
            return None
        return (value - first) / (now - since)


MOST_TRACE = 2**29  # [B]
# Times its size that a packed trace may have; PyTorch's have 10 to 40. Small ones may have more.
MOST_RATIO, SMALL = 64, 2**22
MOST_TIME = 1e18  # [us] 30,000 years
# Bytes of an item, by the first letters of its type.
ITEMS = {"float8": 1, "float": 4, "half": 2, "bfloat16": 2, "double": 8, "long": 8, "int": 4}
ITEMS |= {"byte": 1, "char": 1, "bool": 1, "short": 2}
BYTES = {name: f"{name}_bytes" for name in VOLUMES}  # columns

Event = dict[str, object]
Message = tuple[int, float]  # number among VOLUMES, and bytes: NaN if they are not known


def read_trace(path: Path) -> Iterator[tuple[int, Row]]:
    """Yield the steps of a trace: seconds, those in which only NCCL's kernels run, bytes sent.

    Of other JSON, none. InputError: it is damaged, or too large.
    """
    steps: list[tuple[float, float]] = []
    kernels, of_hosts, of_kernels = array("d"), array("d"), array("d")

    def keep_times(event: Event) -> Message | None:
        """Return the collective that arguments have; of events, keep times and collectives."""
        if "Collective name" in event:
            return _read_message(event)
        if event.get("ph") == "X" and (span := _read_span(event)):
            name, start, end, kind = span
            if isinstance(message := event.get("args"), tuple):
                if name == "record_param_comms":
                    of_hosts.extend((start, *message))
                elif kind == "kernel":
                    of_kernels.extend((start, *message))
            if kind == "kernel":
                kernels.extend((start, end, "nccl" in name.lower()))
            # The GPU's copy of a step's span overlaps with those of the steps around it.
            elif name.startswith("ProfilerStep") and not kind.startswith("gpu"):
                steps.append((start, end))
        return None

    _parse_trace(path, keep_times)
    if len(steps) > MOST_STEPS:
        raise InputError(f"more than {MOST_STEPS:,} steps", where=str(path))
    spans = np.array(kernels).reshape(-1, 3)
    borders = np.array(steps).reshape(-1, 2)
    # Kernels on the border of two steps count in each for their part.
    busy = _measure_within(borders, spans[:, :2])
    computing = _measure_within(borders, spans[spans[:, 2] == 0, :2])
    sent = _add_messages(borders, np.array(of_hosts or of_kernels).reshape(-1, 3))
    columns = zip(steps, busy.tolist(), computing.tolist(), sent, strict=True)
    for (start, end), used, hidden, sizes in columns:
        row = {"total_s": repr((end - start) / 1e6)} | sizes
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


def _read_message(arguments: Event) -> Message | None:
    """Return the collective of an event's arguments: the larger of what is sent and received.

    None if it is of one PE, or of a kind that is not predicted, such as a broadcast.
    """
    name = str(arguments["Collective name"]).lower().replace("_", "")
    kind = next((n for n, known in enumerate(VOLUMES) if known.replace("_", "") in name), None)
    found = (arguments.get(f"{way} msg nelems") for way in ("In", "Out"))
    sizes = [float(size) for size in found if isinstance(size, int) and 0 <= size < MOST_TIME]
    if kind is None or arguments.get("Group size") == 1:
        return None
    of_type = str(arguments.get("dtype")).lower()
    item = next((size for text, size in ITEMS.items() if of_type.startswith(text)), math.nan)
    return (kind, max(sizes) * item if len(sizes) == 2 else math.nan)


def _add_messages(steps: Floats, messages: Floats) -> list[Row]:
    """Return the columns of each step's bytes by kind of collective; none if one is not known.

    messages: start [us], number of kind, bytes.
    """
    if not len(messages) or np.isnan(messages[:, 2]).any():
        return [Row() for _ in steps]
    messages, rows = messages[messages[:, 0].argsort()], [Row() for _ in steps]
    places = np.searchsorted(messages[:, 0], steps)
    for number, name in enumerate(BYTES.values()):
        so_far = np.append(0, np.where(messages[:, 1] == number, messages[:, 2], 0).cumsum())
        for row, size in zip(rows, np.diff(so_far[places], axis=1).ravel().tolist(), strict=True):
            row[name] = repr(size)
    return rows


def _parse_trace(path: Path, keep: Callable[[Event], Message | None]) -> None:
    """Parse a trace, packed or not; each object becomes what `keep` returns of it."""
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
        # Objects vanish as they are read: events with their arguments take ten times the
        # room of their text.
        json.loads(text, object_hook=keep)
    except (ValueError, RecursionError):
        raise InputError("no JSON", where=str(path), advice="is it cut off?") from None
