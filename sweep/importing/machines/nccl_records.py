"""Results of nccl-tests and rccl-tests as records: JSON (`-J FILE`; `-Z json`) and CSV (`-Z csv`).

nccl-tests writes one object: the arguments, the ranks, and `results`, a list of
`{"size": 1024, "type": "float", "out_of_place": {"time": .., "alg_bw": .., "bus_bw": .., "nwrong":
..}, "in_place": {..}}`; rccl-tests a list, or a table, of `{"name": "AllReduce", "ranks": 8,
"size": 1024, "inPlace": 0, "time": .., "algBw": .., "busBw": ..}`. Times are in us, bandwidths in
GB/s, unless a table's header says otherwise: each row's figures confirm that.
"""

import csv
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from paradl.grids.reading.errors import InputError
from paradl.grids.reading.textfile import parse_json, read_text
from paradl.sweep.importing.machines.measurements import (
    MOST_ROWS,
    Measurement,
    find_collective,
    parse_figure,
    read_lines,
)
from paradl.sweep.importing.machines.nccl import UNITS, LoggedRun, add_sample, finish

MOST_BYTES = 2**26
SEPARATORS = (",", ";", "\t")
FIGURES = {"time": "us", "algbw": "gb/s", "busbw": "gb/s"}  # with their usual units
# Names of columns and keys, lower case and without separators.
SYNONYMS = {
    **{"bytes": "size", "algobw": "algbw", "nranks": "ranks", "pes": "ranks", "gpus": "ranks"},
    **{"name": "collective", "op": "collective", "test": "collective", "args": "collective"},
    "nwrong": "wrong",
}
IN_PLACE = "inplace"  # begins the names of figures in place

# JSON states no units.
USUAL = {f"{way}{name}": UNITS[unit] for way in ("", IN_PLACE) for name, unit in FIGURES.items()}

UNMEASURED = (None, "N/A")

Record = dict[str, object]  # by plain names


def read_json(path: Path, pes: int | None) -> Iterator[Measurement]:
    """Return the runs of a file. pes: of runs that do not state theirs. InputError: a mistake."""
    document = parse_json(read_text(path, MOST_BYTES), path)
    # nccl-tests writes an object, rccl-tests a list.
    entries = document if isinstance(document, list) else [document]
    return _collect(((str(path), record) for record in _list_results(entries)), path, pes)


def _list_results(entries: Iterable[object]) -> Iterator[Record]:
    """Yield results, each with what stands beside all: the collective and the ranks."""
    for entry in map(_name_plainly, entries):
        results = entry.get("results", [entry])
        for result in results if isinstance(results, list) else []:
            record = entry | _name_plainly(result)
            record |= _name_plainly(record.get("outofplace"))
            figures = _name_plainly(record.get(IN_PLACE))
            yield record | {f"{IN_PLACE}{name}": figures[name] for name in figures}


def _name_plainly(entry: object) -> Record:
    """Return an object with plain names of its keys; empty for anything else."""
    return {_fold(key): value for key, value in entry.items()} if isinstance(entry, dict) else {}


def _fold(name: str) -> str:
    plain = "".join(filter(str.isalnum, name.lower()))
    return SYNONYMS.get(plain, plain)


def read_table(path: Path, pes: int | None) -> Iterator[Measurement]:
    """Return the runs of a table with a header; arguments and errors: as of `read_json`."""
    lines = read_lines(path)
    where, head = next(lines)
    separator = next(mark for mark in SEPARATORS if mark in head)
    columns: list[str] = []
    units = dict(USUAL)
    for name in next(csv.reader([head], delimiter=separator)):
        # With its unit in brackets, or without; a second time, figures are those in place.
        text, _, unit = name.lower().replace("[", "(").rstrip(" )]").partition("(")
        plain = _fold(text)
        plain = f"{IN_PLACE}{plain}" if plain in columns else plain
        if plain in USUAL and unit:
            if unit not in UNITS:
                raise InputError(f"{name}: unknown unit", where=where, advice="known: us, ms, GB/s")
            units[plain] = UNITS[unit]
        columns.append(plain)
    for name in ("size", *FIGURES):
        if name not in columns:
            raise InputError(f"the column {name} is missing", where=where)
    return _collect(_split_rows(lines, separator, columns), path, pes, units)


def _split_rows(
    lines: Iterator[tuple[str, str]], separator: str, columns: list[str]
) -> Iterator[tuple[str, Record]]:
    for where, line in lines:
        fields = [text.strip() for text in next(csv.reader([line], delimiter=separator), [])]
        if fields and len(fields) != len(columns):
            what = f"expected {len(columns)} fields, got {len(fields)}"
            raise InputError(what, where=where, advice="is it cut off, or has it decimal commas?")
        if fields:
            yield where, dict(zip(columns, fields, strict=True))


def _collect(
    records: Iterable[tuple[str, Record]],
    path: Path,
    pes: int | None,
    units: Mapping[str, float] = USUAL,
) -> Iterator[Measurement]:
    """Yield the runs: rows of one collective and number of PEs each. units: by column."""
    runs: dict[tuple[str, int], LoggedRun] = {}
    rows = 0
    for where, record in records:
        run = _find_run(runs, record, where)
        run.redops.add(str(record.get("redop", "")))
        for prefix in ("", IN_PLACE):
            names = ["size", *(f"{prefix}{name}" for name in FIGURES)]
            stated = [record[name] for name in names if name in record]
            if f"{prefix}time" not in record or any(value in UNMEASURED for value in stated):
                continue
            missing = next((name for name in names if name not in record), None)
            if missing:
                raise InputError(
                    f"{missing} is missing", where=where, advice="beside size: time, algbw, busbw"
                )
            size, *figures = (
                parse_figure(str(record[name]), where) * (1.0 if name == "size" else units[name])
                for name in names
            )
            add_sample(run, size, figures, where)
            run.wrong += str(record.get(f"{prefix}wrong", "0")) not in ("0", "N/A", "None")
        rows += 1
        if rows > MOST_ROWS:
            raise InputError(f"more than {MOST_ROWS:,} rows", where=str(path))
    for run in runs.values():
        if run.samples:
            yield finish(run, path, pes)


def _find_run(runs: dict[tuple[str, int], LoggedRun], record: Record, where: str) -> LoggedRun:
    """Return the run that a record belongs to, by its collective and ranks."""
    name = record.get("collective", "")
    collective = find_collective(str(name[0] if isinstance(name, list) and name else name)) or ""
    # nccl-tests lists the devices of all ranks.
    listed = _name_plainly(record.get("config")).get("devices")
    listed = listed if isinstance(listed, list) else []
    stated = record.get("ranks", "")
    count = len(listed) or (int(parse_figure(str(stated), where)) if stated else 0)
    if (collective, count) not in runs:
        devices = [_name_plainly(device) for device in listed]
        # A record has no last line, which would show that the file is whole.
        run = runs[collective, count] = LoggedRun(where, collective, ended=True, pes=count)
        run.hosts = [str(device["hostname"]) for device in devices if "hostname" in device]
        run.device = next((str(d["devicename"]) for d in devices if "devicename" in d), "")
        nodes = record.get("nodes", 0)
        run.nodes = int(parse_figure(str(nodes), where)) if nodes else 0
    return runs[collective, count]
