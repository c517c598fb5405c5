"""What shells complete: names of the catalogue and strategies, in lists too."""

from collections.abc import Callable, Iterable
from typing import Literal

Completer = Callable[[str], list[str]]


def complete_entries(kind: Literal["model", "dataset", "system"]) -> Completer:
    """The names of catalogue entries that begin so."""

    def complete(incomplete: str) -> list[str]:
        from grids.names import list_names  # late: each command line imports this file

        return _complete_last(incomplete, list_names(kind))

    return complete


def complete_strategies(incomplete: str) -> list[str]:
    """The strategies that begin so."""
    from grids.entries.strategies import TABLE_III

    return _complete_last(incomplete, TABLE_III)


def _complete_last(incomplete: str, names: Iterable[str]) -> list[str]:
    """A list such as `abci,dgx` with its last name in full."""
    before, comma, last = incomplete.rpartition(",")
    return [f"{before}{comma}{name}" for name in names if name.startswith(last)]
