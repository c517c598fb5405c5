"""What every question takes: a store, or no store and the options of a design space.

With a store, options that name its axes choose a slice of it, as `--sel` does.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from inspect import Parameter, signature
from itertools import product
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_type_hints

import typer

from grids.reading.errors import InputError
from sweep.cli.assignments import parse_selection, parse_settings, take_nearest
from sweep.cli.completion import complete_entries, complete_strategies
from sweep.cli.exits import NOTHING_FEASIBLE, end
from sweep.cli.names import check_names
from sweep.cli.option_messages import speak_of_options
from sweep.cli.shared_options import MaxGlobalBatch, Nearest, Sel, Set, StoreOrNone, Target
from sweep.show.visible import tell

if TYPE_CHECKING:
    from sweep.cells.selection import Selection
    from sweep.cells.source import Source

Text = str | None
Command = Callable[..., None]


@dataclass(frozen=True)
class Asked:
    """What a command asks about: a source for the question's function, and what of it is meant.

    store: its place, None of a design space of options. max_global_batch: beyond it a store's
    cells are forbidden; a design space of options knows it itself.
    """

    source: "Source"
    selection: "Selection"
    store: str | None
    max_global_batch: int | None
    quiet: bool = False


All = Annotated[bool, typer.Option("--all", help="Show every row, not just a screenful.")]

# Each option of a question beside its own: what it is, and None where it is not given.
AXES = {
    "model": Annotated[
        Text,
        typer.Option(
            help="Without a store: names, or files.", autocompletion=complete_entries("model")
        ),
    ],
    "dataset": Annotated[
        Text, typer.Option(help="Names, or files.", autocompletion=complete_entries("dataset"))
    ],
    "system": Annotated[
        Text,
        typer.Option(
            help="Names, or files; without a store abci.",
            autocompletion=complete_entries("system"),
        ),
    ],
    "strategy": Annotated[
        Text,
        typer.Option(
            help="Such as data,data+filter:group=8; else all, groups searched.",
            autocompletion=complete_strategies,
        ),
    ],
    "pe": Annotated[Text, typer.Option(help="Such as 64,128 or 1..1024 or pow2:1..1024.")],
    "batch": Annotated[
        Text, typer.Option(help="Samples per replica, such as 16,32; else searched.")
    ],
}
SETTINGS = {
    "oracle": Annotated[
        Literal["paper", "machine"] | None,
        typer.Option(help="Table III verbatim, or the machine as it is (default)."),
    ],
    "scaling": Annotated[
        Literal["weak", "strong"] | None,
        typer.Option(help="Whether --batch counts a replica's samples (default) or all."),
    ],
    "optimizer": Annotated[
        Literal["sgd", "adam", "none"] | None,
        typer.Option(help="Whose weight update is counted (default sgd)."),
    ],
    "recompute": Annotated[
        Literal["none", "full"] | None, typer.Option(help="Run layers forward again, keep less.")
    ],
    "calibration": Annotated[
        Text, typer.Option(help="Fit to measured runs: a name, a file, none, or auto (default).")
    ],
    "convergence": Annotated[
        Text, typer.Option(help="Epochs to a target: a file, none, or auto: the catalogue's.")
    ],
    "target": Target,
}
OPTIONS: dict[str, Any] = {
    "store": StoreOrNone,
    "sel": Sel,
    "nearest": Nearest,
    **AXES,
    "settings": Set,
    "quiet": Annotated[bool, typer.Option("--quiet", help="No progress, no notes.")],
    "max_global_batch": MaxGlobalBatch,
    **SETTINGS,
}

FLAGS = ("quiet", "nearest")


def ask_space(question: Command) -> Command:
    """A command of a question about `Asked`: it takes these options, and the question's own."""
    hints = get_type_hints(question, include_extras=True)
    own = [
        each.replace(annotation=hints[name])
        for name, each in signature(question).parameters.items()
        if name != "asked"
    ]
    shared = [
        Parameter(
            name,
            Parameter.KEYWORD_ONLY,
            default=False if name in FLAGS else None,
            annotation=each,
        )
        for name, each in OPTIONS.items()
    ]

    def command(**given: Any) -> None:
        own_values = {each.name: given.pop(each.name) for each in own}
        quiet = bool(given.pop("quiet"))
        asked = replace(read_asked(given, own_values.get("objective")), quiet=quiet)
        question(asked=asked, **own_values)

    order = [shared[0], *(each.replace(kind=Parameter.KEYWORD_ONLY) for each in own), *shared[1:]]
    told = {
        "__name__": question.__name__,
        "__doc__": question.__doc__,
        # What Typer reads the options of.
        "__signature__": signature(question).replace(parameters=order),
        "__annotations__": {each.name: each.annotation for each in order},
    }
    for name, value in told.items():
        setattr(command, name, value)
    return command


def read_asked(given: dict[str, Any], objective: str | None) -> Asked:
    """The store and its slice, or the design space, of a command's options."""
    if given["store"] is not None:
        return _read_store(given)
    if given["model"] is None:
        raise InputError(
            "expected a store, or a model",
            where="--model",
            advice="name a cube's folder, or give --model, --dataset, --system and --pe",
        )
    for name in ("sel", "nearest"):
        if given[name]:
            raise InputError(
                "there is no store to slice",
                where=f"--{name}",
                advice="give the values by --pe and others",
            )
    return _read_options(given, objective)


def _read_store(given: dict[str, Any]) -> Asked:
    """A store, and the slice that options name."""
    for name in ("settings", *SETTINGS):
        if given[name]:
            option = "--set" if name == "settings" else f"--{name}"
            raise InputError(
                "a store has its own",
                where=option,
                advice="leave it out, or ask without a store: --model and others",
            )
    named = [f"{name}={given[name]}" for name in AXES if given[name] is not None]
    selection: Selection = parse_selection([*(given["sel"] or []), *named])
    if given["nearest"]:
        selection = take_nearest(given["store"], selection)
    return Asked(given["store"], selection, given["store"], given["max_global_batch"])


def _read_options(given: dict[str, Any], objective: str | None) -> Asked:
    """A design space of options, what is not given searched."""
    check_names(given, several=True)
    from sweep.cells.design_space import Options, is_unbounded, make_grid

    parameters: dict[str, Any] = dict(parse_settings(given["settings"], "--set"))
    if given["max_global_batch"] is not None:
        parameters["max_global_batch"] = given["max_global_batch"]
    settings = {name: given[name] for name in SETTINGS if given[name] is not None}
    if objective == "train-time":
        settings = {"convergence": "auto"} | settings
    axes = {name: given[name] for name in AXES if given[name] is not None}
    options = Options(**axes, parameters=parameters, settings=settings)
    with speak_of_options():
        grid = make_grid(options)
    for warning in grid.warnings:
        tell(f"paradl: warning: {warning}")
    if is_unbounded(options) and objective in ("epoch-time", "pe-hours", "cost"):
        tell(
            "paradl: the global batch is limited only by memory and the data set; very large "
            "batches may not converge: give --batch, --max-global-batch, or --objective train-time"
        )
    return Asked(grid, {}, None, None)


def ask_cube(asked: Asked, question: Any) -> Any:
    """The answer to a question.

    Says on stderr what a store lacks of it, that it takes long, and that systems differ in
    precision or software.
    """
    from sweep.cells.space import open_space
    from sweep.engine.progress import report_waiting

    with report_waiting(silent=asked.quiet), _advise_nearest():
        rows = _ask_finished(asked, question)
        systems = open_space(asked.source, asked.selection).systems
    if len({(each.precision, each.software) for each in systems}) > 1 and not asked.quiet:
        settings = ", ".join(f"{each.name} {each.precision} {each.software}" for each in systems)
        tell(
            f"paradl: systems differ in precision or software: {settings}; "
            "to compare like with like: NAME:precision=amp,software=ddp"
        )
    return rows


@contextmanager
def _advise_nearest() -> Iterator[None]:
    """Name the option for values that a store's axes do not have."""
    try:
        yield
    except InputError as error:
        text = str(error)
        if text.startswith("selection: no ") and "nearest" in text:
            raise InputError(f"{text}; --nearest takes it") from None
        raise


def _ask_finished(asked: Asked, question: Any) -> Any:
    """The answer to a question; says on stderr what a store lacks of it."""
    if asked.store is None:
        return question()
    from sweep.engine.verify import tell_damage
    from sweep.questions.status import count_blocks

    with tell_damage(asked.store):
        # Counted before: what a sweep finishes meanwhile is told as missing, and nothing missing as
        # done.
        done, blocks = count_blocks(asked.store)
        answer = question()
    tell_missing(done, blocks)
    return answer


def tell_missing(done: int, blocks: int) -> None:
    """Say on stderr that a sweep was not finished, if so."""
    if done < blocks:
        tell(
            f"paradl: only {done} of {blocks} blocks are done; "
            "run the same paradl sweep again to finish"
        )


def end_if_empty(asked: Asked, rows: Any) -> None:
    """End where nothing can be said, and say why."""
    if len(rows):
        return
    from sweep.cells.space import open_space

    space = open_space(asked.source, asked.selection)
    pairs = product(space.places["model"], space.places["dataset"])
    misfits = dict.fromkeys(filter(None, (space.grid.misfit(*pair) for pair in pairs)))
    misfit = next(iter(misfits), None)
    why = f"no samples of this slice fit its models: {misfit}" if misfit else "no rows to show"
    end(why, NOTHING_FEASIBLE)
