"""Commands about one configuration."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sweep.cli.commands import NOTHING_FEASIBLE, PatientCommand, end
from sweep.cli.shared_options import (
    AllReduce,
    Batch,
    Calibration,
    Collectives,
    Conventions,
    Convergence,
    Dataset,
    Form,
    Iterations,
    Layers,
    MaxGlobalBatch,
    Model,
    Optimizer,
    Oracle,
    PEs,
    Recompute,
    Scaling,
    Set,
    Strategy,
    System,
    Target,
    Times,
)
from sweep.cli.values import check_names, parse_settings
from sweep.show.visible import tell

if TYPE_CHECKING:
    from grids.grid import Grid

app = typer.Typer()

# Options that are keys of a spec.
SETTINGS = (
    *("scaling", "collectives", "allreduce", "conventions", "iterations", "optimizer", "times"),
    *("oracle", "recompute", "calibration", "convergence", "target"),
)


@dataclass(frozen=True)
class ConfigurationOptions:
    """The options that describe one configuration."""

    model: Model
    strategy: Strategy
    pe: PEs
    batch: Batch
    dataset: Dataset = None
    system: System = "abci"
    layers: Layers = None
    parameters: Set = None
    scaling: Scaling = "weak"
    collectives: Collectives = "auto"
    allreduce: AllReduce = "ring"
    conventions: Conventions = "table"
    iterations: Iterations = "exact"
    optimizer: Optimizer = "sgd"
    times: Times = "measured"
    oracle: Oracle = "machine"
    recompute: Recompute = "none"
    calibration: Calibration = "auto"
    convergence: Convergence = "none"
    target: Target = None
    max_global_batch: MaxGlobalBatch = None

    def read_grid(self) -> "Grid":
        """Build the grid of this single cell; its warnings go to stderr."""
        names = ("model", "dataset", "system", "strategy", "calibration")
        check_names({name: getattr(self, name) for name in names}, several=False)
        from sweep.cells.configuration import Configuration

        parameters: dict[str, Any] = dict(parse_settings(self.parameters, "--set"))
        if self.max_global_batch is not None:
            parameters["max_global_batch"] = self.max_global_batch
        # The authors keep a network in one file, and which of its layers are split in another.
        split: dict[str, object] = {"file": self.model, "layers": self.layers}
        grid = Configuration(
            model=self.model if self.layers is None else split,
            strategy=self.strategy,
            pe=self.pe,
            batch=self.batch,
            dataset=self.dataset,
            system=self.system,
            parameters=parameters,
            settings={name: getattr(self, name) for name in SETTINGS},
        ).grid()
        for warning in grid.warnings:
            tell(f"paradl: warning: {warning}")
        return grid


class ConfigurationCommand(PatientCommand):
    """A command about one configuration."""

    shared = ConfigurationOptions


@app.command(cls=ConfigurationCommand)
def predict(context: typer.Context, form: Form = "table") -> None:
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
    context: typer.Context,
    form: Form = "table",
    layers_table: Annotated[
        bool, typer.Option("--layers-table", help="Print only a table with one row per layer.")
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
