"""The record: one table of what was measured last, and on which machine."""

import os
import platform
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from benchmarks.report import HEAD, Report, list_texts, tabulate
from paradl.sweep.engine.resources import machine_memory

RECORDED = ("paradl", "jax", "jaxlib", "numpy", "xarray", "zarr", "numcodecs", "dask")
CPUINFO = Path("/proc/cpuinfo")
HEADS = ("measurement", *HEAD[:-1], "load", "on", HEAD[-1])
TEXT = """# Results

Written by `python -m benchmarks NAME ... --record`, which replaces the rows of what it measures.
Read the ratios: both sides of each were measured in turn in the same run. The rates are the
machine's at that hour, and say little elsewhere. Load: processes that wanted a core before the
start; above 0 others shared the cores.

Last on: {machine}.

"""


@dataclass(frozen=True)
class Machine:
    """Machine and date of a measurement. load: average of runnable processes before the start."""

    date: str
    processor: str
    cores: int
    memory: int
    load: float
    system: str
    versions: dict[str, str]

    @classmethod
    def here(cls) -> "Machine":
        """Describe this machine now."""
        return cls(
            date=datetime.now(UTC).isoformat(timespec="minutes"),
            processor=_processor(),
            cores=os.cpu_count() or 1,
            memory=machine_memory(),
            load=os.getloadavg()[0],
            system=f"{platform.system()} {platform.release()}, Python {platform.python_version()}",
            versions={name: version(name) for name in RECORDED},
        )

    def markdown(self) -> str:
        """Return a heading and a line."""
        return f"## {self.date}\n\n{self.describe()}; load {self.load:.1f} before the start\n"

    def describe(self) -> str:
        """Return processor, memory and versions in a line."""
        versions = ", ".join(f"{name} {number}" for name, number in self.versions.items())
        memory = f"{self.memory / 2**30:.0f} GiB"
        return f"{self.processor}, {self.cores} cores, {memory}; {self.system}; {versions}"


def record_reports(
    path: Path, machine: Machine, reports: Iterable[Report], order: Sequence[str]
) -> None:
    """Replace the rows of these reports in the table at `path`, ordered by measurement."""
    new = [_list_row(report, machine, texts) for report in reports for texts in _list_rows(report)]
    measured = {report.name for report in reports}
    old = [row for row in _read_rows(path) if row[0] in order and row[0] not in measured]
    rows = sorted([*old, *new], key=lambda row: order.index(row[0]))
    path.write_text(TEXT.format(machine=machine.describe()) + tabulate([HEADS, *rows]) + "\n")


def _list_rows(report: Report) -> list[tuple[str, ...]]:
    return [list_texts(row) for row in report.rows]


def _list_row(report: Report, machine: Machine, texts: tuple[str, ...]) -> tuple[str, ...]:
    *measured, note = texts
    return report.name, *measured, f"{machine.load:.1f}", machine.date[:10], note


def _read_rows(path: Path) -> list[tuple[str, ...]]:
    """The rows of the table; none where the file has no such table."""
    lines = path.read_text().splitlines() if path.exists() else []
    table = [line[2:-2] for line in lines if line.startswith("| ")]
    rows = [tuple(text.strip() for text in line.split(" | ")) for line in table]
    # The head, and the rule below it, are made anew. Columns without content were left out.
    if not rows or rows[0][0] != HEADS[0]:
        return []
    named = [dict(zip(rows[0], row, strict=True)) for row in rows[2:]]
    return [tuple(row.get(head, "") for head in HEADS) for row in named]


def _processor() -> str:
    """Return the processor's name, which Python itself knows only on some systems."""
    if CPUINFO.exists():
        for line in CPUINFO.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
