"""Commands: the options that several share, signs of life, exit codes."""

import sys
from functools import cache
from typing import Any, ClassVar, NoReturn

import typer
from typer.core import TyperCommand

from sweep.engine.progress import report_waiting
from sweep.show.visible import tell

FAILED = 1
BAD_INPUT = 2  # as typer itself ends where an option is wrong
MISSED = 3  # an assertion of the user's did not hold
NOTHING_FEASIBLE = 4
INTERRUPTED = 130  # 128 + SIGINT, as a shell has it


def end(message: str, code: int) -> NoReturn:
    """End the process with a message on stderr and an exit code."""
    tell(f"paradl: {message}")
    sys.exit(code)


class PatientCommand(TyperCommand):
    """A command that says on stderr for how long it has been at work, unless it is quiet.

    shared: a dataclass of options that the command takes too, behind its own; the function of the
    command finds an instance of it in `context.obj`. Typer reads options from signatures, where
    twenty shared ones would stand again in every command. is_patient: False where it never tells.
    """

    shared: ClassVar[type | None] = None
    is_patient: ClassVar[bool] = True

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        if self.shared is not None:
            self.params += _make_command(self.shared).params

    def invoke(self, ctx: Any) -> Any:
        """Build the shared options, and run the command."""
        with report_waiting(silent=bool(ctx.params.get("quiet")) or not self.is_patient):
            if self.shared is not None:
                command = _make_command(self.shared)
                # Typer would pass them to the function, whose signature lacks them.
                given = {option.name: ctx.params.pop(option.name) for option in command.params}
                ctx.obj = ctx.invoke(command.callback, **given)
            return super().invoke(ctx)


@cache
def _make_command(shared: type) -> Any:
    """Make a command whose options are the fields of a dataclass, and which builds an instance."""
    app = typer.Typer(add_completion=False)
    app.command()(shared)
    return typer.main.get_command(app)
