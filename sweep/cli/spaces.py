"""Options of every question: a store and its slice, or without a store a design space.

With a store, options that name its axes choose a slice of it, as `--sel` does.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from grids.reading.errors import InputError
from sweep.cli.commands import PatientCommand
from sweep.cli.shared_options import (
    MaxGlobalBatch,
    Nearest,
    Quiet,
    Selection,
    Set,
    StoreOrNone,
    Target,
    complete_entries,
    complete_strategies,
)
from sweep.cli.subjects import Subject, advise_nearest
from sweep.cli.values import check_names, parse_selection, parse_settings
from sweep.show.visible import tell

if TYPE_CHECKING:
    from sweep.cells import selection as cells

AXES = ("model", "dataset", "system", "strategy", "pe", "batch")
SETTINGS = (
    "oracle",
    "conventions",
    "scaling",
    "optimizer",
    "recompute",
    "calibration",
    "convergence",
    "target",
)


@dataclass(frozen=True)
class SpaceOptions:
    """The options that name a store and its slice, or describe a design space; None: not given."""

    store: StoreOrNone = None
    selection: Selection = None
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
    parameters: Set = None
    quiet: Quiet = False
    max_global_batch: MaxGlobalBatch = None
    # Typer reads no option inside of a union: optional ones are written anew, with their default
    # in the help text, since None is not what a space takes.
    oracle: Annotated[
        Literal["paper", "machine"] | None,
        typer.Option(help="Table III verbatim, or the machine as it is (default)."),
    ] = None
    conventions: Annotated[
        Literal["table", "authors"] | None,
        typer.Option(help="With --oracle paper: Table III's bounds (default), or its authors'."),
    ] = None
    scaling: Annotated[
        Literal["weak", "strong"] | None,
        typer.Option(help="--batch is samples per replica (weak, default) or in total."),
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
        if self.selection or self.nearest:
            raise InputError(
                "there is no store to slice",
                where="selection" if self.selection else "nearest",
                advice="give the values by --pe and others",
            )
        return self._read_space(objective)

    def _list_given(self, *names: str) -> dict[str, Any]:
        """The options of these names that are given."""
        given = {name: getattr(self, name) for name in names}
        return {name: value for name, value in given.items() if value is not None and value != []}

    def _read_store(self, store: str) -> Subject:
        """A store, and the slice that options name."""
        for name in self._list_given("parameters", *SETTINGS):
            raise InputError(
                "a store has its own",
                where=name,
                advice="leave it out, or ask without a store: --model and others",
            )
        named = [f"{name}={value}" for name, value in self._list_given(*AXES).items()]
        selection: cells.Selection = parse_selection([*(self.selection or []), *named])
        if selection:
            selection = _locate_values(store, selection, self.nearest)
        return Subject(store, selection, store, self.max_global_batch, self.quiet)

    def _read_space(self, objective: str | None) -> Subject:
        """A design space; what is not given is searched."""
        check_names(self._list_given(*AXES, "calibration"), several=True)
        from sweep.cells.design_space import SpaceValues, is_unbounded, make_grid

        parameters: dict[str, Any] = dict(parse_settings(self.parameters, "--set"))
        parameters |= self._list_given("max_global_batch")
        settings = self._list_given(*SETTINGS)
        if objective == "train-time":
            # Epochs to the target are needed: the catalogue's, unless others are given.
            settings = {"convergence": "auto"} | settings
        options = SpaceValues(**self._list_given(*AXES), parameters=parameters, settings=settings)
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


class SpaceCommand(PatientCommand):
    """A command about a store, or a design space."""

    shared = SpaceOptions


def _locate_values(store: str, selection: "cells.Selection", nearest: bool) -> "cells.Selection":
    """The selection, or the nearest values of the store's axes, named on stderr.

    InputError: a value that the axes lack, before a question's imports take their time.
    """
    from sweep.cells.selection import find_nearest, locate_values, write_value
    from sweep.cube.coordinates import list_columns, list_coordinates
    from sweep.cube.store import open_cube

    grid = open_cube(store).grid
    coordinates, columns = list_coordinates(grid), list_columns(grid)
    taken = find_nearest(coordinates, selection, columns) if nearest else {}
    for axis, values in taken.items():
        texts = ", ".join(write_value(axis, value) for value in values)
        tell(f"paradl: the nearest {axis}: {texts}")
    with advise_nearest():
        locate_values(coordinates, {**selection, **taken}, columns)
    return {**selection, **taken}
