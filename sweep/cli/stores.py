"""Commands about stores: status, differences, export."""

import sys
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from sweep.cli.commands import FAILED, INTERRUPTED, MISSED, PatientCommand, end
from sweep.cli.shared_options import Form, Selection, Store
from sweep.cli.subjects import tell_missing
from sweep.cli.values import parse_selection
from sweep.engine.progress import bar, lines
from sweep.show.visible import tell

app = typer.Typer()


@app.command()
def status(
    store: Store,
    verify: Annotated[
        bool, typer.Option("--verify", help="Read all finished blocks and list damaged files.")
    ] = False,
    form: Form = "table",
) -> None:
    """Show how much of a cube is done."""
    from sweep.questions.status import read_status, verify_status
    from sweep.show.cubes import advise_on_damage, show_verified
    from sweep.show.rows import show_one

    if not verify:
        show_one(read_status(store), form)
        return
    # In a pipe, a bar would print a line per block.
    shown = partial(bar if sys.stderr.isatty() else lines, what="verify")
    verdict = verify_status(store, shown)
    show_verified(verdict, form)
    if verdict["damaged"]:
        end(advise_on_damage(verdict), FAILED, "damaged-store")


@app.command(cls=PatientCommand)
def diff(
    first: Store,
    second: Store,
    selection: Selection = None,
    tolerance: Annotated[
        float, typer.Option(min=0, help="Relative difference up to which answers count as equal.")
    ] = 0.0,
    require_same: Annotated[
        bool,
        typer.Option("--require-same", help="Exit with 3 unless cells and answers are the same."),
    ] = False,
    form: Form = "table",
) -> None:
    """Compare two cubes: which inputs, answers and winners differ, and by how much."""
    from sweep.engine.verification import tell_damage
    from sweep.questions.diff import diff as ask
    from sweep.show.cubes import show_difference

    with tell_damage(first), tell_damage(second):
        difference = ask(first, second, parse_selection(selection), tolerance=tolerance)
    show_difference(difference, form)
    for note in difference["notes"]:
        tell(f"paradl: {note}")
    if require_same and not difference["same"]:
        end("the cubes differ, and --require-same asks for the same", MISSED)


@app.command(cls=PatientCommand)
def export(
    store: Store,
    output: Annotated[
        Path, typer.Argument(metavar="OUTPUT", help="File to write: .parquet, .csv, .nc (netCDF).")
    ],
    selection: Selection = None,
    undefined: Annotated[
        bool, typer.Option("--all", help="Include configurations that cannot exist.")
    ] = False,
    partition_by: Annotated[
        str,
        typer.Option(metavar="LABEL[,LABEL]", help="One folder per value, such as model,system."),
    ] = "",
    force: Annotated[bool, typer.Option("--force", help="Replace an existing OUTPUT.")] = False,
) -> None:
    """Export a cube's cells as a table or netCDF, for readers without paradl."""
    from grids.reading.units import format_quantity
    from sweep.engine.verification import tell_damage
    from sweep.exports.export import export as write
    from sweep.questions.status import count_blocks

    labels = [label.strip() for label in partition_by.split(",") if label.strip()]
    try:
        with tell_damage(store):
            done, blocks = count_blocks(store)
            written = write(
                store,
                output,
                parse_selection(selection),
                undefined=undefined,
                partition_by=labels,
                force=force,
            )
    except KeyboardInterrupt:  # OUTPUT appears only when it is complete
        end("interrupted; nothing was written", INTERRUPTED)
    rows = "" if output.suffix == ".nc" else f"{written.rows:,} rows of "
    files = "" if written.files == 1 else f" in {written.files:,} files"
    tell(
        f"paradl: {rows}{written.cells:,} cells in {output} "
        f"({format_quantity(written.bytes, 'B')}{files})"
    )
    tell_missing(done, blocks)
