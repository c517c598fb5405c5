"""Measured runs: a CSV file of training configurations with their seconds per iteration.

grids/catalogue/measured/README.md lists the columns: p PEs; samples_per_replica is b, the samples
of a PE (data), of a group (hybrids) or of the whole mini-batch (group strategies).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from paradl.grids.entries.parameters import PARAMETERS
from paradl.grids.entries.quantity import SECONDS
from paradl.grids.reading.csvfile import Record, read_records
from paradl.grids.reading.errors import InputError, shorten
from paradl.grids.reading.units import parse_quantity
from paradl.sweep.measured.run_folder import Values, read_folder
from paradl.sweep.measured.run_logs import BYTES

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

    memory [B per PE]: None if it was not measured. sent [B per iteration of a PE]: by kind of
    collective, of traces.
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
    replicas: int | None = None  # as stated
    sent: Mapping[str, float] = field(default_factory=dict, hash=False)

    @property
    def series(self) -> tuple[str | int | None, ...]:
        """Key of the runs that differ only in the number of PEs."""
        return (self.model, self.dataset, self.system, self.strategy, self.samples_per_replica)


def read_runs(
    path: Path, values: Values = MappingProxyType({}), script: str = ""
) -> tuple[MeasuredRun, ...]:
    """Read all rows in order: of a table, a log, or a folder of both.

    values: of columns that logs do not state, but the script. InputError: a mistake, with its line.
    """
    is_log = path.is_dir() or (path.is_file() and path.suffix != ".csv")
    if values and path.exists() and not is_log:
        what, advice = "a table states its runs by itself", "name a log, or a folder of logs"
        raise InputError(what, where=str(path), advice=advice)
    records = read_folder(path, values, script) if is_log else read_records(path, REQUIRED, None)
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
        measured=_parse_times(record, "", where),
        authors=_parse_times(record, "authors_", where),
        system=record.get("system") or None,
        source=record.get("source", ""),
        note=record.get("note", ""),
        replicas=_parse_count(record, "replicas", "pe", where) if record.get("replicas") else None,
        memory=PARAMETERS["memory_capacity"].read(memory, f"{where}: memory") if memory else None,
        sent={
            kind: parse_quantity(record[name], "B", f"{where}: {name}")
            for kind, name in BYTES.items()
            if record.get(name)
        },
    )


def _parse_name(record: Record, column: str, where: str) -> str:
    if not record[column]:
        raise InputError(f"{column}: expected a name, got nothing", where=where)
    return record[column]


def _parse_count(record: Record, column: str, parameter: str, where: str) -> int:
    return int(PARAMETERS[parameter].read(record[column], f"{where}: {column}"))


def _parse_times(record: Record, prefix: str, where: str) -> RunTimes:
    times = {
        part: _parse_seconds(record.get(column, ""), f"{where}: {column}", column in REQUIRED)
        for part in PARTS
        for column in [f"{prefix}{part}_s"]
    }
    total = times["total"]
    for part, seconds in times.items():
        # The authors' parts are predictions, which nobody measured.
        if not prefix and total and seconds is not None and seconds > ROUNDED * total:
            raise InputError(
                f"expected at most total_s, {total:g}, got {seconds:g}",
                where=f"{where}: {part}_s",
                advice="are both in seconds, of one iteration?",
            )
    return RunTimes(**times)


def _parse_seconds(text: str, where: str, required: bool) -> float | None:
    if not text and not required:
        return None
    # As a number alone: `200ms` in a column of seconds may mean 0.2 or 200.
    seconds = parse_quantity(text, "1", where, example="0.2")
    if seconds < 0 or (required and seconds == 0):
        least = "more than 0 s" if required else "at least 0 s"
        raise InputError(f"expected {least}, got {shorten(text)}", where=where)
    # A single PE communicates for 0 s, which is below the bounds of times.
    return SECONDS.read(seconds, where) if seconds else 0.0
