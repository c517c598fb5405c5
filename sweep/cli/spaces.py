"""Options of every question: a store and a slice of it, or a design space.

With a store, options named after its axes select a slice, as `--sel` does.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

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
# Options that are keys of a spec.
SETTINGS = (
    *("oracle", "conventions", "scaling", "optimizer", "recompute", "calibration"),
    *("convergence", "target"),
)


@dataclass(frozen=True)
class SpaceOptions:
    """Options that select a slice of a store, or describe a design space; None: not given."""

    store: StoreOrNone = None
    selection: Selection = None
    nearest: Nearest = False
    model: Annotated[
        str | None,
        typer.Option(
            help="Networks: names or files, required without a store.",
            autocompletion=complete_entries("model"),
        ),
    ] = None
    dataset: Annotated[
        str | None,
        typer.Option(help="Data sets: names or files.", autocompletion=complete_entries("dataset")),
    ] = None
    system: Annotated[
        str | None,
        typer.Option(
            help="Machines: names or files; default without a store: abci.",
            autocompletion=complete_entries("system"),
        ),
    ] = None
    strategy: Annotated[
        str | None,
        typer.Option(
            help="Strategies, such as data,data+filter:group=8; default: all, best groups.",
            autocompletion=complete_strategies,
        ),
    ] = None
    pe: Annotated[
        str | None, typer.Option(help="PE counts: 64,128 or 1..1024 or pow2:1..1024.")
    ] = None
    batch: Annotated[
        str | None, typer.Option(help="Samples per replica, such as 16,32; default: the best.")
    ] = None
    parameters: Set = None
    quiet: Quiet = False
    max_global_batch: MaxGlobalBatch = None
    # Typer ignores options inside a union, so the optional ones are written out again. Their help
    # states the default, since None only says that the option was not given.
    oracle: Annotated[
        Literal["paper", "machine"] | None,
        typer.Option(help="Table III verbatim, or a model of the machine as it is (default)."),
    ] = None
    conventions: Annotated[
        Literal["table", "authors"] | None,
        typer.Option(
            help="With --oracle paper: bounds of Table III (default) or the authors' code."
        ),
    ] = None
    scaling: Annotated[
        Literal["weak", "strong"] | None,
        typer.Option(help="--batch is samples per replica (weak, default) or in total."),
    ] = None
    optimizer: Annotated[
        Literal["sgd", "adam", "none"] | None,
        typer.Option(help="Optimizer whose weight update is counted (default sgd)."),
    ] = None
    recompute: Annotated[
        Literal["none", "full"] | None,
        typer.Option(help="Rerun the forward pass during the backward pass, to keep less."),
    ] = None
    calibration: Annotated[
        str | None,
        typer.Option(help="Fit to measured runs: a name, a file, none, or auto (default)."),
    ] = None
    convergence: Annotated[
        str | None,
        typer.Option(help="Epochs to a target: a file, none, or auto for the catalogue's."),
    ] = None
    target: Target = None

    def read(self, objective: str | None = None) -> Subject:
        """Return the store and its slice, or the design space. InputError: neither or both."""
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
                advice="give the values with --pe and other options",
            )
        return self._read_space(objective)

    def _list_given(self, *names: str) -> dict[str, Any]:
        """Return those of these options that are given, by name."""
        given = {name: getattr(self, name) for name in names}
        return {name: value for name, value in given.items() if value is not None and value != []}

    def _read_store(self, store: str) -> Subject:
        for name in self._list_given("parameters", *SETTINGS):
            raise InputError(
                "fixed in the store",
                where=name,
                advice="leave it out, or ask without a store, with --model and other options",
            )
        named = [f"{name}={value}" for name, value in self._list_given(*AXES).items()]
        selection: cells.Selection = parse_selection([*(self.selection or []), *named])
        if selection:
            selection = _locate_values(store, selection, self.nearest)
        return Subject(store, selection, store, self.max_global_batch, self.quiet)

    def _read_space(self, objective: str | None) -> Subject:
        check_names(self._list_given(*AXES, "calibration"), several=True)
        from sweep.cells.design_space import SpaceValues, is_unbounded, make_grid

        parameters: dict[str, Any] = dict(parse_settings(self.parameters, "--set"))
        parameters |= self._list_given("max_global_batch")
        settings = self._list_given(*SETTINGS)
        if objective == "train-time":
            # The time to the target needs epochs: the catalogue's, unless others are given.
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

    shared: ClassVar[type[SpaceOptions]] = SpaceOptions


def _locate_values(store: str, selection: "cells.Selection", nearest: bool) -> "cells.Selection":
    """Return the selection; nearest: moved to values of the store's axes, which stderr names.

    InputError, before the question's slow imports: a value that the axes lack.
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
