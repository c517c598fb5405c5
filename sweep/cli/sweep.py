"""The command `sweep`."""

import sys
from math import prod
from pathlib import Path
from shlex import quote
from typing import Annotated

import typer

from grids.reading.errors import InputError
from sweep.cli.commands import INTERRUPTED, end
from sweep.cli.shared_options import Store, Workers
from sweep.engine.progress import bar, lines, silent
from sweep.show.visible import escape_lines, tell

app = typer.Typer()


@app.command()
def sweep(
    spec: Annotated[Path, typer.Argument(help="The design space: a YAML file.")],
    store: Store,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the plan and stop.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the store.")] = False,
    extend: Annotated[
        bool, typer.Option("--extend", help="Add the spec's new values to the store's axes.")
    ] = False,
    reduce_only: Annotated[
        bool,
        typer.Option("--reduce-only", help="Keep only the summaries that limits and best read."),
    ] = False,
    workers: Workers = 0,
    scheduler: Annotated[
        str | None, typer.Option(help="Address of a running Dask scheduler.")
    ] = None,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="No plan, no progress, no notes.")
    ] = False,
) -> None:
    """Sweep a design space into a Zarr store, or resume an interrupted sweep."""
    from grids.grid import read_grid

    _refuse_swapped(spec, store)
    grid = read_grid(spec).drop_outputs() if reduce_only else read_grid(spec)

    # These take a second to import; a mistake in the spec is reported before.
    from sweep.cli.preview import announce, preview_sweep
    from sweep.engine.interrupts import hear_interrupts
    from sweep.engine.run import Where
    from sweep.engine.run import sweep as run

    # The number of a scheduler's workers is unknown: the plan is for one.
    processes = workers or int(scheduler is not None)
    if dry_run:
        print(escape_lines(preview_sweep(store, grid, processes, overwrite, extend)))
        return
    progress_bar = bar if sys.stderr.isatty() else lines
    announcement = silent if quiet else announce(grid, processes, progress_bar)
    try:
        with hear_interrupts(announcement) as progress:
            run(grid, store, overwrite, Where(workers, scheduler), progress, extend)
    except KeyboardInterrupt:
        end("interrupted; finished blocks are kept: rerun the same command to resume", INTERRUPTED)
    if not quiet:
        tell(f"done: {prod(grid.shape):,} cells in {store}")


def _refuse_swapped(spec: Path, store: str) -> None:
    endings = (".yaml", ".yml")
    if store.endswith(endings) and spec.suffix not in endings:
        raise InputError(
            "the spec comes first, then the store",
            where=str(spec),
            advice=f"swap them: paradl sweep {quote(store)} {quote(str(spec))}",
        )
