"""Commands about data sets for machine learning."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from typer import Argument, Context, Option, Typer

from paradl.grids.reading.errors import format_count
from paradl.sweep.cli import options
from paradl.sweep.cli.commands import take_options
from paradl.sweep.cli.values import take_number, take_share
from paradl.sweep.cube.object_store import expect_parent
from paradl.sweep.engine.progress import report_state
from paradl.sweep.show.visible import tell

app = Typer()


@dataclass(frozen=True)
class SampleOptions:
    """The arguments of `sweep.samples.sample.sample`, except for gradients."""

    source: Annotated[str, Argument(help="A design space with ranges (YAML), or a cube.")]
    out: Annotated[Path, Argument(help="Folder to create for the data set.")]
    rows: Annotated[int, take_number("amount", "Number of rows, such as 1e6.")]
    seed: options.Seed = 0
    near_limits: Annotated[
        float, take_share("Share of points next to limits of memory or PE counts.")
    ] = 0.0
    near_crossovers: Annotated[
        float, take_share("Share of points where one strategy overtakes another.")
    ] = 0.0
    splits: Annotated[
        list[str] | None, Option("--split", help="Require this split: random, model, scale ...")
    ] = None
    leave_out: Annotated[
        list[str] | None, Option(help="Rows to leave out: undefined, infeasible, kinks.")
    ] = None
    force: options.Force = False
    workers: options.Workers = 0


@app.command(cls=take_options(SampleOptions, is_patient=False))
def sample(
    context: Context,
    gradient: Annotated[
        list[str] | None,
        Option(help="Another input to differentiate by, besides ranges and the batch."),
    ] = None,
    no_gradients: Annotated[
        bool, Option("--no-gradients", help="Leave out gradients and kink marks.")
    ] = False,
    quiet: options.Quiet = False,
) -> None:
    """Sample a design space for machine learning."""
    given: SampleOptions = context.obj
    expect_parent(str(given.out))
    from paradl.sweep.samples.sample import sample as draw

    done = 0
    with report_state("drawing rows", silent=quiet) as report:

        def advance(made: int) -> None:
            nonlocal done
            done += made
            report(f"{done:,} of {format_count(given.rows, 'row')}")

        # None: no gradients; an empty tuple: only those in ranges and the batch.
        gradients = None if no_gradients else gradient or ()
        listed = {"splits": given.splits or (), "leave_out": given.leave_out or ()}
        settings = {**vars(given), **listed, "gradients": gradients}
        source, out = settings.pop("source"), settings.pop("out")
        written = draw(source, out, **settings, advance=advance)
    if quiet:
        return
    for note in written.notes:
        tell(f"paradl: {note}")
    for name, why in written.missing.items():
        tell(f"paradl: no split {name!r}: {why}")
    if written.constants:
        tell(f"paradl: constant in all rows: {', '.join(written.constants)}")
    tell(f"done: {format_count(written.rows, 'row')} in {given.out}")
