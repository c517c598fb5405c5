"""Commands about one configuration."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from typer import Context, Option, Typer

from sweep.cli import options
from sweep.cli.commands import NOTHING_FEASIBLE, end, take_options
from sweep.show.visible import tell

if TYPE_CHECKING:
    from grids.grid import Grid

app = Typer()

# Options that are keys of a spec.
SETTINGS = (
    *("scaling", "collectives", "allreduce", "conventions", "iterations", "optimizer", "times"),
    *("oracle", "recompute", "calibration", "convergence", "target"),
)


@dataclass(frozen=True)
class ConfigurationOptions:
    """The options that describe one configuration."""

    model: options.Model
    strategy: options.Strategy
    pe: options.PEs
    batch: options.Batch
    dataset: options.Dataset = None
    system: options.System = "abci"
    layers: options.Layers = None
    parameters: options.Set = None
    scaling: options.Scaling = None
    collectives: options.Collectives = None
    allreduce: options.AllReduce = None
    conventions: options.Conventions = None
    iterations: options.Iterations = None
    optimizer: options.Optimizer = None
    times: options.Times = None
    oracle: options.Oracle = None
    recompute: options.Recompute = None
    calibration: options.Calibration = None
    convergence: options.Convergence = None
    target: options.Target = None
    max_global_batch: options.MaxGlobalBatch = None

    def read_grid(self) -> "Grid":
        """Build the grid of this single cell; its warnings go to stderr."""
        options.check_names(vars(self), several=False)
        from sweep.cells.design_space import Configuration

        parameters: dict[str, Any] = dict(options.parse_settings(self.parameters, "--set"))
        # The authors keep a network in one file, and which of its layers are split in another.
        split: dict[str, object] = {"file": self.model, "layers": self.layers}
        grid = Configuration(
            model=self.model if self.layers is None else split,
            strategy=self.strategy,
            pe=self.pe,
            batch=self.batch,
            dataset=self.dataset,
            system=self.system,
            parameters=parameters | options.list_given(self, "max_global_batch"),
            settings=options.list_given(self, *SETTINGS),
        ).grid()
        # Warnings concern model files, such as ignored layers; the answer does not repeat them.
        for warning in grid.warnings:
            tell(f"paradl: warning: {warning}")
        return grid


ConfigurationCommand = take_options(ConfigurationOptions)


@app.command(cls=ConfigurationCommand)
def predict(context: Context, form: options.Form = "table") -> None:
    """Time, memory and limits of one configuration."""
    grid: Grid = context.obj.read_grid()
    from sweep.questions.predict import answer_grid
    from sweep.show.rows import show_one

    answer = answer_grid(grid)
    # People have read the notes on stderr already.
    show_one({key: answer[key] for key in answer if form != "table" or key != "notes"}, form)
    _end_if_forbidden(answer)


@app.command(cls=ConfigurationCommand)
def explain(
    context: Context,
    form: options.Form = "table",
    layers_table: Annotated[
        bool, Option("--layers-table", help="Print only a table with one row per layer.")
    ] = False,
) -> None:
    """Formulas of one configuration with numbers, memory by part, and how to launch it."""
    grid: Grid = context.obj.read_grid()
    from sweep.questions.explain import explain_grid
    from sweep.show.explanation import show_explanation

    answer = explain_grid(grid)
    show_explanation(answer, form, layers_table)
    _end_if_forbidden(answer)


def _end_if_forbidden(answer: dict[str, Any]) -> None:
    """Exit with the limits that forbid the configuration, if there are any."""
    from sweep.show.obstacle import describe_obstacle

    if not answer["feasible"]:
        end(describe_obstacle(answer), NOTHING_FEASIBLE)
