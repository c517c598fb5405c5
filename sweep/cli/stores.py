"""Commands that write and read stores: sweep, status, diff, export."""

import signal
from functools import partial
from math import inf, prod
from pathlib import Path
from shlex import quote
from typing import Annotated

from typer import Argument, Option, Typer

from paradl.grids.reading.errors import InputError, format_count
from paradl.grids.reading.units import format_quantity
from paradl.sweep.cli import options
from paradl.sweep.cli.commands import FAILED, INTERRUPTED, MISSED, PatientCommand, end
from paradl.sweep.cli.spaces import describe_missing
from paradl.sweep.cli.values import take_share
from paradl.sweep.cube.object_store import expect_parent
from paradl.sweep.engine.progress import follow, silent
from paradl.sweep.text.visible import escape_lines, tell

app = Typer()


@app.command()
def sweep(
    spec: Annotated[Path, Argument(help="The design space: a YAML file.")],
    store: options.Store,
    dry_run: Annotated[bool, Option("--dry-run", help="Print the plan and stop.")] = False,
    overwrite: Annotated[bool, Option("--overwrite", help="Replace the store.")] = False,
    extend: Annotated[bool, Option("--extend", help="Add the spec's new values to axes.")] = False,
    reduce_only: Annotated[
        bool, Option("--reduce-only", help="Keep only the summaries that limits and best read.")
    ] = False,
    workers: options.Workers = 0,
    scheduler: Annotated[str | None, Option(help="Address of a running Dask scheduler.")] = None,
    quiet: options.Quiet = False,
) -> None:
    """Sweep a design space into a Zarr store, or resume a sweep."""
    from paradl.grids.grid import read_grid

    endings = (".yaml", ".yml")
    # Both are paths: without this the spec would be called no cube, and the cube no spec.
    if store.endswith(endings) and spec.suffix not in endings:
        raise InputError(
            "the spec comes first, then the store",
            where=str(spec),
            advice=f"swap them: paradl sweep {quote(store)} {quote(str(spec))}",
        )
    expect_parent(store)
    grid = read_grid(spec).drop_outputs() if reduce_only else read_grid(spec)

    # These take a second to import; a mistake in the spec is reported before.
    from paradl.sweep.engine.run import Where
    from paradl.sweep.engine.run import sweep as run
    from paradl.sweep.text.preview import announce, preview_sweep

    where = Where(workers, scheduler)
    # The number of a scheduler's workers is unknown: the plan is for one.
    processes = workers or int(scheduler is not None)
    if dry_run:
        print(escape_lines(preview_sweep(store, grid, processes, overwrite, extend)))
        return
    announcement = silent if quiet else announce(grid, processes, follow)
    try:
        run(grid, store, overwrite, where, announcement, extend)
    except KeyboardInterrupt:
        # Blocks at work are finished as the process ends: an impatient user changes nothing.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        end("interrupted; finished blocks are kept: rerun the same command to resume", INTERRUPTED)
    if not quiet:
        tell(f"done: {format_count(prod(grid.shape), 'cell')} in {store}")


@app.command()
def status(
    store: options.Store,
    verify: Annotated[bool, Option("--verify", help="Read all blocks; list damaged ones.")] = False,
    form: options.Form = "table",
) -> None:
    """Show how much of a cube is done."""
    from paradl.sweep.questions.status import read_status, verify_status
    from paradl.sweep.text.cubes import advise_on_damage, show_verified
    from paradl.sweep.text.tables import show_one

    if not verify:
        show_one(read_status(store), form)
        return
    verdict = verify_status(store, partial(follow, what="verify"))
    show_verified(verdict, form)
    if verdict["damaged"]:
        end(advise_on_damage(verdict), FAILED, "damaged-store")


@app.command(cls=PatientCommand)
def diff(
    first: options.Store,
    second: options.Store,
    selection: options.Selection = None,
    tolerance: Annotated[
        float, take_share("Relative difference up to which answers are equal.", least=0, most=inf)
    ] = 0.0,
    require_same: Annotated[
        bool, Option("--require-same", help="Exit with 3 unless cells and answers are the same.")
    ] = False,
    form: options.Form = "table",
) -> None:
    """Compare two cubes: inputs, answers and winners that differ."""
    from paradl.sweep.questions.diff import diff as ask
    from paradl.sweep.text.cubes import show_difference

    difference = ask(first, second, options.parse_selection(selection), tolerance=tolerance)
    show_difference(difference.to_dict(), form)
    for note in difference["notes"]:
        tell(f"paradl: {note}")
    if require_same and not difference["same"]:
        end("the cubes differ, and --require-same asks for the same", MISSED)


@app.command(cls=PatientCommand)
def export(
    store: options.Store,
    output: Annotated[Path, Argument(metavar="OUTPUT", help="A .parquet, .csv or .nc (netCDF).")],
    selection: options.Selection = None,
    undefined: Annotated[bool, Option("--all", help="Include what cannot exist.")] = False,
    partition_by: Annotated[
        str, Option(metavar="LABEL[,LABEL]", help="One folder per value, such as model,system.")
    ] = "",
    force: options.Force = False,
) -> None:
    """Export a cube's cells as a table or netCDF."""
    from paradl.sweep.cells.source import open_source
    from paradl.sweep.exports.export import export as write

    chosen = options.parse_selection(selection)
    labels = [label.strip() for label in partition_by.split(",") if label.strip()]
    try:
        # Rows of missing blocks are missing in the export, too: the count is of the same moment.
        reader = open_source(store)
        done, blocks = reader.count_blocks()
        written = write(
            reader,
            output,
            chosen,
            undefined=undefined,
            partition_by=labels,
            force=force,
        )
    except KeyboardInterrupt:  # OUTPUT appears only when it is complete
        end("interrupted; nothing was written", INTERRUPTED)
    rows = "" if output.suffix == ".nc" else f"{format_count(written.rows, 'row')} of "
    files = "" if written.files == 1 else f" in {format_count(written.files, 'file')}"
    tell(
        f"paradl: {rows}{format_count(written.cells, 'cell')} in {output} "
        f"({format_quantity(written.bytes, 'B')}{files})"
    )
    if missing := describe_missing(done, blocks):
        tell(f"paradl: {missing}")
