"""Commands about measured runs. As in `sweep.cli.main`, heavy imports are inside them."""

from pathlib import Path
from typing import Annotated, Any

import typer

from sweep.cli.commands import MISSED, report_long
from sweep.cli.names import check_names
from sweep.cli.option_messages import speak_of_options
from sweep.cli.shared_options import AllReduce, Calibration, Form, Oracle
from sweep.show.visible import tell

Measured = Annotated[
    Path, typer.Argument(metavar="MEASURED.csv", help="A run a row: model, dataset, strategy ...")
]
SystemOfRows = Annotated[
    str,
    typer.Option("--system", help="The system of rows that name none: a catalogue name or a file."),
]
Required = Annotated[
    float | None,
    typer.Option(min=0, max=1, help="Exit with 3 if the mean accuracy of totals is below."),
]
CalibrationOutput = Annotated[
    Path, typer.Option("--output", "-o", metavar="FILE.yaml", help="Where the calibration goes.")
]
CrossValidation = Annotated[
    bool,
    typer.Option(
        "--cross-validation/--no-cross-validation",
        help="Predict left-out runs; without it, the model's errors are assumed.",
    ),
]
Picture = Annotated[Path, typer.Option("--output", "-o", help="Such as accuracy.png, .pdf, .svg.")]

plot = typer.Typer(no_args_is_help=True)


def compare(
    measured: Measured,
    oracle: Oracle = "machine",
    calibration: Calibration = "auto",
    system: SystemOfRows = "abci",
    allreduce: AllReduce | None = None,
    require_accuracy: Required = None,
    form: Form = "table",
) -> None:
    """Accuracy against measured runs, and which of them stand out."""
    comparison = _compare_runs(measured, calibration, system, oracle, allreduce)
    from sweep.show.comparison import format_percent, show_comparison

    for note in comparison["notes"]:
        tell(f"paradl: warning: {note}")
    show_comparison(comparison, form)
    mean = comparison["summary"]["overall"]["total"]["mean"]
    if require_accuracy is not None and (mean is None or not mean >= require_accuracy):
        tell(
            f"paradl: the mean accuracy of totals is {format_percent(mean)}, "
            f"and {format_percent(require_accuracy)} is required"
        )
        raise typer.Exit(MISSED)


def calibrate(
    measured: Measured,
    output: CalibrationOutput,
    system: SystemOfRows = "abci",
    cross_validation: CrossValidation = True,
    form: Form = "table",
) -> None:
    """Fit a machine's parameters to measured runs, with their uncertainty and accuracy."""
    check_names({"system": system}, several=False)
    from sweep.calibration.calibrate import calibrate as ask
    from sweep.calibration.write import expect_another, expect_folder, write
    from sweep.show.calibration import show_calibration

    expect_folder(output)  # before minutes of work
    expect_another(output, measured)
    with speak_of_options():
        calibration = ask(measured, system=system, cross_validation=cross_validation)
    write(calibration, output)
    show_calibration(calibration, form)


@plot.callback()  # with it, a single command keeps its name
def make_pictures() -> None:
    """Pictures of cubes and of measured runs."""


@plot.command()
@report_long
def accuracy(
    measured: Measured,
    output: Picture,
    oracle: Oracle = "machine",
    calibration: Calibration = "auto",
    system: SystemOfRows = "abci",
    allreduce: AllReduce | None = None,
) -> None:
    """Predicted next to measured times, a panel for each model and strategy."""
    comparison = _compare_runs(measured, calibration, system, oracle, allreduce)
    from sweep.plots.accuracy import draw_accuracy
    from sweep.plots.figures import save_figure

    save_figure(draw_accuracy(comparison["rows"]), output)


def _compare_runs(
    path: Path, calibration: str, system: str, oracle: str, allreduce: str | None
) -> dict[str, Any]:
    """The comparison of a runs file; messages speak of options."""
    check_names({"system": system, "calibration": calibration}, several=False)
    from sweep.measured.compare import compare as ask

    settings = {"oracle": oracle} | ({"allreduce": allreduce} if allreduce else {})
    with speak_of_options():
        return ask(path, system=system, calibration=calibration, settings=settings)
