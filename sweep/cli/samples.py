"""Commands of data sets for learners. As in `sweep.cli.main`, heavy imports are inside them."""

from pathlib import Path
from typing import Annotated

import typer

from sweep.cli.commands import MISSED, end, report_long
from sweep.cli.shared_options import Form
from sweep.engine.progress import report_state
from sweep.show.visible import tell

Source = Annotated[str, typer.Argument(help="A design space with ranges (YAML), or a cube.")]
Out = Annotated[Path, typer.Argument(help="The folder of the data set, which is made.")]


def sample(
    source: Source,
    out: Out,
    rows: Annotated[int, typer.Option(help="How many are drawn.")],
    seed: Annotated[int, typer.Option(help="Random seed; the same seed gives the same rows.")] = 0,
    near_limits: Annotated[
        float, typer.Option(help="Share of the points beside what memory or counts forbid.")
    ] = 0.0,
    near_crossovers: Annotated[
        float, typer.Option(help="Share of the points where one strategy overtakes another.")
    ] = 0.0,
    gradient: Annotated[
        list[str] | None,
        typer.Option(help="An input to have slopes in, beside ranges and the batch."),
    ] = None,
    no_gradients: Annotated[
        bool, typer.Option("--no-gradients", help="No slopes, and no marks of kinks.")
    ] = False,
    split: Annotated[
        list[str] | None, typer.Option(help="Require this split: random, model, scale ...")
    ] = None,
    leave_out: Annotated[
        list[str] | None, typer.Option(help="Rows to leave out: undefined, infeasible, kinks.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the data set there.")] = False,
    workers: Annotated[
        int, typer.Option(min=0, help="Local worker processes; 0 computes in this one.")
    ] = 0,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress, no notes.")] = False,
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
            gradients=None if no_gradients else gradient or (),
            splits=split or (),
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


@report_long
def leakage(
    data: Annotated[Path, typer.Argument(help="A data set that 'paradl sample' made.")],
    form: Form = "table",
) -> None:
    """Whether what a data set's splits test occurs in what they train on."""
    from sweep.samples.leakage import check_leakage
    from sweep.show.tables import show

    rows = check_leakage(data)
    show(rows, form)
    leaks = [row["split"] for row in rows if row["leaks"]]
    if leaks:
        end(f"leaks: {', '.join(leaks)}", MISSED)


SAMPLES = (sample, leakage)
