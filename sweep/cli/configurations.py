"""Commands about one configuration. As in `sweep.cli.main`, heavy imports are inside them."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sweep.cli.assignments import parse_settings
from sweep.cli.commands import NOTHING_FEASIBLE, end, spread_options
from sweep.cli.names import check_names
from sweep.cli.option_messages import speak_of_options
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
from sweep.show.visible import tell

if TYPE_CHECKING:
    from grids.grid import Grid

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
    settings: Set = None
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
        """The grid of this one cell; what is odd about it is said on stderr."""
        names = ("model", "dataset", "system", "strategy", "calibration")
        check_names({name: getattr(self, name) for name in names}, several=False)
        from sweep.cells.configuration import Configuration

        parameters: dict[str, Any] = dict(parse_settings(self.settings, "--set"))
        if self.max_global_batch is not None:
            parameters["max_global_batch"] = self.max_global_batch
        configuration = Configuration(
            model=self.model
            if self.layers is None
            else {"file": self.model, "layers": self.layers},
            strategy=self.strategy,
            pe=self.pe,
            batch=self.batch,
            dataset=self.dataset,
            system=self.system,
            parameters=parameters,
            settings={name: getattr(self, name) for name in SETTINGS},
        )
        with speak_of_options():
            grid = configuration.grid()
        for warning in grid.warnings:
            tell(f"paradl: warning: {warning}")
        return grid


@spread_options
def predict(options: ConfigurationOptions, form: Form = "table") -> None:
    """Time, memory and limits of one configuration."""
    grid = options.read_grid()
    from sweep.questions.predict import answer_grid
    from sweep.show.tables import show_one

    answer = answer_grid(grid)
    # Notes have been written to stderr.
    show_one({key: answer[key] for key in answer if form != "table" or key != "notes"}, form)
    _end_if_forbidden(answer)


@spread_options
def explain(
    options: ConfigurationOptions,
    form: Form = "table",
    layers_table: Annotated[
        bool, typer.Option("--layers-table", help="One row per layer, and nothing else.")
    ] = False,
) -> None:
    """One configuration's formulas with their numbers, its memory by part, and how to launch it."""
    grid = options.read_grid()
    from sweep.questions.explain import explain_grid
    from sweep.show.explanation import show_explanation

    answer = explain_grid(grid)
    show_explanation(answer, form, layers_table)
    _end_if_forbidden(answer)


def _end_if_forbidden(answer: dict[str, Any]) -> None:
    """End with what forbids the configuration, if anything does."""
    from sweep.show.obstacle import describe_obstacle

    if not answer["feasible"]:
        end(describe_obstacle(answer), NOTHING_FEASIBLE)
