"""The command line. Heavy imports are inside the commands, so that `--help` answers at once."""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from grids.errors import InputError
from sweep.errors import RunError
from sweep.options import named_as_options, once, selection

if TYPE_CHECKING:
    from grids.grid import Grid

app = typer.Typer(
    name="paradl",
    help="How a network trains at scale under every way of parallelising it, and what stops it.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

FAILED, BAD_INPUT, NOTHING_FEASIBLE, INTERRUPTED = 1, 2, 4, 130

Form = Annotated[
    Literal["table", "json", "csv"], typer.Option("--format", help="How to print the answer.")
]
Sel = Annotated[
    list[str] | None,
    typer.Option("--sel", metavar="AXIS=VALUE[,VALUE]", help="Slice the cube; may be repeated."),
]
Store = Annotated[str, typer.Argument(help="A cube: a folder or an object-store URL.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="No plan, no progress, no notes.")]


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
    print(f"paradl: {message}", file=sys.stderr)
    sys.exit(code)


@app.command()
def sweep(
    spec: Annotated[Path, typer.Argument(help="The design space: a YAML file.")],
    store: Store,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the plan and stop.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Start anew.")] = False,
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
    from sweep.engine import Where, read_grid
    from sweep.engine import sweep as run
    from sweep.progress import bar, silent
    from sweep.report import announced, outline
    from sweep.store import plan_of

    grid = read_grid(spec).reduced() if reduce_only else read_grid(spec)
    plan = plan_of(grid)
    if dry_run:
        print(outline(grid, plan, max(workers, 1)))
        return
    shown = bar if sys.stderr.isatty() else silent
    told = silent if quiet else announced(grid, max(workers, 1), shown)
    try:
        run(grid, store, overwrite, Where(workers, scheduler), told)
    except KeyboardInterrupt:
        _end("interrupted; what is done is kept: run the same command to go on", INTERRUPTED)
    if not quiet:
        print(f"done: {plan.cells:,} cells in {store}", file=sys.stderr)


@app.command()
def status(store: Store, form: Form = "table") -> None:
    """How much of a cube is done."""
    from sweep.questions.status import status as ask
    from sweep.tables import show_one

    show_one(ask(store), form)


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
    from sweep.questions.limits import limits as ask

    _show_cube(store, form, lambda: ask(store, efficiency, selection(sel)))


@app.command()
def best(store: Store, sel: Sel = None, form: Form = "table") -> None:
    """Strategies ranked for a slice of a cube, with what forbids the losers."""
    from sweep.questions.best import best as ask

    table = _show_cube(store, form, lambda: ask(store, selection(sel)))
    if not len(table) or not table["feasible"].any():
        _end("nothing in this slice is feasible", NOTHING_FEASIBLE)


def _show_cube(store: str, form: Any, question: Any) -> Any:
    """Ask a cube, print the rows, and say on stderr what they lack."""
    from sweep.questions.status import status as progress
    from sweep.tables import show

    done = progress(store)
    table = question()
    show(table, form)
    if not len(table):
        print("paradl: no samples of this slice fit its models", file=sys.stderr)
    if not done["complete"]:
        print(
            f"paradl: only {done['blocks_done']} of {done['blocks']} blocks are done; "
            "run the same paradl sweep again to finish",
            file=sys.stderr,
        )
    return table


Model = Annotated[str, typer.Option(help="A catalogue name or a file (.yaml, .net_sc ...).")]
Strategy = Annotated[str, typer.Option(help="Such as data+filter:group=8.")]
PEs = Annotated[int, typer.Option("--pe", help="Number of PEs.")]
Batch = Annotated[int, typer.Option(help="Samples a replica (weak) or a mini-batch (strong).")]
Dataset = Annotated[str | None, typer.Option(help="A catalogue name or a file.")]
System = Annotated[str, typer.Option(help="A catalogue name or a file.")]
Layers = Annotated[str | None, typer.Option(help="A .lc file: which layers are split.")]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="Fix an oracle parameter; may be repeated."),
]
Scaling = Annotated[
    Literal["weak", "strong"],
    typer.Option(help="Whether --batch counts a replica's samples or all."),
]
Collectives = Annotated[
    Literal["ring", "tree", "best"],
    typer.Option(help="Of collectives; best: the cheaper one."),
]
AllReduce = Annotated[
    Literal["ring", "hierarchical"],
    typer.Option(help="Of weights that a group replicates: one ring, or inside groups first."),
]
Iterations = Annotated[
    Literal["exact", "ceil"], typer.Option(help="D/B an epoch, or rounded up as loaders do.")
]
Optimizer = Annotated[
    Literal["sgd", "adam", "none"], typer.Option(help="Whose weight update is counted.")
]
Times = Annotated[
    Literal["measured", "roofline"],
    typer.Option(help="Measured compute times where there are some, or the roofline throughout."),
]


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
        form: Form = "table",
    ) -> None:
        from sweep.questions.predict import Configuration

        asked = Configuration(
            model={"file": model, "layers": layers} if layers else model,
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
            },
        )
        with named_as_options():
            grid = asked.grid()
        misfit = grid.misfit(0, 0)
        for warning in (*grid.warnings, *([misfit] if misfit else [])):
            print(f"paradl: warning: {warning}", file=sys.stderr)
        answer(grid, form)

    command.__doc__ = answer.__doc__
    return command


@app.command("predict")
@_about_one
def predict(grid: "Grid", form: Any) -> None:
    """Time, memory and limits of one configuration."""
    from sweep.questions.predict import prediction
    from sweep.tables import show_one

    show_one(prediction(grid), form)


@app.command("explain")
@_about_one
def explain(grid: "Grid", form: Any) -> None:
    """One configuration's formulas with their numbers, term by term and layer by layer."""
    from sweep.questions.explain import explanation
    from sweep.report import show_explanation

    show_explanation(explanation(grid), form)


@app.command()
def models(form: Form = "table") -> None:
    """Network architectures of the catalogue."""
    _list("models", form)


@app.command()
def datasets(form: Form = "table") -> None:
    """Data sets of the catalogue."""
    _list("datasets", form)


@app.command()
def systems(form: Form = "table") -> None:
    """Machines of the catalogue."""
    _list("systems", form)


@app.command()
def strategies(form: Form = "table") -> None:
    """The ten strategies."""
    _list("strategies", form)


def _list(kind: str, form: Any) -> None:
    from sweep.questions import catalogue
    from sweep.report import show_entries

    show_entries(getattr(catalogue, kind)(), form)


@app.command()
def schema() -> None:
    """The JSON schema of a spec, for editors."""
    import json

    from grids.spec import Spec

    print(json.dumps(Spec.model_json_schema(), indent=2))
