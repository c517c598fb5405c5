"""A folder of measured runs in other programs' words, with a mapping of their words to ours.

docs/your-runs.md has the mapping file. Files are tables (CSV, as Weights & Biases or MLflow export
them; MLflow's long form has `key` and `value`), traces (.json, .json.gz) or logs, such as results
of Hugging Face's Trainer. Steps of one configuration make one run, of the median of their times.
"""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from statistics import median
from typing import Annotated

from pydantic import Field

from paradl.grids.entries.entry import Record
from paradl.grids.reading.csvfile import read_records
from paradl.grids.reading.errors import InputError, format_text, shorten, suggest_name
from paradl.grids.reading.units import has_unit, parse_quantity
from paradl.grids.reading.yamlfile import load, validate
from paradl.sweep.measured.log_formats import KNOWN
from paradl.sweep.measured.rates import (
    MEAN,
    RATES,
    SPEEDS,
    STATED_BATCH,
    STATED_PES,
    TOKENS,
    Row,
    add_seconds,
)
from paradl.sweep.measured.run_logs import BYTES, Step, read_log, read_trace

NAME = "mapping.yaml"
IDENTITY = ("model", "dataset", "system", "strategy", "p", "samples_per_replica")
MEASURED = {"total_s": "s", "comp_s": "s", "comm_s": "s", "memory": "B"}
MEASURED |= dict.fromkeys(BYTES.values(), "B")
TRACES = (".json", ".json.gz")
RESULTS = ("_results.json", "trainer_state.json")  # logs, and no traces
# What to do about a file without steps, by the ends of its name.
REMEDIES = {
    (".csv",): "name the column of seconds per step, or of a rate, under 'columns', such as "
    "{total_s: step_time}",
    RESULTS: "it has no rate of training",
    TRACES: "record ProfilerStep spans, by a profiler with a schedule",
    ("",): f"logs are read of {KNOWN}; leave others out by 'files', such as '*.log'",
}
# Of a step, and not of a run.
OF_STEPS = ("global_batch", "replicas", *RATES, TOKENS)
COLUMNS = (*IDENTITY, *MEASURED, *OF_STEPS, "source", "note")
EVERY = "*"
MOST_FILES = 1000

Value = str | int | float
Values = Mapping[str, Value]


class _ContradictionError(InputError):
    """What a run's own file says of it, and what is stated, differ."""


class RunMapping(Record):
    """The mapping file: how files of the folder are read, and values that they do not state.

    files: a pattern of names, such as *.log. columns: their columns by ours. units: of columns,
    such as ms. values: of our columns, where files do not state them. per_file: such values by
    file. skip: first steps of each run that are left out. tokens_per_pe: tokens of a PE in a step.
    """

    files: str = EVERY
    columns: dict[str, str] = Field(default_factory=dict)
    units: dict[str, str] = Field(default_factory=dict)
    values: dict[str, Value] = Field(default_factory=dict)
    per_file: dict[str, dict[str, Value]] = Field(default_factory=dict)
    skip: Annotated[int, Field(ge=0)] = 0
    tokens_per_pe: Value | None = None


def read_folder(path: Path, values: Values, script: str) -> Iterator[tuple[str, Row]]:
    """Yield a row for each configuration in a folder's files, or in one, with its place.

    values: what the mapping file, which is then not needed, does not state, but a script.
    """
    folder = path if path.is_dir() else path.parent
    is_there = (folder / NAME).is_file() or not values
    mapping = _read_mapping(folder / NAME) if is_there else RunMapping()
    origin = " or ".join([script] * bool(values) + [NAME] * is_there)
    mapping = mapping.model_copy(update={"values": {**values, **mapping.values}})
    paths = _find_files(folder, mapping.files) if path.is_dir() else [path]
    if not paths or len(paths) > MOST_FILES:
        what = f"expected 1 to {MOST_FILES} files {shorten(mapping.files)}, got {len(paths)}"
        raise InputError(what, where=str(folder), advice=f"see 'files' of {NAME}")
    names = {path.name for path in paths}
    for name in mapping.per_file:
        # `files` may leave a file out for a while.
        if name not in names and not (folder / name).is_file():
            raise InputError.unknown("file", name, names, where=f"{folder / NAME}: per_file")
    runs = {path: [*_read_file(path, mapping, origin)] for path in paths}
    for path, found in runs.items():
        # Beside runs lie scripts, configurations and pictures; files that are named must be runs.
        is_named = mapping.files != EVERY or path.name in mapping.per_file
        if not found and (is_named or not any(runs.values())):
            advice = next(text for ends, text in REMEDIES.items() if path.name.endswith(ends))
            where = path if is_named or len(paths) == 1 else f"{folder}: {len(paths)} files"
            raise InputError("expected steps of a run, got none", where=str(where), advice=advice)
        yield from found


def _find_files(folder: Path, pattern: str) -> list[Path]:
    """Return the files of a pattern in name order. InputError: it is no pattern of the folder."""
    # As in a shell, `*` leaves out what programs hide beside logs, such as .DS_Store.
    hidden = pattern.rpartition("/")[2].startswith(".")
    try:
        if ".." in Path(pattern).parts:
            raise ValueError
        return sorted(
            path
            for path in folder.glob(pattern)
            if path.is_file() and path.name != NAME and (hidden or not path.name.startswith("."))
        )
    except (ValueError, NotImplementedError):
        raise InputError(
            f"files: expected a pattern of names in the folder, got {shorten(pattern)}",
            where=str(folder / NAME),
            advice="write it like '*.csv'",
        ) from None


def _read_mapping(path: Path) -> RunMapping:
    if not path.is_file():
        advice = "docs/your-runs.md has one to copy; or give the runs' script: --launch SCRIPT"
        raise InputError(f"logs need a file {NAME}", where=str(path.parent), advice=advice)
    document = load(path)
    mapping = validate(RunMapping, document.data, document)
    stated = [*mapping.values, *(name for values in mapping.per_file.values() for name in values)]
    for name in (*mapping.columns, *mapping.units, *stated):
        if name not in COLUMNS:
            raise InputError.unknown("column", name, COLUMNS, where=str(path))
    for name, unit in mapping.units.items():
        if name not in MEASURED:
            raise InputError(
                f"units: {name} has no unit; {', '.join(MEASURED)} have", where=str(path)
            )
        parse_quantity(f"1 {unit}", MEASURED[name], f"{path}: units: {name}")
    return mapping


def _read_file(path: Path, mapping: RunMapping, origin: str) -> Iterator[tuple[str, Row]]:
    """Yield a run for each configuration in a file, of the median of its steps; none if empty."""
    stated = {**mapping.values, **mapping.per_file.get(path.name, {})}
    if tokens := _read_tokens(stated.pop(TOKENS, mapping.tokens_per_pe), path):
        stated[TOKENS] = tokens
    fixed = {name: str(value) for name, value in stated.items()}
    runs: dict[tuple[str, ...], list[Step]] = {}
    steps_read: Iterable[Step]
    refusal: _ContradictionError | None = None
    if path.name.endswith(TRACES) and not path.name.endswith(RESULTS):
        steps_read = read_trace(path)
    elif path.suffix == ".csv":
        steps_read = _read_table(path, mapping)
    else:
        steps_read = read_log(path)
    for number, step in steps_read:
        try:
            row = _complete({**fixed, **step}, f"{path}:{number}", origin)
        except _ContradictionError as error:
            refusal = refusal or error
            continue  # a batch that ramps up passes others
        # A restarted run may go on with another batch or number of PEs.
        key = tuple(row.get(name, "") for name in IDENTITY)
        runs.setdefault(key, []).append((number, row))
    if refusal and not runs:
        raise refusal
    # A batch that ramps up has short-lived configurations, which end before they are warm.
    long = [steps for steps in runs.values() if len(steps) > mapping.skip or MEAN in steps[0][1]]
    if runs and not long:
        what = f"no configuration has more steps than the {mapping.skip} of 'skip'"
        raise InputError(what, where=str(path))
    for steps in long:
        warm = steps[mapping.skip :] or steps
        medians = _find_medians(warm, path)
        yield f"{path}:{steps[0][0]}", {"source": path.name, **warm[0][1], **medians}


def _read_tokens(stated: Value | None, path: Path) -> int | None:
    """Return the tokens of a PE in a step. InputError: no whole number above 0."""
    if stated is None:
        return None
    where = f"{path.parent / NAME}: {TOKENS}"
    count = parse_quantity(stated, "count", where, "8192")
    if count < 1:
        raise InputError(f"expected 1 or more, got {shorten(stated)}", where=where)
    return int(count)


def _find_medians(steps: list[Step], path: Path) -> Row:
    """Return the median of each measured column, of the memory the maximum, in SI units."""
    # The median: first steps compile and load, some wait for checkpoints.
    columns = Row()
    for name, unit in MEASURED.items():
        numbers: list[float] = []
        for number, row in steps:
            if name in row:
                where = f"{path}:{number}: {name}"
                numbers.append(parse_quantity(row[name], unit, where))
                # Trackers write -1 for what is missing; the median of all would hide it.
                if numbers[-1] < 0:
                    raise InputError(
                        f"expected at least 0, got {shorten(row[name])}",
                        where=where,
                        advice="leave the field empty where nothing was measured",
                    )
        if numbers:
            columns[name] = repr(max(numbers) if name == "memory" else median(numbers))
    return columns


def _read_table(path: Path, mapping: RunMapping) -> Iterator[tuple[int, Row]]:
    """Yield the rows of a table with a time; of MLflow's long form, those of that metric."""
    theirs = mapping.columns
    first_run: str | None = None
    for where, record in read_records(path, (), None):
        number = int(where.rpartition(":")[2])
        if {"key", "value"} <= record.keys():
            ours = next((name for name in SPEEDS if theirs.get(name) == record["key"]), None)
            if ours is None:
                continue
            # Steps of several runs would make one.
            run = record.get("run_id", "")
            first_run = run if first_run is None else first_run
            if run != first_run:
                what = f"expected one run, got {shorten(first_run)} and {shorten(run)}"
                raise InputError(what, where=where, advice="write a file for each run")
            yield number, {ours: _convert(record["value"], ours, mapping, where)}
            continue
        row = Row()
        named = {ours: _find_column(name, record, where) for ours, name in theirs.items()}
        # Columns that already have our names need no mapping.
        named |= {name: name for name in record if name in COLUMNS and name not in named}
        for ours, name in named.items():
            text = record[name]
            if text and text.lower() != "nan":
                row[ours] = _convert(text, ours, mapping, where)
        if row.keys() & {*SPEEDS}:  # rows of other metrics have none
            yield number, row


def _find_column(name: str, record: Row, where: str) -> str:
    """Return the column of a name: Weights & Biases writes `RUN - NAME`, MLflow `metrics.NAME`."""
    if name in record:
        return name
    ends = (f" - {name}", f"metrics.{name}", f"params.{name}")
    columns = [column for column in record if column.endswith(ends)]
    if len(columns) != 1:
        raise InputError(
            f"no column {shorten(name)}" if not columns else f"several columns of {shorten(name)}",
            where=where,
            advice="write a file for each run" if columns else suggest_name(name, record),
        )
    return columns[0]


def _convert(text: str, name: str, mapping: RunMapping, where: str) -> str:
    """Return a value in SI units, or with a unit of its own."""
    unit = mapping.units.get(name)
    if unit is None or has_unit(text):
        return text
    number = parse_quantity(f"{text} {unit}", MEASURED[name], f"{where}: {name}")
    return repr(number)


def _complete(row: Row, where: str, origin: str) -> Row:
    """Return the row with seconds and samples per replica, if need be from what gives them.

    origin: the file of what the run's own file does not state. _ContradictionError: they differ.
    """
    row = add_seconds(row, where)
    if "global_batch" in row and not {"replicas", "samples_per_replica"} & row.keys():
        raise InputError(
            "a global batch needs 'replicas' to become samples per replica",
            where=where,
            advice="write it, or 'samples_per_replica', into the mapping file",
        )
    logged = {"p": (row[STATED_PES], "")} if STATED_PES in row else {}
    if "replicas" in row and (of_all := row.get("global_batch") or row.get(STATED_BATCH)):
        batch = parse_quantity(of_all, "1", f"{where}: global_batch")
        replicas = parse_quantity(row["replicas"], "1", f"{where}: replicas")
        of_all = f"a global batch of {batch:g}"
        if replicas < 1 or batch % replicas:
            what = f"{of_all} is not divisible by {replicas:g} replicas"
            raise InputError(what, where=where)
        why = f" ({of_all} over {replicas:g} replicas)"
        logged["samples_per_replica"] = (f"{batch / replicas:.0f}", why)
    for name, (number, why) in logged.items():
        stated = row.setdefault(name, number)
        if parse_quantity(stated, "1", f"{where}: {name}") != float(number):
            raise _ContradictionError(
                f"{name}: the run has {number}{why}, {origin} states {format_text(stated)}",
                where=where,
                advice="are both of the same run?",
            )
    missing = [n for n in IDENTITY if n not in row and n != "system"]  # which --system gives
    if missing:
        raise InputError(
            f"{missing[0]} is not given",
            where=where,
            advice="write it under 'values', or its column under 'columns'",
        )
    return {name: n for name, n in row.items() if name not in OF_STEPS or name == "replicas"}
