"""Commands of data sets for learners. As in `sweep.cli.main`, heavy imports are inside them."""

from pathlib import Path
from typing import Annotated

import typer

from sweep.cli.commands import MISSED, PatientCommand, end
from sweep.cli.shared_options import Form, Quiet, SampleData, Workers
from sweep.engine.progress import report_state
from sweep.show.visible import tell

app = typer.Typer()


@app.command()
def sample(
    source: Annotated[str, typer.Argument(help="A design space with ranges (YAML), or a cube.")],
    out: Annotated[Path, typer.Argument(help="The folder of the data set, which is made.")],
    rows: Annotated[int, typer.Option(help="Number of rows.")],
    seed: Annotated[int, typer.Option(help="Random seed; the same seed gives the same rows.")] = 0,
    near_limits: Annotated[
        float, typer.Option(help="Share of the points next to limits of memory or counts.")
    ] = 0.0,
    near_crossovers: Annotated[
        float, typer.Option(help="Share of the points where one strategy overtakes another.")
    ] = 0.0,
    gradient: Annotated[
        list[str] | None,
        typer.Option(help="A further input to differentiate by, besides ranges and the batch."),
    ] = None,
    no_gradients: Annotated[
        bool, typer.Option("--no-gradients", help="No slopes, and no marks of kinks.")
    ] = False,
    splits: Annotated[
        list[str] | None,
        typer.Option("--split", help="Require this split: random, model, scale ..."),
    ] = None,
    leave_out: Annotated[
        list[str] | None, typer.Option(help="Rows to leave out: undefined, infeasible, kinks.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the data set there.")] = False,
    workers: Workers = 0,
    quiet: Quiet = False,
) -> None:
    """Draw rows over a design space: features, targets, gradients and splits, for learners."""
    from sweep.samples.sample import sample as draw

    done = 0
    with report_state("drawing rows", silent=quiet) as report:

        def advance(made: int) -> None:
            nonlocal done
            done += made
            report(f"{done:,} of {rows:,} rows")

        written = draw(
            source,
            out,
            rows,
            seed=seed,
            near_limits=near_limits,
            near_crossovers=near_crossovers,
            # None: no slopes; an empty tuple: slopes in ranges and the batch alone.
            gradients=None if no_gradients else gradient or (),
            splits=splits or (),
            leave_out=leave_out or (),
            force=force,
            workers=workers,
            advance=advance,
        )
    if quiet:
        return
    for note in written.notes:
        tell(f"paradl: {note}")
    for name, why in written.missing.items():
        tell(f"paradl: no split {name!r}: {why}")
    if written.constants:
        tell(f"paradl: constant in all rows: {', '.join(written.constants)}")
    tell(f"done: {written.rows:,} rows in {out}")


@app.command(cls=PatientCommand)
def leakage(
    data: SampleData,
    form: Form = "table",
) -> None:
    """Check that no test rows of a data set's splits occur in their training rows."""
    from sweep.samples.leakage import check_leakage
    from sweep.show.rows import show

    rows = check_leakage(data)
    show(rows, form)
    leaks = [row["split"] for row in rows if row["leaks"]]
    if leaks:
        end(f"leaks: {', '.join(leaks)}", MISSED)
