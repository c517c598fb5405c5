"""Commands about one configuration."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

from typer import Context, Option, Typer

from paradl.grids.reading.errors import InputError
from paradl.sweep.cli import options
from paradl.sweep.cli.commands import NOTHING_FEASIBLE, end, take_options
from paradl.sweep.cli.values import parse_price
from paradl.sweep.launching.names import FRAMEWORKS
from paradl.sweep.text.visible import tell

if TYPE_CHECKING:
    from paradl.grids.grid import Grid
    from paradl.sweep.answers.types.prediction import Prediction

app = Typer()


@dataclass(frozen=True)
class ConfigurationOptions(options.SettingOptions):
    """The options that describe one configuration."""

    model: options.ModelOrNone = None
    strategy: options.Strategy = None
    pe: options.PEs = None
    batch: options.Batch = None
    dataset: options.Dataset = None
    system: options.System = None
    collectives: options.Collectives = None
    allreduce: options.AllReduce = None
    iterations: options.Iterations = None
    times: options.Times = None

    def read_grid(self) -> "tuple[Grid, list[str]]":
        """Build the grid of this single cell, and notes on its launch script; all go to stderr."""
        given, notes = self.read_launch()
        for note in notes:
            tell(f"paradl: {note}")
        return given._read_grid(), notes

    def _read_grid(self) -> "Grid":
        for name in ("model", "strategy", "pe"):
            if getattr(self, name) is None:
                advice = "give it, or a launch script that states it: --launch FILE"
                raise InputError("no value is given", where=f"--{name}", advice=advice)
        options.check_names(vars(self), several=False)
        from paradl.grids.design_space import Configuration
        from paradl.grids.notes import list_warnings

        grid = Configuration(
            **{name: getattr(self, name) for name in options.AXES},
            parameters=self.read_parameters(),
            settings=self.list_settings(),
            **self.list_shorthands(),
        ).grid()
        _expect_length(grid)
        # Warnings concern model files, such as ignored layers; the answer does not repeat them.
        for warning in list_warnings(grid):
            tell(f"paradl: warning: {warning}")
        return grid


def _expect_length(grid: "Grid") -> None:
    """Raise InputError if the model takes shorter sequences of the text; the advice names them."""
    reason = grid.misfit(0, 0)
    if reason is None:
        return
    from paradl.grids.models.transformers import cut_text

    model, samples = grid.models[0], grid.datasets[0]
    fitting = cut_text(model, samples).name
    if fitting != samples.name:
        raise InputError(
            f"{model.name} does not take the samples of {samples.name}: {reason}",
            where="--dataset",
            advice=f"such as {fitting}",
        )


ConfigurationCommand = take_options(ConfigurationOptions)


@app.command(cls=ConfigurationCommand)
def predict(
    context: Context,
    price: options.Prices = None,
    every: options.All = False,
    form: options.Form = "table",
) -> None:
    """Time, memory and limits of one configuration."""
    grid, notes = context.obj.read_grid()
    from paradl.sweep.questions.predict import answer_grid
    from paradl.sweep.text.explanation import show_prediction

    answer = answer_grid(grid, parse_price(price))
    answer["notes"] += notes
    show_prediction(answer, form, every)
    _end_if_forbidden(answer)


@app.command(cls=ConfigurationCommand)
def explain(
    context: Context,
    every: options.All = False,
    form: options.Form = "table",
    layers_table: Annotated[bool, Option("--layers-table", help="Print a row per layer.")] = False,
) -> None:
    """Formulas of one configuration in numbers; how to launch it."""
    given: ConfigurationOptions = context.obj
    stack = given.launch if given.launch in FRAMEWORKS else None
    grid, notes = (replace(given, launch=None) if stack else given).read_grid()
    from paradl.sweep.questions.explain import explain_grid
    from paradl.sweep.text.explanation import show_explanation

    answer = explain_grid(grid, stack)
    answer["notes"] += notes
    show_explanation(answer, form, layers_table, every)
    _end_if_forbidden(answer)


def _end_if_forbidden(answer: "Prediction") -> None:
    """Exit with the limits that forbid the configuration, if there are any."""
    from paradl.sweep.text.explanation import describe_obstacle

    if not answer["feasible"]:
        end(describe_obstacle(answer), NOTHING_FEASIBLE)
