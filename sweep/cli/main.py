"""The command line. Heavy imports are inside the commands, so that `--help` answers at once."""

import os
import sys
from collections.abc import Callable
from inspect import Parameter, signature
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from grids.reading.errors import InputError, format_text
from sweep.cli.assignments import parse_settings
from sweep.cli.catalogue import LISTINGS
from sweep.cli.cubes import QUESTIONS
from sweep.cli.exits import BAD_INPUT, FAILED, INTERRUPTED, NOTHING_FEASIBLE, end
from sweep.cli.exports import export
from sweep.cli.hybrid import hybrid
from sweep.cli.measured import calibrate, compare, plot
from sweep.cli.names import check_names
from sweep.cli.option_messages import name_option, speak_of_options
from sweep.cli.pairs import diff
from sweep.cli.pictures import KINDS
from sweep.cli.place import place
from sweep.cli.planning import PLANNING
from sweep.cli.samples import SAMPLES
from sweep.cli.schemas import schema
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
    Store,
    Strategy,
    System,
    Target,
    Times,
    Version,
)
from sweep.cli.short_forms import ShortForms
from sweep.cli.surrogates import app as surrogate
from sweep.cli.trades import TRADES
from sweep.cli.waiting import report_long
from sweep.errors import RunError
from sweep.show.visible import escape_lines, tell

if TYPE_CHECKING:
    from grids.grid import Grid

app = typer.Typer(
    name="paradl",
    no_args_is_help=True,
    cls=ShortForms,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

Quiet = Annotated[bool, typer.Option("--quiet", help="No plan, no progress, no notes.")]


@app.callback()
def _common(version: Version = False) -> None:
    """How a network trains at scale under every way of parallelising it, and what stops it."""


def main() -> None:
    """Run the command line; every expected failure is one message and an exit code."""
    try:
        try:
            app()
        finally:
            # Here and not as Python ends: then a pipe that is closed could only be told by a
            # traceback.
            sys.stdout.flush()
    except InputError as error:
        end(name_option(str(error)), BAD_INPUT)
    except RunError as error:
        end(name_option(str(error)), FAILED)
    except BrokenPipeError:  # whoever read our output has seen enough
        # Python flushes once more as it ends: into nothing, and so in silence.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@app.command()
def sweep(
    spec: Annotated[Path, typer.Argument(help="The design space: a YAML file.")],
    store: Store,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the plan and stop.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Start anew.")] = False,
    extend: Annotated[
        bool, typer.Option("--extend", help="Add the values that the store's axes lack.")
    ] = False,
    reduce_only: Annotated[
        bool, typer.Option("--reduce-only", help="Keep only what limits and best answer from.")
    ] = False,
    workers: Annotated[
        int, typer.Option(min=0, help="Local worker processes; 0 computes in this one.")
    ] = 0,
    scheduler: Annotated[
        str | None, typer.Option(help="Address of a running Dask scheduler.")
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Sweep a design space into a Zarr store, or resume a sweep that was cut short."""
    from grids.grid_of_spec import read_grid

    _refuse_swapped(spec, store)
    grid = read_grid(spec).drop_outputs() if reduce_only else read_grid(spec)

    # Behind what is wrong with a spec: they take a second to import.
    from sweep.cli.preview import announce, preview_sweep
    from sweep.engine.interrupts import hear_interrupts
    from sweep.engine.progress import bar, lines, silent
    from sweep.engine.run import Where
    from sweep.engine.run import sweep as run

    processes = workers or int(scheduler is not None)  # of a scheduler's workers, one is planned
    if dry_run:
        print(escape_lines(preview_sweep(store, grid, processes, extend)))
        return
    progress_bar = bar if sys.stderr.isatty() else lines
    announcement = silent if quiet else announce(grid, processes, progress_bar)
    try:
        with hear_interrupts(announcement) as progress:
            run(grid, store, overwrite, Where(workers, scheduler), progress, extend)
    except KeyboardInterrupt:
        end("interrupted; what is done is kept: run the same command to go on", INTERRUPTED)
    if not quiet:
        tell(f"done: {prod(grid.shape):,} cells in {store}")


def _refuse_swapped(spec: Path, store: str) -> None:
    """Refuse a store where the spec stands, and the spec behind it."""
    endings = (".yaml", ".yml")
    if store.endswith(endings) and spec.suffix not in endings:
        raise InputError(
            "the store stands before the spec",
            where=str(spec),
            advice=f"swap them: paradl sweep {format_text(store)} {format_text(str(spec))}",
        )


# Here, and not below: `paradl --help` lists commands in the order in which they come.
for question in (*QUESTIONS, *PLANNING, *TRADES):
    app.command()(question)


def _make_command(show_answer: Callable[..., None]) -> Callable[..., None]:
    """A command about one configuration, which `show_answer` prints, with options of its own."""

    def command(
        model: Model,
        strategy: Strategy,
        pe: PEs,
        batch: Batch,
        dataset: Dataset = None,
        system: System = "abci",
        layers: Layers = None,
        settings: Set = None,
        scaling: Scaling = "weak",
        collectives: Collectives = "auto",
        allreduce: AllReduce = "ring",
        conventions: Conventions = "table",
        iterations: Iterations = "exact",
        optimizer: Optimizer = "sgd",
        times: Times = "measured",
        oracle: Oracle = "machine",
        recompute: Recompute = "none",
        calibration: Calibration = "auto",
        convergence: Convergence = "none",
        target: Target = None,
        max_global_batch: MaxGlobalBatch = None,
        form: Form = "table",
        **own: Any,
    ) -> None:
        named = {"model": model, "dataset": dataset, "system": system, "strategy": strategy}
        check_names(named | {"calibration": calibration}, several=False)
        from sweep.cells.configuration import Configuration

        configuration = Configuration(
            model=model if layers is None else {"file": model, "layers": layers},
            strategy=strategy,
            pe=pe,
            batch=batch,
            dataset=dataset,
            system=system,
            parameters=parse_settings(settings, "--set") | _bound_batch(max_global_batch),
            settings={
                "scaling": scaling,
                "collectives": collectives,
                "allreduce": allreduce,
                "conventions": conventions,
                "iterations": iterations,
                "optimizer": optimizer,
                "times": times,
                "oracle": oracle,
                "recompute": recompute,
                "calibration": calibration,
                "convergence": convergence,
                "target": target,
            },
        )
        with speak_of_options():
            grid = configuration.grid()
        for warning in grid.warnings:
            tell(f"paradl: warning: {warning}")
        report_long(show_answer)(grid, form, **own)

    described = signature(command)
    shared = [each for each in described.parameters.values() if each.name != "own"]
    more = [
        each.replace(kind=Parameter.KEYWORD_ONLY)
        for name, each in signature(show_answer).parameters.items()
        if name not in ("grid", "form")
    ]
    told = {
        "__doc__": show_answer.__doc__,
        # What Typer reads the options of.
        "__signature__": described.replace(parameters=[*shared, *more]),
        "__annotations__": {each.name: each.annotation for each in (*shared, *more)},
    }
    for name, value in told.items():
        setattr(command, name, value)
    return command


def _bound_batch(most: int | None) -> dict[str, Any]:
    """The largest global batch as a parameter, where one is given."""
    return {} if most is None else {"max_global_batch": most}


@app.command("predict")
@_make_command
def predict(grid: "Grid", form: Any) -> None:
    """Time, memory and limits of one configuration."""
    from sweep.questions.predict import answer_grid
    from sweep.show.tables import show_one

    answer = answer_grid(grid)
    # Notes have been written to stderr.
    shown = {key: each for key, each in answer.items() if form != "table" or key != "notes"}
    show_one(shown, form)
    _end_if_forbidden(answer)


@app.command("explain")
@_make_command
def explain(
    grid: "Grid",
    form: Any,
    layers_table: Annotated[
        bool, typer.Option("--layers-table", help="One row per layer, and nothing else.")
    ] = False,
) -> None:
    """One configuration's formulas with their numbers, its memory by part, and how to launch it."""
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


app.command()(report_long(hybrid))
for listing in (place, schema, *LISTINGS):
    app.command()(listing)
app.command()(report_long(diff))
app.command()(report_long(export))
for command in SAMPLES:
    app.command()(command)
app.command()(report_long(compare))
app.command()(report_long(calibrate))
for kind, draw in KINDS.items():
    plot.command(kind)(report_long(draw))
app.add_typer(plot, name="plot")
app.add_typer(surrogate, name="surrogate")
