"""The subject of a question, a store's slice or a design space, and notes on its answer."""

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
    """The source of a question, and the slice of it that is meant.

    store: its place; None: a design space of options. max_global_batch: beyond it a store's cells
    are forbidden; a design space of options knows it itself. notes: on the answer, so far.
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

        Notes which blocks a store lacks, and that systems differ in precision or software.
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
            # Counted before: a block that a sweep finishes meanwhile may be named as missing, but
            # none that is missing goes unnamed.
            done, blocks = count_blocks(store)
            rows = question()
        if done < blocks:
            self.note(describe_missing(done, blocks), always=True)
        return rows

    def _compare_systems(self) -> None:
        """Note that systems differ in settings that were not chosen to be compared."""
        from sweep.cells.space import open_space

        systems = open_space(self.source, self.selection).systems
        if len({(system.precision, system.software) for system in systems}) > 1:
            settings = (f"{system.name} {system.precision} {system.software}" for system in systems)
            self.note(
                f"systems differ in precision or software: {', '.join(settings)}; "
                "to compare like with like: NAME:precision=amp,software=ddp"
            )

    def end_if_empty(self, rows: Rows) -> None:
        """End with the reason, if there are no rows."""
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
    """Name the option that takes the nearest value, where a store's axis lacks the one given."""
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


def tell_missing(done: int, blocks: int) -> None:
    """Say on stderr that a sweep was not finished, if so."""
    if done < blocks:
        tell(f"paradl: {describe_missing(done, blocks)}")
