"""Questions: a slice of a store or a design space by options, and notes on the answer.

With a store, options named after its axes select a slice, as `--sel` does.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, TypeVar

from paradl.grids.reading.errors import InputError, format_count
from paradl.sweep.cli import options
from paradl.sweep.cli.commands import NOTHING_FEASIBLE, end
from paradl.sweep.errors import RunError
from paradl.sweep.text.visible import tell

if TYPE_CHECKING:
    from paradl.grids.grid import Grid
    from paradl.sweep.cells import selection as cells
    from paradl.sweep.cells.reader import Reader
    from paradl.sweep.cells.space import Space

A = TypeVar("A", bound=Mapping[str, object])  # a row of an answer


@dataclass(frozen=True)
class Subject:
    """The slice of a store, or the design space, that a question is about.

    store: None for a design space given by options. max_global_batch: larger ones are forbidden; a
    design space has its own bound. notes: on the answer, so far.
    """

    source: "Reader"
    selection: "cells.Selection"
    store: str | None
    max_global_batch: int | None
    quiet: bool
    notes: list[str] = field(default_factory=list)

    @cached_property
    def space(self) -> "Space":
        """The cells of the slice."""
        from paradl.sweep.cells.source import open_space

        return open_space(self.source, self.selection)

    def note(self, text: str, always: bool = False) -> None:
        """Add a note to the answer, and print it on stderr unless that is quiet."""
        self.notes.append(text)
        if always or not self.quiet:
            tell(f"paradl: {text}")

    def ask(
        self,
        question: Callable[..., list[A]],
        form: options.Form,
        *values: object,
        bounded: bool = True,
        **settings: object,
    ) -> list[A]:
        """Return the rows of `question(source, *values, selection=..., **settings)`.

        bounded: pass `max_global_batch`, too. In JSON every row has the notes, such as that the
        store is unfinished, or that systems differ in precision or software.
        """
        # Some questions have no bound on the batch; a design space has its own among its
        # parameters.
        if bounded:
            settings["max_global_batch"] = self.max_global_batch
        elif self.max_global_batch is not None:
            raise InputError(
                "cannot be combined with a store here",
                where="--max-global-batch",
                advice="leave it out, or ask without a store, with --model and other options",
            )
        # Counted before the question: a sweep may be running, and no missing block may pass
        # unnoticed.
        missing = self.describe_missing()
        with advise(self.store is not None):
            rows = question(self.source, *values, selection=self.selection, **settings)
            systems = self.space.systems
        if missing and not rows:
            raise RunError(f"{self.store}: {missing}; none of this slice")
        if missing:
            self.note(missing, always=True)
        # Where strategies are ranked, the question has refused this.
        if mix := self.space.describe_mix():
            self.note(f"warning: {mix[0]}", always=True)
        # The user may not have meant to compare them.
        if len({(system.precision, system.software) for system in systems}) > 1:
            given = (f"{system.name} {system.precision} {system.software}" for system in systems)
            self.note(
                f"systems differ in precision or software: {', '.join(given)}; "
                "to compare like with like: NAME:precision=amp,software=ddp"
            )
        # Programs read stdout alone; people have read the notes on stderr.
        if form != "json" or not self.notes:
            return rows
        from paradl.sweep.answers.mapping import extend

        return [extend(row, {"notes": self.notes}) for row in rows]

    def list_layouts(self, most: int) -> "Subject":
        """Return the subject with the best layouts in place of strategies that leave them open."""
        from paradl.sweep.cells.source import open_source
        from paradl.sweep.questions.best.layouts import find_best_layouts

        return replace(self, source=open_source(find_best_layouts(self.space, most).grid))

    def tell_kept_groups(self) -> None:
        """Note that the cells of a store keep groups that were chosen without its bound."""
        grid = self.source.grid
        # A stated global batch does not depend on the group.
        if self.max_global_batch is None or grid.spec.scaling == "strong":
            return
        strategies = (grid.strategies[place] for place in self.space.places["strategy"])
        kept = [one.label for one in strategies if {*one.choices} - {"segments"}]
        if kept:
            self.note(
                f"cells of {', '.join(kept)} keep the groups that were best without "
                "--max-global-batch; to choose others ask without a store, with --model and other "
                "options"
            )

    def describe_missing(self) -> str:
        """Describe an unfinished sweep; empty if it is finished."""
        return describe_missing(*self.source.count_blocks())

    def end_if_empty(self, rows: Sequence[object]) -> None:
        """Exit with the reason if there are no rows."""
        if rows:
            return
        pairs = product(self.space.places["model"], self.space.places["dataset"])
        misfit = next(filter(None, (self.space.grid.misfit(*pair) for pair in pairs)), None)
        why = f"no samples of this slice fit its models: {misfit}" if misfit else "no rows to show"
        end(why, NOTHING_FEASIBLE)


@contextmanager
def advise(of_store: bool, given: Iterable[str] = ()) -> Iterator[None]:
    """Mention `--nearest` where a store's axis lacks a value; a design space has no selection.

    given: axes whose own options gave values, so that messages name these and not `--sel`.
    """
    try:
        yield
    except InputError as error:
        text = str(error)
        if not of_store:
            text = text.replace("selection: ", "space: ", 1)
        elif text.startswith("selection: no ") and "nearest" in text:
            text += "; --nearest takes it"
        for axis in given:
            text = re.sub(rf"^selection(?: {axis}: |: (?=no {axis} '))", f"{axis}: ", text)
        error.args = (text,)
        raise


def describe_missing(done: int, blocks: int) -> str:
    """Describe an unfinished sweep; empty if it is finished."""
    if done == blocks:
        return ""
    counts = f"{done:,} of {format_count(blocks, 'block')}"
    return f"only {counts} done; rerun the same paradl sweep to finish"


@dataclass(frozen=True)
class SpaceOptions(options.SettingOptions):
    """Options that select a slice of a store, or describe a design space; None: not given."""

    store: options.StoreOrNone = None
    selection: options.Selection = None
    nearest: options.Nearest = False
    model: options.Models = None
    dataset: options.Datasets = None
    system: options.Systems = None
    strategy: options.Strategies = None
    pe: options.PECounts = None
    batch: options.Batches = None
    quiet: options.Quiet = False

    def read(self, objective: str | None = None, others: str = "") -> Subject:
        """Return the store and its slice, or the design space. InputError: neither or both.

        others: strategies beside that of a launch script.
        """
        if self.store is not None:
            options.refuse_given({"launch": self.launch}, "cannot be combined with a store")
            return self._read_store(self.store)
        given, notes = self.read_launch(others)
        if notes:
            subject = replace(given, launch=None).read(objective)
            for note in notes:
                subject.note(note)
            return subject
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

    def _read_store(self, store: str) -> Subject:
        fixed = options.list_given(self, "parameters", "headroom") | self.list_shorthands()
        for name in fixed | self.list_settings():
            raise InputError(
                "fixed in the store",
                where=name,
                advice="leave it out, or ask without a store, with --model and other options",
            )
        # With a store, --pe 64 means --sel pe=64.
        given = options.list_given(self, *options.AXES)
        named = (f"{name}={value}" for name, value in given.items())
        selection: cells.Selection = options.parse_selection([*(self.selection or []), *named])
        from paradl.grids.notes import list_store_warnings
        from paradl.sweep.cells.source import open_source

        # Opened once: of `paradl limits` on a small store, four further times took half the time.
        reader = open_source(store)
        if selection:
            selection = _locate_values(reader.grid, selection, self.nearest, given)
        subject = Subject(reader, selection, store, self.max_global_batch, self.quiet)
        for warning in list_store_warnings(reader.grid, reader.versions):
            subject.note(f"warning: {warning}", always=True)
        return subject

    def _read_space(self, objective: str | None) -> Subject:
        options.check_names(options.list_given(self, *options.AXES, "calibration"), several=True)
        from paradl.grids.design_space import SpaceValues, is_unbounded, make_grid
        from paradl.grids.notes import list_warnings
        from paradl.sweep.cells.source import open_source

        settings = self.list_settings()
        if objective == "train-time" and self.tokens is None:
            # The time to the target needs epochs: the catalogue's, unless others are given.
            settings = {"convergence": "auto"} | settings
        values = SpaceValues(
            **options.list_given(self, *options.AXES),
            parameters=self.read_parameters(),
            settings=settings,
            **self.list_shorthands(),
        )
        grid = make_grid(values)
        subject = Subject(open_source(grid), {}, None, None, self.quiet)
        for warning in list_warnings(grid):
            subject.note(f"warning: {warning}", always=True)
        # With no bound the largest batch has the fewest iterations, and seems best.
        if is_unbounded(values) and objective in ("epoch-time", "pe-hours", "cost"):
            subject.note(
                "the global batch is limited only by memory and the data set; very large "
                "batches may not converge: give --batch, --max-global-batch, or --objective "
                "train-time"
            )
        return subject


def _locate_values(
    grid: "Grid", selection: "cells.Selection", nearest: bool, given: Iterable[str]
) -> "cells.Selection":
    """Return the selection; nearest: moved to values of the store's axes, which stderr names.

    InputError, before the question's slow imports: a value that the axes lack.
    """
    from paradl.sweep.cells.selection import find_nearest, locate_values, write_value
    from paradl.sweep.cube.variables import list_columns, list_coordinates

    coordinates, columns = list_coordinates(grid), list_columns(grid)
    with advise(True, given):
        taken = find_nearest(coordinates, selection, columns) if nearest else {}
    for axis, values in taken.items():
        texts = ", ".join(write_value(axis, value) for value in values)
        tell(f"paradl: the nearest {axis}: {texts}")
    with advise(True, given):
        locate_values(coordinates, {**selection, **taken}, columns)
    return {**selection, **taken}
