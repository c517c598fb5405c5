"""Turn questions that answer with rows of plain data into questions that return a DataFrame."""

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec

if TYPE_CHECKING:
    import pandas as pd

P = ParamSpec("P")


def tabulate(name: str, question: Callable[P, list[dict[str, Any]]]) -> Callable[P, "pd.DataFrame"]:
    """Return the question under another name, with its rows as a DataFrame."""

    @wraps(question)
    def ask(*args: P.args, **options: P.kwargs) -> "pd.DataFrame":
        import pandas as pd  # late: it takes long to import

        # dtype=object: a None would turn whole numbers of its column into floats.
        return pd.DataFrame(question(*args, **options), dtype=object)

    ask.__name__ = ask.__qualname__ = name
    return ask
