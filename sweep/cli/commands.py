"""Base class of commands: shared options, progress while waiting, exit codes."""

import sys
from functools import cache
from typing import Any, ClassVar, NoReturn

import typer
from typer.core import TyperCommand

from grids.reading.errors import ErrorPage, InputError
from sweep.engine.progress import report_waiting
from sweep.errors import RunError
from sweep.show.visible import tell

FAILED = 1
BAD_INPUT = 2  # typer's own exit code for a wrong option
MISSED = 3  # a --require-... option was not met
NOTHING_FEASIBLE = 4
INTERRUPTED = 130  # 128 + SIGINT, the convention of shells


def end(message: str, code: int, page: ErrorPage = "") -> NoReturn:
    """Exit with a message on stderr, and the page of the documentation that says more."""
    page = page or ("nothing-feasible" if code == NOTHING_FEASIBLE else "")
    # A message that names a page itself knows a better one.
    more = f" (docs/errors/{page}.md)" if page and "(docs/" not in message else ""
    tell(f"paradl: {message}{more}")
    sys.exit(code)


def find_page(error: BaseException | None) -> ErrorPage:
    """Return the page of an error, or of the one that it was raised in place of."""
    while error is not None:
        if isinstance(error, InputError | RunError) and error.page:
            return error.page
        error = error.__context__
    return ""


class PatientCommand(TyperCommand):
    """A command that says on stderr how long it has been computing, unless it is quiet.

    shared: a dataclass of further options. The command's function gets an instance of it as
    `context.obj`. Typer reads options from signatures, where every command would have to repeat
    twenty of them. is_patient: False where it says nothing.
    """

    shared: ClassVar[type | None] = None
    is_patient: ClassVar[bool] = True

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        if self.shared is not None:
            self.params += _make_command(self.shared).params

    def invoke(self, ctx: Any) -> Any:
        """Build the shared options and run the command."""
        with report_waiting(silent=bool(ctx.params.get("quiet")) or not self.is_patient):
            if self.shared is not None:
                command = _make_command(self.shared)
                # Left in `params`, Typer would pass them to a function that does not take them.
                given = {option.name: ctx.params.pop(option.name) for option in command.params}
                ctx.obj = ctx.invoke(command.callback, **given)
            return super().invoke(ctx)


@cache
def _make_command(shared: type) -> Any:
    """Make a command whose options are a dataclass's fields; its callback builds an instance."""
    app = typer.Typer(add_completion=False)
    app.command()(shared)
    return typer.main.get_command(app)
