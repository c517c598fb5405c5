"""The subject of every question: a store, or no store and the options of a design space.

With a store, options that name its axes choose a slice of it, as `--sel` does.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import product
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import typer

from grids.reading.errors import InputError
from sweep.cli.assignments import (
    expect_values,
    parse_selection,
    parse_settings,
    take_nearest,
)
from sweep.cli.commands import NOTHING_FEASIBLE, end
from sweep.cli.names import check_names
from sweep.cli.option_messages import speak_of_options
from sweep.cli.shared_options import (
    Form,
    MaxGlobalBatch,
    Nearest,
    Sel,
    Set,
    StoreOrNone,
    Target,
    complete_entries,
    complete_strategies,
)
from sweep.show.visible import tell

if TYPE_CHECKING:
    from sweep.cells.selection import Selection
    from sweep.cells.source import Source

Rows: TypeAlias = list[dict[str, Any]]

All = Annotated[bool, typer.Option("--all", help="Show every row, not just a screenful.")]

AXES = ("model", "dataset", "system", "strategy", "pe", "batch")
SETTINGS = (
    *("oracle", "scaling", "optimizer", "recompute", "calibration", "convergence", "target"),
)


@dataclass(frozen=True)
class Subject:
    """A source for a question's function, and what of it is meant.

    store: its place, None of a design space of options. max_global_batch: beyond it a store's
    cells are forbidden; a design space of options knows it itself. notes: on the answer, so far.
    """

    source: "Source"
    selection: "Selection"
    store: str | None
    max_global_batch: int | None
    quiet: bool
    notes: list[str] = field(default_factory=list)

    def note(self, text: str, always: bool = False) -> None:
        """Keep a note on the answer, and say it on stderr, unless it is quiet there."""
        self.notes.append(text)
        if always or not self.quiet:
            tell(f"paradl: {text}")

    def ask(self, question: Callable[[], Rows], form: Form) -> Rows:
        """The rows that answer a question; in JSON each has the notes on the answer, if any.

        Notes what a store lacks, and that systems differ in precision or software; says on stderr
        that it takes long.
        """
        from sweep.engine.progress import report_waiting

        with report_waiting(silent=self.quiet), _advise_nearest():
            rows = self._ask_finished(question)
            self._compare_systems()
        if form != "json" or not self.notes:
            return rows
        return [{**row, "notes": self.notes} for row in rows]

    def _ask_finished(self, question: Callable[[], Rows]) -> Rows:
        """The answer to a question; notes which blocks a store lacks."""
        if self.store is None:
            return question()
        from sweep.engine.verify import tell_damage
        from sweep.questions.status import count_blocks

        with tell_damage(self.store):
            # Counted before: what a sweep finishes meanwhile is told as missing, and nothing
            # missing as done.
            done, blocks = count_blocks(self.store)
            rows = question()
        if done < blocks:
            self.note(describe_missing(done, blocks), always=True)
        return rows

    def _compare_systems(self) -> None:
        """Note that systems differ in what nobody asked to compare."""
        from sweep.cells.space import open_space

        systems = open_space(self.source, self.selection).systems
        if len({(each.precision, each.software) for each in systems}) > 1:
            settings = ", ".join(
                f"{each.name} {each.precision} {each.software}" for each in systems
            )
            self.note(
                f"systems differ in precision or software: {settings}; "
                "to compare like with like: NAME:precision=amp,software=ddp"
            )

    def end_if_empty(self, rows: list[Any]) -> None:
        """End where there are no rows, and say why."""
        if rows:
            return
        from sweep.cells.space import open_space

        space = open_space(self.source, self.selection)
        pairs = product(space.places["model"], space.places["dataset"])
        misfits = filter(None, (space.grid.misfit(*pair) for pair in pairs))
        misfit = next(misfits, None)
        why = f"no samples of this slice fit its models: {misfit}" if misfit else "no rows to show"
        end(why, NOTHING_FEASIBLE)


@dataclass(frozen=True)
class SpaceOptions:
    """The options that name a store and its slice, or describe a design space; None: not given."""

    store: StoreOrNone = None
    sel: Sel = None
    nearest: Nearest = False
    model: Annotated[
        str | None,
        typer.Option(
            help="Without a store: names, or files.", autocompletion=complete_entries("model")
        ),
    ] = None
    dataset: Annotated[
        str | None,
        typer.Option(help="Names, or files.", autocompletion=complete_entries("dataset")),
    ] = None
    system: Annotated[
        str | None,
        typer.Option(
            help="Names, or files; without a store abci.",
            autocompletion=complete_entries("system"),
        ),
    ] = None
    strategy: Annotated[
        str | None,
        typer.Option(
            help="Such as data,data+filter:group=8; else all, groups searched.",
            autocompletion=complete_strategies,
        ),
    ] = None
    pe: Annotated[str | None, typer.Option(help="Such as 64,128 or 1..1024 or pow2:1..1024.")] = (
        None
    )
    batch: Annotated[
        str | None, typer.Option(help="Samples per replica, such as 16,32; else searched.")
    ] = None
    settings: Set = None
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress, no notes.")] = False
    max_global_batch: MaxGlobalBatch = None
    oracle: Annotated[
        Literal["paper", "machine"] | None,
        typer.Option(help="Table III verbatim, or the machine as it is (default)."),
    ] = None
    scaling: Annotated[
        Literal["weak", "strong"] | None,
        typer.Option(help="Whether --batch counts a replica's samples (default) or all."),
    ] = None
    optimizer: Annotated[
        Literal["sgd", "adam", "none"] | None,
        typer.Option(help="The optimizer whose weight update is counted (default sgd)."),
    ] = None
    recompute: Annotated[
        Literal["none", "full"] | None, typer.Option(help="Run layers forward again, keep less.")
    ] = None
    calibration: Annotated[
        str | None,
        typer.Option(help="Fit to measured runs: a name, a file, none, or auto (default)."),
    ] = None
    convergence: Annotated[
        str | None,
        typer.Option(help="Epochs to a target: a file, none, or auto: the catalogue's."),
    ] = None
    target: Target = None

    def read(self, objective: str | None = None) -> Subject:
        """The store and its slice, or the design space."""
        if self.store is not None:
            return self._read_store(self.store)
        if self.model is None:
            raise InputError(
                "expected a store, or a model",
                where="--model",
                advice="name a cube's folder, or give --model, --dataset, --system and --pe",
            )
        for name in ("sel", "nearest"):
            if getattr(self, name):
                raise InputError(
                    "there is no store to slice",
                    where=f"--{name}",
                    advice="give the values by --pe and others",
                )
        return self._read_space(objective)

    def _list_given(self, names: tuple[str, ...]) -> dict[str, Any]:
        """Those of the options that are given."""
        given = {name: getattr(self, name) for name in names}
        return {name: value for name, value in given.items() if value is not None}

    def _read_store(self, store: str) -> Subject:
        """A store, and the slice that options name."""
        for name in self._list_given(("settings", *SETTINGS)):
            raise InputError(
                "a store has its own",
                where="--set" if name == "settings" else f"--{name}",
                advice="leave it out, or ask without a store: --model and others",
            )
        named = [f"{name}={value}" for name, value in self._list_given(AXES).items()]
        selection: Selection = parse_selection([*(self.sel or []), *named])
        if self.nearest:
            selection = take_nearest(store, selection)
        with _advise_nearest():
            expect_values(store, selection)
        return Subject(store, selection, store, self.max_global_batch, self.quiet)

    def _read_space(self, objective: str | None) -> Subject:
        """A design space; what is not given is searched."""
        check_names(self._list_given((*AXES, "calibration")), several=True)
        from sweep.cells.design_space import Options, is_unbounded, make_grid

        parameters: dict[str, Any] = dict(parse_settings(self.settings, "--set"))
        parameters |= self._list_given(("max_global_batch",))
        settings = self._list_given(SETTINGS)
        if objective == "train-time":
            settings = {"convergence": "auto"} | settings
        options = Options(**self._list_given(AXES), parameters=parameters, settings=settings)
        with speak_of_options():
            grid = make_grid(options)
        subject = Subject(grid, {}, None, None, self.quiet)
        for warning in grid.warnings:
            subject.note(f"warning: {warning}", always=True)
        if is_unbounded(options) and objective in ("epoch-time", "pe-hours", "cost"):
            subject.note(
                "the global batch is limited only by memory and the data set; very large "
                "batches may not converge: give --batch, --max-global-batch, or --objective "
                "train-time"
            )
        return subject


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


def describe_missing(done: int, blocks: int) -> str:
    """A note on a sweep that was not finished."""
    return f"only {done} of {blocks} blocks are done; run the same paradl sweep again to finish"
