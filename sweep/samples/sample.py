"""Sample rows over a design space, chunk by chunk, and write them as a data set."""

import json
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from paradl.grids.reading.errors import InputError, shorten
from paradl.grids.reading.units import parse_count
from paradl.sweep.cube.provenance import list_versions
from paradl.sweep.engine.resources import keep_programs
from paradl.sweep.exports.export import expect_arrow, write_texts
from paradl.sweep.exports.target import write_beside
from paradl.sweep.samples.columns import FACTS, FORMAT, Columns, list_columns
from paradl.sweep.samples.rows import Chunk, Request, list_chunks, make_rows
from paradl.sweep.samples.space import SampleSpace, Source, read_space
from paradl.sweep.samples.splits import Splits, choose_splits

# Rows that `leave_out` drops.
LEAVE_OUT: dict[str, Callable[[Columns], Any]] = {
    "undefined": lambda rows: ~rows["defined"],
    "infeasible": lambda rows: ~rows["feasible"],
    "kinks": lambda rows: rows["near_kink"],
}
MOST_ROWS = 2**30  # points of a Sobol sequence; a slice has at least one row
# Called with the number of new rows.
Advance = Callable[[int], None]


@dataclass(frozen=True)
class Sampled:
    """Summary of a written data set.

    constants: columns with one value. missing: reason by split that it lacks. notes: outputs of
    the store that it lacks.
    """

    path: Path
    rows: int
    drawn: int
    constants: tuple[str, ...]
    missing: dict[str, str]
    notes: tuple[str, ...] = ()


def sample(
    spec: Source,
    path: str | Path,
    rows: int | str,
    *,
    seed: int = 0,
    gradients: Sequence[str] | None = (),
    splits: Sequence[str] = (),
    leave_out: Sequence[str] = (),
    force: bool = False,
    workers: int = 0,
    advance: Advance = lambda rows: None,
) -> Sampled:
    """Draw rows over the space of a spec or a cube and write them into the folder `path`.

    It gets Parquet files, a data card (README.md) and facts (dataset.json): docs/surrogates.md.
    The same seed gives the same rows with any number of workers (0: this process). gradients:
    inputs with slopes, besides the ranges and the batch; None: no slopes. splits: required splits;
    by default all possible ones. leave_out: kinds of rows (`LEAVE_OUT`). force: replace a data set.

    InputError: a bad spec, no continuous axis, a split that leaves nothing to test, `path` exists.
    RunError: pyarrow is missing, the disk is full; then nothing was written.

    >>> import paradl
    >>> axes = {"model": "alexnet", "dataset": "imagenet-226", "system": "abci", "strategy": "data"}
    >>> space = {"axes": axes | {"pe": 64, "batch": {"loguniform": [8, 256]}}, "oracle": "paper"}
    >>> sampled = paradl.sample(space, "rows", 200)
    >>> sampled.rows, list(sampled.missing)
    (200, ['model', 'system', 'strategy', 'scale'])
    """
    rows = parse_count(rows, "rows", "amount")
    _check(rows, seed, leave_out)
    expect_arrow()
    space = read_space(spec, tuple(gradients or ()))
    request = Request(rows, seed, gradients is not None)
    chosen = choose_splits(space, seed, splits)
    chunks = _make_chunks(space, request, workers, advance)
    target = Path(path)
    with write_beside(target, force=force, is_ours=is_dataset) as folder:
        (folder / target.name).mkdir()
        kept, constants = _write(folder / target.name, chunks, space, request, chosen, leave_out)
    return Sampled(target, kept, rows, constants, dict(chosen.missing), space.notes)


def is_dataset(folder: Path) -> bool:
    """True if a folder holds a data set and nothing else."""
    files = {FACTS, "README.md", "data"}
    return (folder / FACTS).is_file() and {path.name for path in folder.iterdir()} <= files


def _check(rows: int, seed: int, leave_out: Sequence[str]) -> None:
    if not 1 <= rows <= MOST_ROWS:
        raise InputError(f"expected 1 to {MOST_ROWS:,} rows, got {shorten(rows)}", where="rows")
    if not isinstance(seed, int) or not 0 <= seed < 2**63:
        raise InputError(f"expected a seed of at least 0, got {shorten(seed)}", where="seed")
    for kind in leave_out:
        if kind not in LEAVE_OUT:
            raise InputError.unknown("kind of rows", kind, LEAVE_OUT, where="leave_out")


def _write(
    folder: Path,
    chunks: Iterator[Columns],
    space: SampleSpace,
    request: Request,
    splits: Splits,
    leave_out: Sequence[str],
) -> tuple[int, tuple[str, ...]]:
    """Write the files of a data set; return its rows, and the columns with one value."""
    from paradl.sweep.samples.write import write_card, write_rows  # late: pyarrow is optional

    inputs = space.inputs if request.gradients else ()
    columns = list_columns(inputs, splits.names, space.outputs)
    listed = [column.facts for column in columns]
    # Everything that determines the rows.
    facts: dict[str, object] = {
        "format": FORMAT,
        "name": space.grid.spec.name,
        "drawn": request.rows,
        "seed": request.seed,
        "inputs": list(inputs),
        "leave_out": list(leave_out),
        "splits": {
            name: {
                "tested": sorted(splits.tested[name]) if name in splits.tested else None,
                "trained_to": splits.most.get(name),
            }
            for name in splits.names
        },
        "missing_splits": dict(splits.missing),
        "notes": list(space.notes),
        "versions": list_versions(),
        "spec": space.describe(),
    }
    texts = write_texts({f"paradl_{key}": fact for key, fact in facts.items()})
    texts["paradl_columns"] = json.dumps(listed)
    kept = (_leave_rows_out(rows, leave_out) for rows in chunks)
    divided = (rows | splits.divide(rows) for rows in kept)
    written = write_rows(folder / "data", divided, columns, texts, splits.names)
    if not written.rows:
        raise InputError("no rows are left", where="leave_out", advice="leave fewer rows out")
    constants = written.list_constants(columns)
    facts |= {"rows": written.rows, "constants": constants}
    facts |= {"columns": listed, "sides": written.sides, "ranges": written.ends}
    (folder / FACTS).write_text(json.dumps(facts, indent=1))
    write_card(folder / "README.md", facts, columns)
    return written.rows, tuple(constants)


def _leave_rows_out(rows: Columns, kinds: Sequence[str]) -> Columns:
    """Drop rows of these kinds."""
    if not kinds:
        return rows
    dropped = np.any([LEAVE_OUT[kind](rows) for kind in kinds], axis=0)
    return {name: column[~dropped] for name, column in rows.items()}


def _make_chunks(
    space: SampleSpace, request: Request, workers: int, advance: Advance
) -> Iterator[Columns]:
    """Yield the rows of each chunk, in order."""
    chunks = list_chunks(space, request.rows)
    if workers:
        parts = _make_in_workers(space, request, chunks, workers)
    else:
        keep_programs()
        parts = map(partial(make_rows, space, request), chunks)
    for rows in parts:
        advance(len(rows["slice"]))
        yield rows


def _make_in_workers(
    space: SampleSpace, request: Request, chunks: list[Chunk], workers: int
) -> Iterator[Columns]:
    """Yield the same from worker processes, at most two chunks per worker ahead of the writer."""
    running = deque[Future[Columns]]()
    # Spawned: a fork of a process that has run JAX may hang.
    context = get_context("spawn")
    with ProcessPoolExecutor(workers, context, _Worker.start, (space, request)) as pool:
        for chunk in chunks:
            if len(running) == 2 * workers:
                yield running.popleft().result()
            running.append(pool.submit(_Worker.make, chunk))
        for future in running:
            yield future.result()


class _Worker:
    """Space and request of a worker process, which thus infers the networks' layers only once."""

    space: SampleSpace
    request: Request

    @classmethod
    def start(cls, space: SampleSpace, request: Request) -> None:
        keep_programs()
        cls.space, cls.request = space, request

    @classmethod
    def make(cls, chunk: Chunk) -> Columns:
        return make_rows(cls.space, cls.request, chunk)
