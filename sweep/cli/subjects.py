"""The subject of a question (a slice of a store, or a design space), and notes on the answer."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import product
from typing import TYPE_CHECKING, Any, TypeAlias

from grids.reading.errors import InputError
from sweep.cli.commands import NOTHING_FEASIBLE, end
from sweep.cli.shared_options import Form
from sweep.show.visible import tell

if TYPE_CHECKING:
    from sweep.cells.selection import Selection
    from sweep.cells.source import Source

Rows: TypeAlias = list[dict[str, Any]]


@dataclass(frozen=True)
class Subject:
    """What a question is about.

    store: None for a design space given by options. max_global_batch: larger ones are forbidden; a
    design space has its own bound. notes: on the answer, so far.
    """

    source: "Source"
    selection: "Selection"
    store: str | None
    max_global_batch: int | None
    quiet: bool
    notes: list[str] = field(default_factory=list)

    def note(self, text: str, always: bool = False) -> None:
        """Add a note to the answer, and print it on stderr unless that is quiet."""
        self.notes.append(text)
        if always or not self.quiet:
            tell(f"paradl: {text}")

    def ask(self, question: Callable[[], Rows], form: Form) -> Rows:
        """Return the rows of the answer; for JSON every row carries the notes.

        Notes whether the store is unfinished, and whether systems differ in precision or software.
        """
        with advise_nearest():
            rows = question() if self.store is None else self._ask_store(self.store, question)
            self._compare_systems()
        if form != "json" or not self.notes:
            return rows
        return [{**row, "notes": self.notes} for row in rows]

    def _ask_store(self, store: str, question: Callable[[], Rows]) -> Rows:
        from sweep.engine.verification import tell_damage
        from sweep.questions.status import count_blocks

        with tell_damage(store):
            # Counted before the question: a sweep may be running, and no missing block may pass
            # unnoticed.
            done, blocks = count_blocks(store)
            rows = question()
        if done < blocks:
            self.note(describe_missing(done, blocks), always=True)
        return rows

    def _compare_systems(self) -> None:
        """Note if systems differ in settings that the user may not have meant to compare."""
        from sweep.cells.space import open_space

        systems = open_space(self.source, self.selection).systems
        if len({(system.precision, system.software) for system in systems}) > 1:
            settings = (f"{system.name} {system.precision} {system.software}" for system in systems)
            self.note(
                f"systems differ in precision or software: {', '.join(settings)}; "
                "to compare like with like: NAME:precision=amp,software=ddp"
            )

    def end_if_empty(self, rows: Rows) -> None:
        """Exit with the reason if there are no rows."""
        if rows:
            return
        from sweep.cells.space import open_space

        space = open_space(self.source, self.selection)
        pairs = product(space.places["model"], space.places["dataset"])
        misfit = next(filter(None, (space.grid.misfit(*pair) for pair in pairs)), None)
        why = f"no samples of this slice fit its models: {misfit}" if misfit else "no rows to show"
        end(why, NOTHING_FEASIBLE)


@contextmanager
def advise_nearest() -> Iterator[None]:
    """Mention `--nearest` where a store's axis lacks a selected value."""
    try:
        yield
    except InputError as error:
        text = str(error)
        if text.startswith("selection: no ") and "nearest" in text:
            raise InputError(f"{text}; --nearest takes it") from None
        raise


def describe_missing(done: int, blocks: int) -> str:
    """Describe an unfinished sweep."""
    return f"only {done} of {blocks} blocks are done; rerun the same paradl sweep to finish"


def tell_missing(done: int, blocks: int) -> None:
    """Say on stderr if a sweep is unfinished."""
    if done < blocks:
        tell(f"paradl: {describe_missing(done, blocks)}")
