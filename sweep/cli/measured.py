"""Commands about measured runs."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Context, Option, Typer

from paradl.grids.reading.textfile import expect_output
from paradl.sweep.cli import options
from paradl.sweep.cli.commands import MISSED, PatientCommand, end, take_options
from paradl.sweep.cli.values import take_share
from paradl.sweep.text.visible import tell

if TYPE_CHECKING:
    from paradl.sweep.answers.mapping import AnswerMapping
    from paradl.sweep.answers.types.runs import Comparison

app = Typer()

Measured = Annotated[
    Path, Argument(metavar="MEASURED.csv", help="CSV file, a run per row; or a log, or a folder.")
]
SystemOfRows = Annotated[
    str | None, Option("--system", help="System of rows without one: a catalogue name or a file.")
]


@dataclass(frozen=True)
class RunOptions:
    """Options that say how measured runs are predicted."""

    measured: Measured
    oracle: options.Oracle = None
    calibration: options.Calibration = None
    system: SystemOfRows = None
    allreduce: options.AllReduce = None
    launch: options.Launch = None
    quiet: options.Quiet = False

    def compare(self) -> "AnswerMapping[Comparison]":
        """Compare the runs with the oracle."""
        options.check_names(vars(self), several=False)
        from paradl.sweep.measured.compare import compare as ask

        # Unless given, the all-reduce is that of the paper's runs.
        settings = options.list_given(self, "oracle", "allreduce")
        calibration = self.calibration or "auto"
        return ask(
            self.measured,
            system=self.system,
            calibration=calibration,
            settings=settings,
            launch=self.launch,
        )


RunCommand = take_options(RunOptions)


@app.command(cls=RunCommand)
def compare(
    context: Context,
    require_accuracy: Annotated[
        float | None, take_share("Exit with 3 if the mean accuracy of totals is lower.", least=0)
    ] = None,
    form: options.Form = "table",
) -> None:
    """Compare predictions with runs: accuracy, and outliers."""
    comparison = context.obj.compare()
    from paradl.sweep.text.columns import format_percent
    from paradl.sweep.text.comparison import show_comparison

    for note in comparison["notes"]:
        tell(f"paradl: warning: {note}")
    show_comparison(comparison.to_dict(), form)
    mean = comparison["summary"]["overall"]["total"]["mean"]
    # None: no run has a total that is both measured and predicted.
    if require_accuracy is not None and (mean is None or not mean >= require_accuracy):
        reached = "unknown" if mean is None else format_percent(mean)
        end(
            f"the mean accuracy of totals is {reached}, "
            f"and {format_percent(require_accuracy)} is required",
            MISSED,
        )


@app.command(cls=PatientCommand)
def calibrate(
    measured: Measured,
    output: options.YamlOutput,
    system: SystemOfRows = None,
    cross_validation: Annotated[
        bool, Option(help="Estimate the model's errors from left-out runs, or assume them.")
    ] = True,
    keep_anomalies: Annotated[bool, Option("--keep-anomalies", help="Fit outliers, too.")] = False,
    form: options.Form = "table",
) -> None:
    """Fit a machine's parameters to runs, with their uncertainty."""
    options.check_names({"system": system}, several=False)
    from paradl.sweep.calibration.calibrate import calibrate_system as ask
    from paradl.sweep.calibration.calibrate import list_doubtful_factors, write
    from paradl.sweep.text.comparison import show_calibration

    expect_output(output, [measured])  # a fit takes minutes
    calibration, machine = ask(
        measured, system, cross_validation=cross_validation, keep_anomalies=keep_anomalies
    )
    for doubt in list_doubtful_factors(calibration):
        tell(f"paradl: warning: {doubt}")
    write(calibration, output)
    show_calibration(calibration, machine, form)
