"""Commands that draw pictures."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from sweep.cli.commands import NOTHING_FEASIBLE, PatientCommand, end
from sweep.cli.measured import Measured, SystemOfRows, compare_runs
from sweep.cli.shared_options import AllReduceOrNone, Calibration, Oracle, Selection, Store
from sweep.cli.subjects import tell_missing
from sweep.cli.values import parse_selection
from sweep.errors import NothingFeasibleError

if TYPE_CHECKING:
    from sweep.plots.plots import Plots

app = typer.Typer(no_args_is_help=True, help="Pictures of cubes and of measured runs.")

Picture = Annotated[Path, typer.Option("--output", "-o", help="File to write: .png, .svg or .pdf.")]
Size = Annotated[
    Literal["paper", "page", "slide"],
    typer.Option(
        "--size", help="Width: a paper's column (3.3 in), page (6.6 in) or slide (10 in)."
    ),
]


@app.command(cls=PatientCommand)
def accuracy(
    measured: Measured,
    output: Picture,
    oracle: Oracle = "machine",
    calibration: Calibration = "auto",
    system: SystemOfRows = "abci",
    allreduce: AllReduceOrNone = None,
) -> None:
    """Predicted and measured times side by side, one panel per model and strategy."""
    comparison = compare_runs(measured, calibration, system, oracle, allreduce)
    from sweep.plots.accuracy import draw_accuracy
    from sweep.plots.figures import save_figure

    save_figure(draw_accuracy(comparison["rows"]), output)


@app.command(cls=PatientCommand)
def scaling(
    store: Store,
    output: Picture,
    selection: Selection = None,
    quantity: Annotated[
        Literal["time", "throughput", "efficiency"], typer.Option(help="Quantity to plot over p.")
    ] = "time",
    size: Size = "page",
) -> None:
    """Time, throughput or efficiency over p: where each strategy ends, and why."""
    _draw(store, output, lambda plots: plots.scaling(quantity, parse_selection(selection), size))


@app.command("map", cls=PatientCommand)
def draw_map(
    store: Store,
    output: Picture,
    selection: Selection = None,
    over: Annotated[
        str | None, typer.Option(metavar="AXIS", help="The vertical axis, such as inter_bandwidth.")
    ] = None,
    size: Size = "page",
) -> None:
    """The fastest strategy over p and the batch or another axis."""
    _draw(store, output, lambda plots: plots.map(over, parse_selection(selection), size))


@app.command(cls=PatientCommand)
def memory(store: Store, output: Picture, selection: Selection = None, size: Size = "page") -> None:
    """Memory by part, for several strategies or PE counts, against the capacity of a PE."""
    _draw(store, output, lambda plots: plots.memory(parse_selection(selection), size))


@app.command(cls=PatientCommand)
def breakdown(
    store: Store, output: Picture, selection: Selection = None, size: Size = "page"
) -> None:
    """The terms of an iteration's time over p, for one strategy."""
    _draw(store, output, lambda plots: plots.breakdown(parse_selection(selection), size))


def _draw(store: str, output: Path, draw: "Callable[[Plots], Any]") -> None:
    """Draw a cube into a file; stderr says if its sweep is unfinished."""
    from sweep.engine.verification import tell_damage
    from sweep.plots.figures import expect_format, save_figure
    from sweep.plots.plots import Plots
    from sweep.questions.status import count_blocks

    expect_format(output)
    with tell_damage(store):
        # Counted before drawing: blocks that a running sweep adds meanwhile may be missing.
        done, blocks = count_blocks(store)
        try:
            figure = draw(Plots(store))
        except NothingFeasibleError as error:
            end(str(error), NOTHING_FEASIBLE)
    save_figure(figure, output)
    tell_missing(done, blocks)
