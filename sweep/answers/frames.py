"""DataFrames of answers that are rows of plain data."""

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec

if TYPE_CHECKING:
    import pandas as pd

P = ParamSpec("P")


def tabulate(name: str, question: Callable[P, list[dict[str, Any]]]) -> Callable[P, "pd.DataFrame"]:
    """The question, by another name, that answers with a DataFrame of its rows."""

    @wraps(question)
    def ask(*args: P.args, **options: P.kwargs) -> "pd.DataFrame":
        import pandas as pd  # late: it takes long to import

        # Objects: else whole numbers would become floats where others are None.
        return pd.DataFrame(question(*args, **options), dtype=object)

    ask.__name__ = ask.__qualname__ = name
    return ask
