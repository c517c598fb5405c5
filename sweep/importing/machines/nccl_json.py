"""Results of nccl-tests and rccl-tests as JSON (`-J FILE`; `-Z json`), found by their names.

nccl-tests writes one object: the arguments, the ranks, and `results`, a list of
`{"size": 1024, "type": "float", "out_of_place": {"time": .., "alg_bw": .., "bus_bw": .., "nwrong":
..}, "in_place": {..}}`; rccl-tests a list of `{"name": "AllReduce", "ranks": 8, "size": 1024,
"inPlace": 0, "time": .., "algBw": .., "busBw": ..}`. Times are in us, bandwidths in GB/s: each
row's figures confirm that.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from paradl.grids.reading.errors import InputError
from paradl.grids.reading.textfile import parse_json, read_text
from paradl.sweep.importing.machines.measurements import MOST_ROWS, Measurement, find_collective
from paradl.sweep.importing.machines.nccl import LoggedRun, add_sample, finish

MOST_BYTES = 2**26
# Keys without case and separators.
BANDWIDTHS = ("algbw", "algobw"), ("busbw",)
HOSTS = ("host", "hostname", "node", "nodename")
DEVICES = ("devicename", "gpuname", "gpu", "device", "name")


def read_json(path: Path, pes: int | None) -> Iterator[Measurement]:
    """Return the runs of a file. pes: of runs that do not state theirs. InputError: a mistake."""
    document = parse_json(read_text(path, MOST_BYTES), path)
    # nccl-tests writes an object, rccl-tests a list.
    documents = document if isinstance(document, list) else [document]
    runs: dict[tuple[str, int], LoggedRun] = {}
    objects = [_fold(entry) for entry in documents if isinstance(entry, dict)]
    for entry in objects:
        results = entry.get("results", [entry])
        for row in results if isinstance(results, list) else []:
            _read_row(runs, entry, row, str(path))
        if sum(len(run.samples) for run in runs.values()) > MOST_ROWS:
            raise InputError(f"more than {MOST_ROWS:,} rows", where=str(path))
    for run in runs.values():
        if run.samples:
            yield finish(run, path, pes)


def _fold(entry: Any) -> Any:
    """Return the same objects with keys without case and separators."""
    if isinstance(entry, list):
        return [_fold(value) for value in entry]
    if not isinstance(entry, dict):
        return entry
    return {"".join(c for c in key.lower() if c.isalnum()): _fold(v) for key, v in entry.items()}


def _read_row(runs: dict[tuple[str, int], LoggedRun], entry: Any, row: Any, where: str) -> None:
    """Add the samples of a result: its own figures, or those out of place and in place."""
    if not isinstance(row, dict) or "size" not in row:
        return
    # nccl-tests states the collective and the ranks once, beside all results.
    row = entry | row if row is not entry else row
    run = _find_run(runs, row, where)
    run.redops.add(str(row.get("redop", "")))
    for figures in (row, row.get("outofplace"), row.get("inplace")):
        if not isinstance(figures, dict) or "time" not in figures:
            continue
        numbers = [figures["time"], *(_find(figures, names) for names in BANDWIDTHS)]
        try:
            size, time, algbw, busbw = (float(number) for number in (row["size"], *numbers))
        except (TypeError, ValueError):
            continue  # "N/A": not measured
        except OverflowError:  # an integer of more than 308 digits
            raise InputError("a row has an enormous number", where=where) from None
        add_sample(run, size, [time * 1e-6, algbw * 1e9, busbw * 1e9], where)
        wrong = figures.get("nwrong", figures.get("wrong", 0))
        run.wrong += str(wrong) not in ("0", "N/A", "None")


def _find_run(runs: dict[tuple[str, int], LoggedRun], row: Any, where: str) -> LoggedRun:
    """Return the run that a result belongs to, by its collective and ranks."""
    texts = [row.get("collective"), row.get("name"), row.get("test"), row.get("args")]
    command = next((t[0] if isinstance(t, list) and t else t for t in texts if t), "")
    collective = find_collective(str(command)) or ""
    config = row.get("config")
    places = [value for value in (row, config) if isinstance(value, dict)]
    ranks = next(
        (
            v
            for place in places
            for key in ("devices", "ranks")
            if isinstance(v := place.get(key), list)
        ),
        [],
    )
    stated = next((v for key in ("ranks", "nranks") if isinstance(v := row.get(key), int)), 0)
    key = collective, len(ranks) or stated
    if key not in runs:
        run = runs[key] = LoggedRun(where, collective, ended=True)
        objects = [rank for rank in ranks if isinstance(rank, dict)]
        run.hosts = [str(host) for rank in objects if (host := _find(rank, HOSTS)) is not None]
        names = [name for rank in objects if isinstance(name := _find(rank, DEVICES), str)]
        run.device = names[0] if names else ""
        run.pes, nodes = key[1], row.get("nodes")
        run.nodes = nodes if isinstance(nodes, int) else 0
    return runs[key]


def _find(entry: dict[str, Any], names: tuple[str, ...]) -> Any:
    """Return the value of the first of these keys that there is."""
    return next((entry[name] for name in names if name in entry), None)
