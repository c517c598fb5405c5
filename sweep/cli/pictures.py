"""Commands that draw pictures."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

from typer import Context, Option

from paradl.sweep.cli import options
from paradl.sweep.cli.commands import make_group, take_options
from paradl.sweep.cli.measured import RunCommand
from paradl.sweep.cli.spaces import SpaceOptions
from paradl.sweep.cli.values import take_picture
from paradl.sweep.text.visible import tell

app = make_group("Pictures of cubes, design spaces and measured runs.")

Output = Annotated[Path, take_picture("--output", "-o", help="File to write: .png, .svg or .pdf.")]


# Keywords only, since a required option follows others that have defaults.
@dataclass(frozen=True, kw_only=True)
class PictureOptions(SpaceOptions):
    """Options of a picture of a store, or of a design space."""

    output: Output
    size: options.Size = "page"


PictureCommand = take_options(PictureOptions)


@app.command(cls=RunCommand)
def accuracy(context: Context, output: Output, size: options.Size = "page") -> None:
    """Predicted over measured time of each run, by model and strategy, over p."""
    comparison = context.obj.compare()
    from paradl.sweep.plots.accuracy import draw_accuracy
    from paradl.sweep.plots.figures import save_figure

    save_figure(draw_accuracy(comparison["rows"], size), output)
    tell(f"paradl: wrote {output}")


@app.command(cls=PictureCommand)
def scaling(
    context: Context,
    quantity: Annotated[
        Literal["time", "throughput", "efficiency"], Option(help="Quantity to plot over p.")
    ] = "time",
) -> None:
    """Time, throughput or efficiency over p: where each strategy ends, and why."""
    _draw(context, "scaling", quantity=quantity)


@app.command("map", cls=PictureCommand)
def draw_map(
    context: Context,
    over: Annotated[
        str | None, Option(metavar="AXIS", help="The vertical axis, such as inter_bandwidth.")
    ] = None,
) -> None:
    """The fastest strategy, or layout, over p and the batch or another axis."""
    _draw(context, "map", over=over)


@app.command(cls=PictureCommand)
def memory(context: Context) -> None:
    """Memory by part, for strategies, PE counts or layouts, against the capacity of a PE."""
    _draw(context, "memory")


@app.command(cls=PictureCommand)
def breakdown(context: Context) -> None:
    """The terms of an iteration's time over p, for one strategy."""
    _draw(context, "breakdown")


@app.command(cls=PictureCommand)
def pareto(
    context: Context,
    against: Annotated[Literal["pe-hours", "memory"], Option(help="Traded for time.")] = "pe-hours",
) -> None:
    """The front of time against PE-hours or memory, its knee, and each strategy's front."""
    _draw(context, "pareto", against=against)


@app.command(cls=PictureCommand)
def sensitivity(context: Context) -> None:
    """How much each parameter of the machine matters to one configuration, as a tornado."""
    _draw(context, "sensitivity")


def _draw(context: Context, kind: str, **settings: object) -> None:
    """Draw a picture into a file; stderr says if the store's sweep is unfinished."""
    given: PictureOptions = context.obj
    subject = given.read()
    from paradl.sweep.plots.figures import save_figure
    from paradl.sweep.plots.plots import Plots

    picture = getattr(Plots(subject.source), kind)
    draw = partial(picture, selection=subject.selection, size=given.size, **settings)
    # Asked as a question is, which tells if the store's sweep is unfinished.
    (row,) = subject.ask(lambda *_, **__: [{"figure": draw()}], "table")
    save_figure(row["figure"], given.output)
    if not given.quiet:
        tell(f"paradl: wrote {given.output}")
