"""Answers as notebooks and Python take them: mappings, DataFrames, and plain errors."""

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from inspect import signature
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar, cast

from paradl.grids.entries.layout_words import LAYOUT
from paradl.grids.entries.parameters import PARAMETERS
from paradl.grids.grid import LABELS
from paradl.grids.reading.errors import find_meant

if TYPE_CHECKING:
    import pandas as pd

Row = dict[str, Any]

# Type of an answer, of `answers.types`.
A = TypeVar("A", bound=Mapping[str, object])


def extend(row: A, further: Mapping[str, object]) -> A:
    """The row with fields whose names its type cannot know: those of axes, and of percentiles."""
    return cast(A, {**row, **further})


class AnswerMapping(dict[str, Any], Generic[A]):
    """An answer by field, as `--format json` prints it; a notebook shows it as a table.

    >>> import paradl
    >>> space = {"dataset": "imagenet-226", "system": "abci"}
    >>> answer = paradl.predict("alexnet", "data", 64, 32, **space)
    >>> answer.to_frame().loc["memory_parts.weights", "value"]
    183236640.0
    """

    def __init__(self, answer: A) -> None:
        super().__init__(answer)

    def to_dict(self) -> A:
        """Return a plain copy."""
        return cast(A, dict(self))

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
            known = name in (*arguments, *LABELS, LAYOUT) or name in PARAMETERS
            meant = None if known else find_meant(name, arguments)
            if meant is not None:
                raise TypeError(f"{question.__name__}() has no {name!r}; did you mean {meant!r}?")
        return question(*args, **options)

    return ask


def tabulate(
    name: str, question: Callable[P, Sequence[Mapping[str, object]]]
) -> Callable[P, "pd.DataFrame"]:
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
