"""The command line. Heavy imports are inside the commands, so that `--help` answers at once."""

import os
import sys
from collections.abc import Callable
from functools import partial
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from grids.reading.errors import InputError
from sweep.cli.catalogue import LISTINGS
from sweep.cli.measured import calibrate, compare, plot
from sweep.cli.options import (
    AllReduce,
    Batch,
    Calibration,
    Collectives,
    Dataset,
    Form,
    Iterations,
    Layers,
    Model,
    Optimizer,
    PEs,
    Scaling,
    Set,
    Strategy,
    System,
    Times,
    Version,
)
from sweep.cli.pairs import named_as_options, once, selection
from sweep.cube.object_store import locate_store
from sweep.errors import RunError
from sweep.show.visible import tell, visible_lines

if TYPE_CHECKING:
    from grids.grid import Grid

app = typer.Typer(
    name="paradl",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

FAILED, BAD_INPUT, NOTHING_FEASIBLE, INTERRUPTED = 1, 2, 4, 130

Sel = Annotated[
    list[str] | None,
    typer.Option("--sel", metavar="AXIS=VALUE[,VALUE]", help="Slice the cube; may be repeated."),
]
Store = Annotated[
    str, typer.Argument(help="A cube: a folder or an object-store URL.", callback=locate_store)
]
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
            sys.stdout.flush()
    except InputError as error:
        _end(str(error), BAD_INPUT)
    except RunError as error:
        _end(str(error), FAILED)
    except BrokenPipeError:  # whoever read our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _end(message: str, code: int) -> None:
    tell(f"paradl: {message}")
    sys.exit(code)


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
    from sweep.cli.preview import announced, preview
    from sweep.engine.interrupts import heard
    from sweep.engine.progress import bar, silent
    from sweep.engine.run import Where, read_grid
    from sweep.engine.run import sweep as run

    grid = read_grid(spec).reduced() if reduce_only else read_grid(spec)
    processes = workers or int(scheduler is not None)  # of a scheduler's workers, one is planned
    if dry_run:
        print(visible_lines(preview(store, grid, processes, extend)))
        return
    shown = bar if sys.stderr.isatty() else silent
    told = silent if quiet else announced(grid, processes, shown)
    try:
        with heard(told) as progress:
            run(grid, store, overwrite, Where(workers, scheduler), progress, extend)
    except KeyboardInterrupt:
        _end("interrupted; what is done is kept: run the same command to go on", INTERRUPTED)
    if not quiet:
        tell(f"done: {prod(grid.shape):,} cells in {store}")


@app.command()
def status(
    store: Store,
    verify: Annotated[
        bool, typer.Option("--verify", help="Read all that is done, and name what is damaged.")
    ] = False,
    form: Form = "table",
) -> None:
    """How much of a cube is done."""
    from sweep.engine.progress import bar, silent
    from sweep.questions.status import status as ask
    from sweep.questions.status import verified
    from sweep.show.explanations import advice, show_verified
    from sweep.show.tables import show_one

    if not verify:
        show_one(ask(store), form)
        return
    found = verified(store, partial(bar, what="verify") if sys.stderr.isatty() else silent)
    show_verified(found, form)
    if found["damaged"]:
        _end(advice(found), FAILED)


@app.command()
def limits(
    store: Store,
    efficiency: Annotated[
        float, typer.Option(help="Parallel efficiency that counts as efficient.")
    ] = 0.5,
    sel: Sel = None,
    form: Form = "table",
) -> None:
    """How far each strategy scales, and what stops it."""
    from sweep.questions.limits import rows as ask

    _show_cube(store, form, lambda: ask(store, efficiency, selection(sel)))


@app.command()
def best(store: Store, sel: Sel = None, form: Form = "table") -> None:
    """Strategies ranked for a slice of a cube, with what forbids the losers."""
    from sweep.questions.best import rows as ask

    table = _show_cube(store, form, lambda: ask(store, selection(sel)))
    if not any(row["feasible"] for row in table):
        _end("nothing in this slice is feasible", NOTHING_FEASIBLE)


def _show_cube(store: str, form: Any, question: Any) -> Any:
    """Ask a cube, print the rows, and say on stderr what they lack."""
    from sweep.engine.verify import damage_told
    from sweep.questions.status import count_blocks
    from sweep.show.tables import show

    with damage_told(store):
        done, blocks = count_blocks(store)
        table = question()
    show(table, form)
    if not len(table):
        tell("paradl: no samples of this slice fit its models")
    if done < blocks:
        tell(
            f"paradl: only {done} of {blocks} blocks are done; "
            "run the same paradl sweep again to finish"
        )
    return table


def _about_one(answer: Callable[["Grid", Any], None]) -> Callable[..., None]:
    """A command about one configuration, which `answer` prints."""

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
        collectives: Collectives = "ring",
        allreduce: AllReduce = "ring",
        iterations: Iterations = "exact",
        optimizer: Optimizer = "sgd",
        times: Times = "measured",
        calibration: Calibration = "none",
        form: Form = "table",
    ) -> None:
        from sweep.questions.predict import Configuration

        asked = Configuration(
            model=model if layers is None else {"file": model, "layers": layers},
            strategy=strategy,
            pe=pe,
            batch=batch,
            dataset=dataset,
            system=system,
            parameters=once(settings, "--set"),
            settings={
                "scaling": scaling,
                "collectives": collectives,
                "allreduce": allreduce,
                "iterations": iterations,
                "optimizer": optimizer,
                "times": times,
                "calibration": calibration,
            },
        )
        with named_as_options():
            grid = asked.grid()
        misfit = grid.misfit(0, 0)
        for warning in (*grid.warnings, *([misfit] if misfit else [])):
            tell(f"paradl: warning: {warning}")
        answer(grid, form)

    command.__doc__ = answer.__doc__
    return command


@app.command("predict")
@_about_one
def predict(grid: "Grid", form: Any) -> None:
    """Time, memory and limits of one configuration."""
    from sweep.questions.predict import prediction
    from sweep.show.tables import show_one

    found = prediction(grid)
    show_one(found, form)
    _end_if_forbidden(found)


@app.command("explain")
@_about_one
def explain(grid: "Grid", form: Any) -> None:
    """One configuration's formulas with their numbers, term by term and layer by layer."""
    from sweep.questions.explain import explanation
    from sweep.show.explanations import show_explanation

    found = explanation(grid)
    show_explanation(found, form)
    _end_if_forbidden(found)


def _end_if_forbidden(answer: dict[str, Any]) -> None:
    from sweep.show.explanations import obstacle

    if not answer["feasible"]:
        _end(obstacle(answer), NOTHING_FEASIBLE)


@app.command()
def schema() -> None:
    """The JSON schema of a spec, for editors."""
    from grids.spec import Spec
    from sweep.show.tables import print_json

    print_json(Spec.model_json_schema())


for listing in LISTINGS:
    app.command()(listing)
app.command()(compare)
app.command()(calibrate)
app.add_typer(plot, name="plot")
