"""Logs of nccl-tests (and rccl-tests): the text that they print.

The format is that of nccl-tests' src/common.cu: lines of `# Rank`, a header of three lines with
names and units, and rows of size, count, type, redop, root, and time, algbw, busbw, #wrong out of
place and in place. Before 2.11 an all-reduce has no root, and other collectives no redop either;
before 2.0 the columns are bytes, N, type, op, and times are in ms. Logs that were pasted elsewhere
lose the `#` of their comments. A new header begins a new run; rows without one have as many columns
as a version has, which their own figures confirm.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median

from paradl.grids.reading.errors import InputError, shorten
from paradl.sweep.importing.machines.measurements import (
    MOST_ROWS,
    Measurement,
    Sample,
    count_ranks,
    expect_plausible,
    find_bus_factor,
    find_collective,
    parse_figure,
    read_lines,
    report_cut,
)

HOST = re.compile(r"\bRank\s+\d+ .*\bon\s+(\S+)\s+device\s+\d+\s*(?:\[[^\]]*\])?\s*(.*)")
# The program, as it names itself, or in a command that a shell echoes.
PROGRAM = re.compile(r"#\s*Collective test starting:\s*(\S+)|^[^#]*\b(\w+)_perf\b")
# Columns, behind the prefix of any launcher.
HEADER = re.compile(r"\b(?:size|bytes)\s.*\b(?:cpu)?time\s.*\bbusbw\b.*")
OLD_NAMES = {"bytes": "size", "op": "redop"}
TYPES = ("float", "half", "bfloat16", "double", "u?int", "char", "f8", "fp8")
ROW = re.compile(rf"(?:^|\s)\d+\s+\d+\s+(?:{'|'.join(TYPES)})\w*\s.*")
# Bytes that lines of the benchmark have, and few others; each takes a second of CPU for 2 GB.
# The last four are of comments without their #.
WANTED = (
    *(b"#", b"_perf", b"float", b"half", b"double", b"int8", b"int32", b"int64", b"e4m3", b"e5m2"),
    *(b"Rank", b"bus", b"B/s", b"OSU"),
)
# A comment, at the start of a line or behind what another program left there; no `#wrong`.
COMMENT = re.compile(r"#(?:\s.*)?$")
# Of one way; of rows without a header, from 2.11 on and before.
FIGURES, BEFORE = ("time", "algbw", "busbw", "#wrong"), ("time", "algbw", "busbw", "error")
LAYOUTS = (
    ["size", "count", "type", "redop", "root", *FIGURES, *FIGURES],
    ["size", "count", "type", "redop", *BEFORE, *BEFORE],
    ["size", "count", "type", *BEFORE, *BEFORE],
)
UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "gb/s": 1e9, "mb/s": 1e6, "b": 1.0}
USUAL, OLD = (1e-6, 1e9), (1e-3, 1e9)  # where none are stated: of rows, of the header before 2.0
# [B/s] nccl-tests rounds algbw and busbw to 0.01 GB/s: by half of that, and a bit for float64.
DIGIT = 0.0051e9


@dataclass
class LoggedRun:
    """A run as far as it is read.

    hosts: of its ranks. units: of times [s] and bandwidths [B/s]; empty: not read yet. factors: bus
    bandwidth over algbw.
    """

    where: str
    collective: str = ""
    hosts: list[str] = field(default_factory=list)
    device: str = ""
    columns: list[str] = field(default_factory=list)
    units: tuple[float, ...] = ()
    samples: list[Sample] = field(default_factory=list)
    factors: list[float] = field(default_factory=list)
    redops: set[str] = field(default_factory=set)
    wrong: int = 0
    pes: int = 0
    nodes: int = 0
    ended: bool = False


def read_nccl(path: Path, pes: int | None) -> Iterator[Measurement]:
    """Return the runs of a log. pes: of runs that do not state theirs. InputError: a mistake."""
    rows = 0
    for run in _split_text(read_lines(path, WANTED)):
        rows += len(run.samples)
        if rows > MOST_ROWS:
            raise InputError(f"more than {MOST_ROWS:,} rows", where=str(path))
        if run.samples:
            yield finish(run, path, pes)


def _split_text(lines: Iterator[tuple[str, str]]) -> Iterator[LoggedRun]:
    run = LoggedRun("")
    for where, text in lines:
        line = match[0] if (match := COMMENT.search(text)) else text
        words = line.strip("# ").split()
        if host := HOST.search(line):
            if run.samples:
                yield run
                run = LoggedRun(where)
            run.hosts.append(host[1])
            run.device = host[2].strip()
        elif program := PROGRAM.match(line):
            if run.samples:
                yield run
                run = LoggedRun(where)
            run.collective = find_collective(program[1] or program[2]) or run.collective
        elif header := HEADER.search(line):
            if run.samples:  # of the same ranks
                yield run
                run = replace(run, samples=[], factors=[], redops=set(), wrong=0, ended=False)
            names = header[0].split()
            if "cputime" in names:
                what, advice = "expected times of devices, got cputime", "run it without -C 1"
                raise InputError(what, where=where, advice=advice)
            run.where, run.columns = where, [OLD_NAMES.get(name, name) for name in names]
            run.units = OLD if names[0] == "bytes" else ()
        elif run.columns and not run.units and (line.startswith("#") or "(B)" in words):
            run.units = _read_units(line, where)
        elif "Avg bus bandwidth" in " ".join(words):
            run.ended = True
        elif row := ROW.search(line):
            words = row[0].split()
            if not run.columns:
                # Two words more are a timestamp; one set of figures less was not run in place.
                less = (0, 2, -len(FIGURES))
                fits = (names for names in LAYOUTS if len(words) - len(names) in less)
                run.where, run.columns = where, next(fits, LAYOUTS[0])
            run.units = run.units or USUAL
            _read_row(run, words, where)
    yield run


def _read_units(line: str, where: str) -> tuple[float, float]:
    """Return the units of times and of bandwidths, of which all columns have the same."""
    units = {unit.lower() for unit in re.findall(r"\(([^)]*)\)", line)} & UNITS.keys() - {"b"}
    rates = [unit for unit in units if unit.endswith("/s")]
    if len(units) != 2 or len(rates) != 1:
        what = f"expected one unit of times and one of bandwidths, got {shorten(line.strip())}"
        raise InputError(what, where=where)
    (time,) = units.difference(rates)
    return UNITS[time], UNITS[rates[0]]


def _read_row(run: LoggedRun, words: list[str], where: str) -> None:
    columns = [name for name in run.columns if name != "timestamp"]  # which has a blank in it
    times = [n for n, name in enumerate(columns) if name == "time"]
    # Some collectives have no figures in place.
    short = len(times) == 2 and len(words) == times[1]
    # A timestamp is two words more.
    if not short and (len(words) < len(columns) or len(words) > len(columns) + 2):
        raise report_cut(len(columns), len(words), where)
    size = parse_figure(words[0], where)
    if "redop" in columns:
        run.redops.add(words[columns.index("redop")])
    time, rate = run.units
    checks = [n for n, name in enumerate(columns) if name == "#wrong"]
    # By names: some versions have more figures, such as the least and the most of the times.
    rates = ([n for n, name in enumerate(columns) if name == key] for key in FIGURES[1:3])
    for places in [*zip(times, *rates, strict=False)][: 1 if short else None]:
        figures = [words[n] for n in places]
        # Not run in place.
        if "N/A" in figures:
            continue
        seconds, *bandwidths = (parse_figure(text, where) for text in figures)
        add_sample(run, size, [seconds * time, *(each * rate for each in bandwidths)], where)
        wrong = next((words[n] for n in checks if n > places[-1]), "0")
        run.wrong += wrong not in ("0", "N/A")


def add_sample(run: LoggedRun, size: float, figures: list[float], where: str) -> None:
    """Add a sample, of its time, algbw and busbw."""
    seconds, algbw, busbw = figures
    if size == 0 or seconds == 0:  # a PE with nothing to send
        return
    expect_plausible(size, seconds, algbw, DIGIT, where)
    run.samples.append(Sample(size, seconds))
    # Smaller ones have too few digits for a ratio.
    if algbw > 100 * DIGIT:
        run.factors.append(busbw / algbw)


def finish(run: LoggedRun, path: Path, pes: int | None) -> Measurement:
    """Return the measurement of a run, with its collective and its PEs."""
    factor = median(run.factors) if run.factors else 0.0
    collective = run.collective or find_collective(path.stem) or _guess(run, factor)
    if not collective:
        raise InputError(
            "the log does not state which collective it measured",
            where=run.where,
            advice="name it in the file's name, such as all_gather.txt",
        )
    count = len(run.hosts) or run.pes or count_ranks(collective, factor) or pes
    if not count:
        what = f"the log does not state how many PEs ran {collective}"
        raise InputError(what, where=run.where, advice="state them with --pe")
    expected = find_bus_factor(collective, count)
    if factor and abs(factor - expected) > 0.02 * expected:
        raise InputError(
            f"busbw is {factor:.3g} times algbw, and {expected:.3g} times for {collective} of "
            f"{count} PEs",
            where=run.where,
            advice="does the file's name state another collective, or --pe another number?",
        )
    return Measurement(
        run.where,
        "nccl-tests",
        collective,
        count,
        run.nodes or len(set(run.hosts)),
        tuple(run.samples),
        run.device,
        cut=not run.ended,
        wrong=run.wrong,
    )


def _guess(run: LoggedRun, factor: float) -> str:
    """Return the collective that the figures tell: only an all-reduce moves more than its size."""
    # With two ranks its bus factor is 1, as that of others.
    if factor > 1.02 or (factor and len(run.hosts) == 2 and run.redops - {"none", ""}):
        return "all_reduce"
    if 0 < factor < 0.98 and run.redops - {"none", ""}:
        return "reduce_scatter"
    return ""
