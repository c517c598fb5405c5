"""Sample rows over a design space, chunk by chunk, and write them as a data set."""

import json
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache, partial
from math import ceil
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from paradl.grids.reading.errors import InputError, shorten
from paradl.grids.reading.units import parse_count
from paradl.kernels.blocks.labels import label_points
from paradl.kernels.compiled import fetch
from paradl.kernels.names.stored import EPOCH
from paradl.sweep.cube.provenance import list_versions
from paradl.sweep.cube.variables import find_allowed, join_limits
from paradl.sweep.engine.resources import cores, keep_programs
from paradl.sweep.exports.export import expect_arrow, write_texts
from paradl.sweep.exports.target import write_beside
from paradl.sweep.samples.columns import FACTS, FORMAT, Columns, list_columns, name_slope
from paradl.sweep.samples.draw import Draw, draw_slices, make_tables
from paradl.sweep.samples.features import describe_problem, describe_slices
from paradl.sweep.samples.space import Problem, SampleSpace, Source, read_space
from paradl.sweep.samples.splits import Splits, choose_splits, name_label

# Chunks of a problem share its tables.
_keep_tables = lru_cache(maxsize=2)(make_tables)
# Slices evaluated at once: larger programs are no faster.
CHUNK = 4096


@dataclass(frozen=True)
class Chunk:
    """Slices `first` to `first + size` of a problem's sequence.

    number: of its first slice in the data set. rows: to keep; those beyond are evaluated in vain.
    """

    problem: Problem
    first: int
    size: int
    number: int
    rows: int


def list_chunks(space: SampleSpace, rows: int) -> list[Chunk]:
    """Divide rows into chunks; problems have equal numbers of slices, give or take one."""
    strategies, problems = len(space.grid.strategies), space.problems
    slices = ceil(rows / strategies)
    # Chunks of one size share a compiled program.
    size = min(CHUNK, 1 << (ceil(slices / len(problems)) - 1).bit_length())
    chunks, number = [], 0
    for position, problem in enumerate(problems):
        share = slices // len(problems) + (position < slices % len(problems))
        for first in range(0, share, size):
            # In the very last slice some strategies may exceed the requested number of rows.
            kept = min(size * strategies, (share - first) * strategies, rows - number * strategies)
            chunks.append(Chunk(problem, first, size, number, kept))
            number += min(size, share - first)
    return chunks


def make_rows(space: SampleSpace, seed: int, chunk: Chunk) -> Columns:
    """Make all columns of a chunk's rows, ordered by slice, then by strategy."""
    problem, count = chunk.problem, chunk.rows
    tables = _keep_tables(space, problem, seed)
    draw = draw_slices(space, tables, problem, seed, chunk.first, chunk.size)
    strategies = len(space.grid.strategies)
    # In threads, so that their programs compile at the same time.
    with ThreadPoolExecutor(cores(), "paradl-labels") as pool:
        parts = list(pool.map(partial(_label_strategy, space, draw), range(strategies)))
    columns = {name: np.stack([part[name] for part in parts], 1) for name in parts[0]}
    # More than half of the columns: made once per problem, not under every strategy.
    labels = zip(space.grid.labels.items(), problem, strict=False)
    constant: dict[str, str | float] = {
        **{name_label(dim): names[index] for (dim, names), index in labels},
        **describe_problem(space.grid, problem),
    }
    return {
        "slice": chunk.number + np.arange(count) // strategies,
        **{name: column.ravel()[:count] for name, column in columns.items()},
        **{name: np.full(count, value) for name, value in constant.items()},
    }


def _label_strategy(space: SampleSpace, draw: Draw, strategy: int) -> Columns:
    """Make the columns of all slices under one strategy that differ within the problem."""
    labels = label_points(
        draw.tables.points[strategy],
        draw.rows,
        dict(draw.values),
        parameters=space.inputs,
        outputs=space.outputs,
        marked=bool(space.inputs),
    )
    fetched, slopes, kinks = fetch(labels)
    answers = {name: np.asarray(answer) for name, answer in fetched.items()}
    flags = answers.pop("limit")
    texts, indices = join_limits(flags)
    return {
        "strategy": np.full(len(draw), space.grid.labels["strategy"][strategy]),
        **describe_slices(space.grid, strategy, draw),
        "feasible": find_allowed(flags),
        "defined": np.isfinite(answers[EPOCH]) & np.isfinite(answers["memory"]),
        "limit_names": np.array(texts)[indices],
        **{name: answer.astype(np.float32) for name, answer in answers.items()},
        **{
            name_slope(target, parameter): np.asarray(slope, np.float32)
            for target, by_parameter in slopes.items()
            for parameter, slope in by_parameter.items()
        },
        "near_kink": np.asarray(kinks),
    }


# Rows that `leave_out` drops, by the value of a flag.
LEAVE_OUT = {
    "undefined": ("defined", False),
    "infeasible": ("feasible", False),
    "kinks": ("near_kink", True),
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
    if not 1 <= rows <= MOST_ROWS:
        raise InputError(f"expected 1 to {MOST_ROWS:,} rows, got {shorten(rows)}", where="rows")
    if not isinstance(seed, int) or not 0 <= seed < 2**63:
        raise InputError(f"expected a seed of at least 0, got {shorten(seed)}", where="seed")
    for kind in leave_out:
        if kind not in LEAVE_OUT:
            raise InputError.unknown("kind of rows", kind, LEAVE_OUT, where="leave_out")
    expect_arrow()
    space = read_space(spec, gradients)
    chosen = choose_splits(space, seed, splits)
    chunks = _make_chunks(space, rows, seed, workers, advance)
    target = Path(path)
    with write_beside(target, force=force, is_ours=is_dataset) as folder:
        (folder / target.name).mkdir()
        kept, constants = _write(folder / target.name, chunks, space, rows, chosen, leave_out)
    return Sampled(target, kept, rows, constants, dict(chosen.missing), space.notes)


def is_dataset(folder: Path) -> bool:
    """True if a folder holds a data set and nothing else."""
    files = {FACTS, "README.md", "data"}
    return (folder / FACTS).is_file() and {path.name for path in folder.iterdir()} <= files


def _write(
    folder: Path,
    chunks: Iterator[Columns],
    space: SampleSpace,
    drawn: int,
    splits: Splits,
    leave_out: Sequence[str],
) -> tuple[int, tuple[str, ...]]:
    """Write the files of a data set; return its rows, and the columns with one value."""
    from paradl.sweep.samples.write import write_card, write_rows  # late: pyarrow is optional

    columns = list_columns(space.inputs, splits.names, space.outputs)
    listed = [column.facts for column in columns]
    # Everything that determines the rows.
    facts: dict[str, object] = {
        "format": FORMAT,
        "name": space.grid.spec.name,
        "drawn": drawn,
        "seed": splits.seed,
        "inputs": list(space.inputs),
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
    for flag, dropped in map(LEAVE_OUT.__getitem__, kinds):
        kept = rows[flag] != dropped
        rows = {name: column[kept] for name, column in rows.items()}
    return rows


def _make_chunks(
    space: SampleSpace, rows: int, seed: int, workers: int, advance: Advance
) -> Iterator[Columns]:
    """Yield the rows of each chunk, in order."""
    chunks = list_chunks(space, rows)
    if workers:
        parts = _make_in_workers(space, seed, chunks, workers)
    else:
        keep_programs()
        parts = map(partial(make_rows, space, seed), chunks)
    for part in parts:
        advance(len(part["slice"]))
        yield part


def _make_in_workers(
    space: SampleSpace, seed: int, chunks: list[Chunk], workers: int
) -> Iterator[Columns]:
    """Yield the same from worker processes, at most two chunks per worker ahead of the writer."""
    running = deque[Future[Columns]]()
    # Spawned: a fork of a process that has run JAX may hang.
    context = get_context("spawn")
    with ProcessPoolExecutor(workers, context, _Worker.start, (space, seed)) as pool:
        for chunk in chunks:
            if len(running) == 2 * workers:
                yield running.popleft().result()
            running.append(pool.submit(_Worker.make, chunk))
        for future in running:
            yield future.result()


class _Worker:
    """Space and seed of a worker process, which thus infers the networks' layers only once."""

    space: SampleSpace
    seed: int

    @classmethod
    def start(cls, space: SampleSpace, seed: int) -> None:
        keep_programs()
        cls.space, cls.seed = space, seed

    @classmethod
    def make(cls, chunk: Chunk) -> Columns:
        return make_rows(cls.space, cls.seed, chunk)
