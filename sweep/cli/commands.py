"""How commands are made and how they end: groups of options, signs of life, exit codes."""

import sys
from collections.abc import Callable
from dataclasses import is_dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Any, NoReturn

from sweep.engine.progress import report_waiting
from sweep.show.visible import tell

Command = Callable[..., None]

FAILED = 1
# As Click ends where an option is wrong.
BAD_INPUT = 2
MISSED = 3  # an assertion of the user's did not hold
NOTHING_FEASIBLE = 4
INTERRUPTED = 130  # 128 + SIGINT, as a shell has it


def end(message: str, code: int) -> NoReturn:
    """End the process with a message on stderr and an exit code."""
    tell(f"paradl: {message}")
    sys.exit(code)


def report_long(command: Command) -> Command:
    """The command, which says on stderr for how long it has been at work, unless it is quiet."""

    @wraps(command)
    def reporting(*given: Any, **options: Any) -> None:
        with report_waiting(silent=bool(options.get("quiet"))):
            command(*given, **options)

    return reporting


def spread_options(command: Command) -> Command:
    """The command whose dataclass, of options that several commands share, is spread into them.

    Typer reads options from a signature and knows no groups of them: the fields stand in the place
    of the dataclass, behind the command's own options, and the command is given an instance.
    """
    parameters = [*signature(command, eval_str=True).parameters.values()]
    (group,) = (each for each in parameters if is_dataclass(each.annotation))
    shared = [*signature(group.annotation, eval_str=True).parameters.values()]
    options = [*(each for each in parameters if each is not group), *shared]

    @wraps(command)
    def spread(**given: Any) -> None:
        fields = {each.name: given.pop(each.name) for each in shared}
        command(**{group.name: group.annotation(**fields)}, **given)

    spread.__annotations__ = {each.name: each.annotation for each in options}
    vars(spread)["__signature__"] = Signature(
        [each.replace(kind=Parameter.KEYWORD_ONLY) for each in options]
    )
    return spread
