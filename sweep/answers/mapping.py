"""Answers as notebooks and Python take them: mappings, DataFrames, and plain errors."""

from collections.abc import Callable
from functools import wraps
from inspect import signature
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from paradl.grids.entries.parameters import PARAMETERS
from paradl.grids.grid import LABELS
from paradl.grids.reading.errors import find_meant

if TYPE_CHECKING:
    import pandas as pd

# A row of an answer by field; `answers.types` has the fields of each question's.
Row = dict[str, Any]


class AnswerMapping(dict[str, Any]):
    """An answer by field, as `--format json` prints it; a notebook shows it as a table.

    >>> import paradl
    >>> space = {"dataset": "imagenet-226", "system": "abci"}
    >>> answer = paradl.predict("alexnet", "data", 64, 32, **space)
    >>> answer.to_frame().loc["memory_parts.weights", "value"]
    183236640.0
    """

    def to_dict(self) -> dict[str, Any]:
        """Return a plain copy."""
        return dict(self)

    def to_frame(self) -> "pd.DataFrame":
        """Return the rows of an answer that has rows, else a row for each field, by its name."""
        import pandas as pd  # late: it takes long to import

        if isinstance(self.get("rows"), list):
            return pd.DataFrame(self["rows"], dtype=object)
        flat = pd.json_normalize(self, max_level=2).T
        return flat.set_axis(["value"], axis=1).rename_axis("field")

    def _repr_html_(self) -> str:
        """Return the table that a notebook shows."""
        html: str = self.to_frame().to_html(max_rows=40, notebook=True)
        return html


P = ParamSpec("P")
R = TypeVar("R")


def name_arguments(question: Callable[P, R]) -> Callable[P, R]:
    """Return the question with errors that name it, and arguments that are misspelt.

    Keywords other than its arguments are axes: `best(ds, pe=64)`. Those of a user's own may have
    any name, but one that is nearly an argument's is a slip.
    """
    form = signature(question)
    arguments = [name for name in form.parameters if name != "axes"]

    @wraps(question)
    def ask(*args: P.args, **options: P.kwargs) -> R:
        try:
            form.bind(*args, **options)
        except TypeError as error:
            raise TypeError(f"{question.__name__}() {error}") from None
        for name in options:
            known = name in arguments or name in LABELS or name in PARAMETERS
            meant = None if known else find_meant(name, arguments)
            if meant is not None:
                raise TypeError(f"{question.__name__}() has no {name!r}; did you mean {meant!r}?")
        return question(*args, **options)

    return ask


def tabulate(name: str, question: Callable[P, list[dict[str, Any]]]) -> Callable[P, "pd.DataFrame"]:
    """Return the question under another name, with its rows as a DataFrame."""

    @wraps(question)
    def ask(*args: P.args, **options: P.kwargs) -> "pd.DataFrame":
        import pandas as pd  # late: it takes long to import

        # dtype=object: a None would turn whole numbers of its column into floats.
        return pd.DataFrame(question(*args, **options), dtype=object)

    ask.__name__ = ask.__qualname__ = name
    # What `help` shows: a wrapper has the signature of what it wraps.
    vars(ask)["__signature__"] = signature(question).replace(return_annotation="pd.DataFrame")
    return name_arguments(ask)
