"""Questions under their public names: with rows as a DataFrame, and with plain errors."""

from collections.abc import Callable
from functools import wraps
from inspect import signature
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

if TYPE_CHECKING:
    import pandas as pd

P = ParamSpec("P")
R = TypeVar("R")


def name_arguments(question: Callable[P, R]) -> Callable[P, R]:
    """Return the question with errors that say how a slice is given: `best(ds, pe=64)`."""
    form = signature(question)

    @wraps(question)
    def ask(*args: P.args, **options: P.kwargs) -> R:
        try:
            form.bind(*args, **options)
        except TypeError as error:
            wrong = {name: options[name] for name in options if name not in form.parameters}
            advice = f"; to select values: selection={wrong}" if wrong else ""
            raise TypeError(f"{ask.__name__}() {error}{advice}") from None
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
    return name_arguments(ask)
