"""Sample: rows over a design space, made chunk by chunk and written as a data set."""

import json
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from grids.reading.errors import InputError, shorten, suggest_name
from sweep.cube.provenance import list_versions
from sweep.engine.compile_cache import keep_programs
from sweep.exports.export import expect_arrow
from sweep.exports.target import write_beside
from sweep.samples.card import write_card
from sweep.samples.columns import FACTS, FORMAT, Column, list_columns, name_split
from sweep.samples.edges import Shares
from sweep.samples.rows import Chunk, Columns, Request, list_chunks, make_rows
from sweep.samples.space import Source, Space, read_space
from sweep.samples.splits import Splits, choose_splits

# Rows that may be left out, and which those are.
LEAVE_OUT: dict[str, Callable[[Columns], Any]] = {
    "undefined": lambda rows: ~rows["defined"],
    "infeasible": lambda rows: ~rows["feasible"],
    "kinks": lambda rows: rows["near_kink"],
}
MOST_ROWS = 10**10
Advance = Callable[[int], None]


@dataclass(frozen=True)
class Sampled:
    """The data set that was written.

    constants: columns of one value. missing: splits that it lacks, and why. notes: outputs of a
    store that it lacks.
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
    rows: int,
    *,
    seed: int = 0,
    near_limits: float = 0.0,
    near_crossovers: float = 0.0,
    gradients: Sequence[str] | None = (),
    splits: Sequence[str] = (),
    leave_out: Sequence[str] = (),
    force: bool = False,
    workers: int = 0,
    advance: Advance = lambda rows: None,
) -> Sampled:
    """Draw rows over a spec's space, or a cube's, into the folder `path`; what was written.

    Parquet files, a data card (README.md) and its facts (dataset.json): docs/surrogates.md. The
    same rows for the same seed, whatever the workers (0: this process). near_limits,
    near_crossovers: shares of the slices that are moved there. gradients: inputs that there are
    slopes in beside those of ranges and the batch; None: no slopes. splits: those that have to be,
    all that can by default. leave_out: kinds of rows (`LEAVE_OUT`). force: replace a data set.

    InputError: a bad spec, no continuous axis, a split that leaves nothing to test, a folder that
    is there. RunError: pyarrow is missing, the disk is full; then nothing was written.
    """
    shares = Shares(near_limits, near_crossovers)
    _check(rows, seed, leave_out)
    expect_arrow()
    space = read_space(spec, tuple(gradients or ()))
    request = Request(rows, seed, shares, gradients is not None)
    chosen = choose_splits(space, seed, splits)
    target = Path(path)
    with write_beside(target, force=force, is_ours=is_dataset) as folder:
        made = folder / target.name
        made.mkdir()
        return _write(made, target, space, request, chosen, leave_out, workers, advance)


def is_dataset(folder: Path) -> bool:
    """Whether a folder holds a data set and nothing else."""
    files = {FACTS, "README.md", "data"}
    return (folder / FACTS).is_file() and {path.name for path in folder.iterdir()} <= files


def _check(rows: int, seed: int, leave_out: Sequence[str]) -> None:
    """InputError: what no sample can have."""
    if not isinstance(rows, int) or not 1 <= rows <= MOST_ROWS:
        raise InputError(f"expected 1 to {MOST_ROWS:,} rows, got {shorten(rows)}", where="rows")
    if not isinstance(seed, int) or not 0 <= seed < 2**63:
        raise InputError(f"expected a seed of at least 0, got {shorten(seed)}", where="seed")
    for kind in leave_out:
        if kind not in LEAVE_OUT:
            advice = suggest_name(kind, LEAVE_OUT)
            raise InputError(f"unknown rows {shorten(kind)}", where="leave_out", advice=advice)


def _write(
    folder: Path,
    target: Path,
    space: Space,
    request: Request,
    splits: Splits,
    leave_out: Sequence[str],
    workers: int,
    advance: Advance,
) -> Sampled:
    """Write the data set into a folder that is then put in its place."""
    from sweep.samples.write import write_rows  # late: pyarrow need not be there

    inputs = space.inputs if request.gradients else ()
    columns = list_columns(inputs, splits.names, space.outputs)
    facts = describe(space, request, splits, leave_out)
    chunks = list_chunks(space, request.rows)

    def make_chunks() -> Iterator[Columns]:
        for made in _make_all(space, chunks, request, workers):
            advance(len(made["slice"]))
            rows = leave_rows_out(made, leave_out)
            sides = {name_split(name): side for name, side in splits.divide(rows).items()}
            yield rows | sides

    texts = _write_texts(facts, columns)
    files = write_rows(folder / "data", make_chunks(), columns, texts, splits.names)
    constants = tuple(files.list_constants(columns))
    if not files.rows:
        raise InputError("no row is left", where="leave_out", advice="leave fewer rows out")
    facts |= {"rows": files.rows, "constants": constants, "columns": _list_facts(columns)}
    facts |= {"sides": files.sides, "ranges": files.ends}
    (folder / FACTS).write_text(json.dumps(facts, indent=1))
    write_card(folder / "README.md", facts, columns)
    return Sampled(target, files.rows, request.rows, constants, dict(splits.missing), space.notes)


def describe(
    space: Space, request: Request, splits: Splits, leave_out: Sequence[str]
) -> dict[str, Any]:
    """A data set as plain data: everything that its rows follow from."""
    return {
        "format": FORMAT,
        "name": space.grid.spec.name,
        "drawn": request.rows,
        "seed": request.seed,
        "near_limits": request.shares.limits,
        "near_crossovers": request.shares.crossovers,
        "inputs": list(space.inputs if request.gradients else ()),
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


def leave_rows_out(rows: Columns, kinds: Sequence[str]) -> Columns:
    """The rows but for those kinds."""
    if not kinds:
        return rows
    dropped = np.any([LEAVE_OUT[kind](rows) for kind in kinds], axis=0)
    return {name: column[~dropped] for name, column in rows.items()}


def _write_texts(facts: dict[str, Any], columns: Sequence[Column]) -> dict[str, str]:
    """The facts as texts, as Parquet's metadata have them."""
    texts = {
        key: fact if isinstance(fact, str) else json.dumps(fact) for key, fact in facts.items()
    }
    return {f"paradl_{key}": text for key, text in texts.items()} | {
        "paradl_columns": json.dumps(_list_facts(columns))
    }


def _list_facts(columns: Sequence[Column]) -> list[dict[str, str]]:
    return [
        {"name": column.name, "role": column.role, "units": column.units, "meaning": column.meaning}
        for column in columns
    ]


def _make_all(
    space: Space, chunks: list[Chunk], request: Request, workers: int
) -> Iterator[Columns]:
    """The rows of each chunk, in their order."""
    if not workers:
        keep_programs()
        yield from (make_rows(space, chunk, request) for chunk in chunks)
        return
    # Spawned: a fork of a process that has run JAX may hang.
    context, given = get_context("spawn"), (space, request)
    with ProcessPoolExecutor(workers, context, _Worker.start, given) as pool:
        waiting, running = iter(chunks), list[Future[Columns]]()
        for chunk in islice(waiting, 2 * workers):
            running.append(pool.submit(_Worker.make, chunk))
        while running:
            made = running.pop(0).result()
            for chunk in islice(waiting, 1):
                running.append(pool.submit(_Worker.make, chunk))
            yield made


class _Worker:
    """The space and request of a worker process, which so infers the networks' layers once."""

    space: Space
    request: Request

    @classmethod
    def start(cls, space: Space, request: Request) -> None:
        keep_programs()
        cls.space, cls.request = space, request

    @classmethod
    def make(cls, chunk: Chunk) -> Columns:
        return make_rows(cls.space, chunk, cls.request)
