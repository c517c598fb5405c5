"""Measured runs: a CSV file of training configurations with their seconds per iteration.

grids/catalogue/measured/README.md lists the columns: p PEs; samples_per_replica is b, the samples
of a PE (data), of a group (hybrids) or of the whole mini-batch (group strategies).
"""

from dataclasses import dataclass
from pathlib import Path

from paradl.grids.entries.parameters import PARAMETERS
from paradl.grids.entries.quantity import SECONDS
from paradl.grids.reading.csvfile import Record, read_records
from paradl.grids.reading.errors import InputError, shorten
from paradl.grids.reading.units import parse_quantity
from paradl.sweep.measured.run_folder import read_folder

REQUIRED = ("model", "dataset", "strategy", "p", "samples_per_replica", "total_s")
PARTS = ("total", "comp", "comm")
# By which a part may exceed the total: medians of steps, and values read from figures, are inexact.
ROUNDED = 1.05


@dataclass(frozen=True)
class RunTimes:
    """Total, compute and communication time [s per iteration]; None: not measured."""

    total: float | None
    comp: float | None
    comm: float | None


@dataclass(frozen=True)
class MeasuredRun:
    """One row of the file. where: file and line. system: None if the row names none.

    memory [B per PE]: None if it was not measured.
    """

    where: str
    model: str
    dataset: str
    strategy: str
    p: int
    samples_per_replica: int
    measured: RunTimes
    authors: RunTimes
    system: str | None
    source: str
    note: str
    memory: float | None = None

    @property
    def series(self) -> tuple[str | int | None, ...]:
        """Key of the runs that differ only in the number of PEs."""
        return (self.model, self.dataset, self.system, self.strategy, self.samples_per_replica)


def read_runs(path: Path) -> tuple[MeasuredRun, ...]:
    """Read all rows in order. InputError: a mistake, with file and line."""
    records = read_folder(path) if path.is_dir() else read_records(path, REQUIRED, None)
    runs = tuple(_parse_run(where, record) for where, record in records)
    if not runs:
        raise InputError(
            "expected one row per run, got none", where=str(path), advice="is it the right file?"
        )
    return runs


def _parse_run(where: str, record: Record) -> MeasuredRun:
    memory = record.get("memory", "")
    return MeasuredRun(
        where=where,
        model=_parse_name(record, "model", where),
        dataset=_parse_name(record, "dataset", where),
        strategy=_parse_name(record, "strategy", where),
        p=_parse_count(record, "p", "pe", where),
        samples_per_replica=_parse_count(record, "samples_per_replica", "batch", where),
        measured=_expect_parts(_parse_times(record, "", where), where),
        authors=_parse_times(record, "authors_", where),
        system=record.get("system") or None,
        source=record.get("source", ""),
        note=record.get("note", ""),
        memory=PARAMETERS["memory_capacity"].read(memory, f"{where}: memory") if memory else None,
    )


def _parse_name(record: Record, column: str, where: str) -> str:
    if not record[column]:
        raise InputError(f"{column}: expected a name, got nothing", where=where)
    return record[column]


def _parse_count(record: Record, column: str, parameter: str, where: str) -> int:
    return int(PARAMETERS[parameter].read(record[column], f"{where}: {column}"))


def _parse_times(record: Record, prefix: str, where: str) -> RunTimes:
    total, comp, comm = (
        _parse_seconds(record.get(column, ""), f"{where}: {column}", required=column in REQUIRED)
        for column in (f"{prefix}{part}_s" for part in PARTS)
    )
    return RunTimes(total, comp, comm)


def _expect_parts(times: RunTimes, where: str) -> RunTimes:
    """Return the times. InputError: a part took longer than the whole."""
    assert times.total  # required
    for part, seconds in (("comp", times.comp), ("comm", times.comm)):
        if seconds is not None and seconds > ROUNDED * times.total:
            raise InputError(
                f"expected at most total_s, {times.total:g}, got {seconds:g}",
                where=f"{where}: {part}_s",
                advice="are both in seconds, of one iteration?",
            )
    return times


def _parse_seconds(text: str, where: str, *, required: bool) -> float | None:
    if not text and not required:
        return None
    # As a number alone: `200ms` in a column of seconds may mean 0.2 or 200.
    seconds = parse_quantity(text, "1", where, example="0.2")
    if seconds < 0 or (required and seconds == 0):
        least = "more than 0 s" if required else "at least 0 s"
        raise InputError(f"expected {least}, got {shorten(text)}", where=where)
    # A single PE communicates for 0 s, which is below the bounds of times.
    return SECONDS.read(seconds, where) if seconds else 0.0
