"""The command that exports a cube. As in `sweep.cli.main`, heavy imports are inside it."""

from pathlib import Path
from typing import Annotated

import typer

from sweep.cli.commands import INTERRUPTED, PatientCommand, end
from sweep.cli.shared_options import Selection, Store
from sweep.cli.subjects import tell_missing
from sweep.cli.values import parse_selection
from sweep.show.visible import tell

app = typer.Typer()


@app.command(cls=PatientCommand)
def export(
    store: Store,
    output: Annotated[
        Path, typer.Argument(metavar="OUTPUT", help="A file: .parquet, .csv or .nc (netCDF).")
    ],
    selection: Selection = None,
    undefined: Annotated[
        bool, typer.Option("--all", help="Rows of configurations that cannot exist, too.")
    ] = False,
    partition_by: Annotated[
        str,
        typer.Option(metavar="LABEL[,LABEL]", help="One folder per value, such as model,system."),
    ] = "",
    force: Annotated[bool, typer.Option("--force", help="Replace what stands at OUTPUT.")] = False,
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
    except KeyboardInterrupt:  # an export is moved to its place when it is complete
        end("interrupted; nothing was written", INTERRUPTED)
    rows = "" if output.suffix == ".nc" else f"{written.rows:,} rows of "
    files = "" if written.files == 1 else f" in {written.files:,} files"
    tell(
        f"paradl: {rows}{written.cells:,} cells in {output} "
        f"({format_quantity(written.bytes, 'B')}{files})"
    )
    tell_missing(done, blocks)
