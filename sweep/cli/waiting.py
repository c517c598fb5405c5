"""Commands that may take long, and say so on stderr while they do."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from sweep.engine.progress import report_waiting


def report_long(command: Callable[..., None]) -> Callable[..., None]:
    """The command, which says on stderr for how long it has been at work, unless it is quiet."""

    @wraps(command)
    def reporting(*given: Any, **options: Any) -> None:
        with report_waiting(silent=bool(options.get("quiet"))):
            command(*given, **options)

    return reporting
