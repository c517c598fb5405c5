"""Logs of the OSU micro-benchmarks, and of perftest (ib_write_lat, ib_write_bw ...).

OSU: `# OSU MPI-CUDA Bandwidth Test v7.4`, `# Size      Bandwidth (MB/s)`, and rows of two columns,
or of more with `-f`; MB is 1e6 bytes. A collective's size is what a PE sends, and the log does not
state how many took part. perftest: a header `#bytes #iterations BW peak[MB/sec] BW average[MB/sec]
MsgRate[Mpps]`, where MB is 2^20 bytes (perftest's parameters: MBS), or `t_min[usec] ...`. Tests in
both directions state the sum of both.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from paradl.grids.reading.errors import InputError, shorten
from paradl.sweep.importing.machines.measurements import (
    MOST_ROWS,
    Measurement,
    Sample,
    find_collective,
    parse_figure,
    read_lines,
    report_cut,
)

# Logs that were pasted elsewhere lose the # of their comments.
OSU_TITLE = re.compile(r"#?\s*OSU (.*?)\s+(?:Test\s+)?v[\d.]+")
OSU_HEADER = re.compile(r"#?\s*size\s+.*(?:(?:latency|bandwidth)\s*\(|mb/s)")
OSU_UNITS = {"us": 1e-6, "mb/s": 1e6}
PERFTEST_UNITS = {"usec": 1e-6, "mb/sec": 2.0**20, "mib/sec": 2.0**20, "gb/sec": 0.125e9}
# A column: `#bytes`, `BW average[MB/sec]`, `Avg Latency(us)`, `MB/s`; its unit stands in brackets.
COLUMN = re.compile(
    r"#?\s*size|#\w+|[\w.%]+(?: [\w.%]+){0,2} ?[\[(]([^\])]*)[\])]|(MB/s)|\S+", re.I
)
# Which figure counts, the first that the header has: an average, but the typical latency.
FIGURES = ("bw average", "t_typical", "t_avg", "avg latency", "latency", "bandwidth", "mb/s")
BIDIRECTIONAL = re.compile(r"bi-?directional|bibandwidth", re.I)
ROW = re.compile(r"\s*\d+\s")


@dataclass
class _Run:
    """A run as far as it is read. column: of the figure that counts, in `unit`; a rate, or time."""

    where: str
    tool: str
    title: str = ""
    columns: int = 0
    column: int = -1
    unit: float = 1.0
    rate: bool = False
    samples: list[Sample] = field(default_factory=list)


def read_messages(path: Path, pes: int | None) -> Iterator[Measurement]:
    """Return the runs of a log. pes: those of OSU's collectives. InputError: a mistake."""
    run: _Run | None = None
    title, rows = "", 0
    for where, line in read_lines(path):
        if named := OSU_TITLE.match(line):
            title = named[1]
        elif BIDIRECTIONAL.search(line) and not ROW.match(line):
            # perftest has no title: what it says of both directions stands alone.
            title = line.strip()
        started = _start_run(line, where, title)
        if started:
            if run and run.samples:
                yield _finish(run, pes)
            run = started
        elif run and ROW.match(line):
            _read_row(run, line.split(), where)
            rows += 1
            if rows > MOST_ROWS:
                raise InputError(f"more than {MOST_ROWS:,} rows", where=str(path))
        elif run and run.samples and line.startswith("----"):
            title = ""  # perftest ends a run with a rule
    if run and run.samples:
        yield _finish(run, pes)


def _start_run(line: str, where: str, title: str) -> _Run | None:
    folded = line.lower().strip()
    is_osu = OSU_HEADER.match(folded) is not None
    if not is_osu and not folded.startswith("#bytes"):
        return None
    columns = [*COLUMN.finditer(line.strip())]
    names = [match[0].strip("# ").lower() for match in columns]
    at = next((n for word in FIGURES for n, name in enumerate(names) if word in name), 0)
    unit = (columns[at][1] or columns[at][2] or "").lower()
    units = OSU_UNITS if is_osu else PERFTEST_UNITS
    if unit not in units:
        what = f"expected a column in {', '.join(units)}, got {shorten(line.strip())}"
        raise InputError(what, where=where)
    factor = units[unit]
    if unit.endswith(("/s", "/sec")) and BIDIRECTIONAL.search(title):
        factor /= 2  # the sum of both ways
    tool = "osu" if is_osu else "perftest"
    return _Run(where, tool, title, 0, at, factor, rate="/s" in unit)


def _read_row(run: _Run, words: list[str], where: str) -> None:
    # A header's units and names may have blanks; the first row counts columns.
    run.columns = run.columns or len(words)
    if len(words) != run.columns or run.column >= len(words):
        raise report_cut(max(run.columns, run.column + 1), len(words), where)
    size = parse_figure(words[0], where)
    figure = parse_figure(words[run.column], where) * run.unit
    if size and figure:
        run.samples.append(Sample(size, size / figure if run.rate else figure))


def _finish(run: _Run, pes: int | None) -> Measurement:
    collective = find_collective(run.title.lower().replace("-", "").replace(" ", "_")) or "send"
    # Many messages are under way at once in a test of bandwidth: it has no start-ups.
    tool = f"{run.tool} {'bandwidth' if run.rate else 'latency'}"
    if collective == "send":
        return Measurement(run.where, tool, "send", 2, 2, tuple(run.samples))
    if pes is None:
        what = f"the log does not state how many PEs ran {collective}"
        raise InputError(what, where=run.where, advice="state them with --pe")
    # OSU's size is of one PE's part where all get the parts of all.
    whole = pes if collective in ("all_gather", "all_to_all") else 1
    samples = tuple(Sample(whole * row.size, row.seconds) for row in run.samples)
    return Measurement(run.where, tool, collective, pes, 0, samples)
