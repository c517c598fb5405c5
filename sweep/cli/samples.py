"""Commands about data sets for machine learning."""

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
    out: Annotated[Path, typer.Argument(help="Folder to create for the data set.")],
    rows: Annotated[int, typer.Option(help="Number of rows.")],
    seed: Annotated[int, typer.Option(help="Random seed; the same seed gives the same rows.")] = 0,
    near_limits: Annotated[
        float, typer.Option(help="Share of points next to limits of memory or PE counts.")
    ] = 0.0,
    near_crossovers: Annotated[
        float, typer.Option(help="Share of points where one strategy overtakes another.")
    ] = 0.0,
    gradient: Annotated[
        list[str] | None,
        typer.Option(help="Another input to differentiate by, besides ranges and the batch."),
    ] = None,
    no_gradients: Annotated[
        bool, typer.Option("--no-gradients", help="Leave out gradients and kink marks.")
    ] = False,
    splits: Annotated[
        list[str] | None,
        typer.Option("--split", help="Require this split: random, model, scale ..."),
    ] = None,
    leave_out: Annotated[
        list[str] | None, typer.Option(help="Rows to leave out: undefined, infeasible, kinks.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing data set.")] = False,
    workers: Workers = 0,
    quiet: Quiet = False,
) -> None:
    """Sample a design space for machine learning: features, targets, gradients and splits."""
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
            # None: no gradients; an empty tuple: only those in ranges and the batch.
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
    """Check that no test row of a data set's splits is among its training rows."""
    from sweep.samples.leakage import check_leakage
    from sweep.show.rows import show

    rows = check_leakage(data)
    show(rows, form)
    leaks = [row["split"] for row in rows if row["leaks"]]
    if leaks:
        end(f"leaks: {', '.join(leaks)}", MISSED)
