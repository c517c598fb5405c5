"""Classes of commands and of their group: shared options, exit codes, progress, advice."""

import sys
from functools import cache
from typing import Any, ClassVar, NoReturn

import typer
from typer import Typer
from typer.core import TyperCommand, TyperGroup

from paradl.grids.reading.errors import ErrorPage, InputError
from paradl.sweep.cli.option_messages import list_options, name_options
from paradl.sweep.engine.progress import report_waiting
from paradl.sweep.errors import RunError
from paradl.sweep.text.visible import tell

# Scripts tell a failed run (1) from a wrong command (2) and a broken assertion (3) by these.
FAILED = 1
BAD_INPUT = 2  # typer's own exit code for a wrong option
MISSED = 3  # a --require-... option was not met
NOTHING_FEASIBLE = 4
INTERRUPTED = 130  # 128 + SIGINT, the convention of shells

# Typer has no public name for the errors of a command line.
UsageError: Any = typer.BadParameter.__mro__[1]

SHORT = {"--json": ("--format", "json")}
# Options of other programs, and what to write instead.
ELSEWHERE = {
    "--software": "--system NAME:software=ddp",
    **dict.fromkeys(("--fp16", "--amp", "--bf16", "--tf32"), "--precision, such as bf16"),
    **dict.fromkeys(("--gpu", "--gpus", "--pes", "--devices", "--ranks", "--world-size"), "--pe"),
    **dict.fromkeys(("--batch-size", "--bs", "--local-batch"), "--batch"),
    "--scaling": "--global-batch for strong scaling, --batch for weak",
    **dict.fromkeys(("--machine", "--cluster"), "--system"),
    "--network": "--model",
    "--data": "--dataset",
    "--time-limit": "--effort, which a busy machine does not change",
    "--bandwidth": "--set 'inter_bandwidth=25 GB/s'",
    "--latency": "--set 'inter_latency=5 us'",
}

# Typer takes these texts from pydantic.
PLAINER = {
    "Input should be a valid integer, unable to parse string as an integer": "expected a whole "
    "number, such as 32",
    "Input should be a valid number, unable to parse string as a number": "expected a number, "
    "such as 0.5",
    "Input should be less than or equal to ": "expected at most ",
    "Input should be greater than or equal to ": "expected at least ",
    "Value error, ": "",
}


def end(message: str, code: int, page: ErrorPage = "") -> NoReturn:
    """Exit with a message on stderr, and the page of the documentation that says more."""
    page = page or ("nothing-feasible" if code == NOTHING_FEASIBLE else "")
    # A message that names a page itself knows a better one.
    more = f" (docs/errors/{page}.md)" if page and "(docs/" not in message else ""
    tell(f"paradl: {message}{more}")
    sys.exit(code)


def find_page(error: BaseException | None) -> ErrorPage:
    """Return the page of an error, or of the one that it was raised in place of."""
    # The group re-raises errors with options for arguments; the first one knows its page.
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
            # Options were parsed together with the command's own, so that help lists all of them.
            if self.shared is not None:
                command = _make_command(self.shared)
                # Left in `params`, Typer would pass them to a function that does not take them.
                given = {option.name: ctx.params.pop(option.name) for option in command.params}
                ctx.obj = ctx.invoke(command.callback, **given)
            return super().invoke(ctx)


def make_group(help: str) -> Typer:
    """Make a group of commands, which shows its help where no command is given."""
    return Typer(help=help, no_args_is_help=True, rich_markup_mode=None)


def take_options(shared: type, *, is_patient: bool = True) -> type[PatientCommand]:
    """Return the class of commands whose further options are a dataclass's fields."""
    settings = {"shared": shared, "is_patient": is_patient}
    return type(f"{shared.__name__}Command", (PatientCommand,), settings)


@cache
def _make_command(shared: type) -> Any:
    """Make a command whose options are a dataclass's fields; its callback builds an instance."""
    app = Typer(add_completion=False)
    app.command()(shared)
    return typer.main.get_command(app)


def explain_usage(error: Any) -> None:
    """Add what to write instead to the message of a usage error."""
    from paradl.grids.entries.parameters import FREE  # late: it imports pydantic

    option = getattr(error, "option_name", None) or ""
    name = option.lstrip("-").replace("-", "_")
    instead = f"--set {name}=VALUE" if name in FREE else ELSEWHERE.get(option)
    if instead is not None:
        error.message = f"{error.message}; write {instead}"
        error.possibilities = None  # typer's guesses by spelling
    for theirs, ours in PLAINER.items():
        error.message = error.message.replace(theirs, ours)


# Verbs by what they are for, in the order of `paradl --help`.
GROUPS = {
    "Ask": (
        *("best", "limits", "pareto", "provision", "sensitivity", "bottleneck"),
        *("predict", "explain", "hybrid", "place"),
    ),
    "Sweep": ("sweep", "status", "diff", "export"),
    "Look": ("plot", "report"),
    "Measured runs": ("compare", "calibrate"),
    "Your own": ("import", "probe"),
    "Learn": ("sample", "surrogate"),
    "Catalogue": ("list", "schema"),
}


class Commands(TyperGroup):
    """Commands in groups that accept short forms, and whose error messages name options."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands of each group, a line each."""
        for title, names in GROUPS.items():
            with formatter.section(title):
                helps = ((name, self.commands[name].get_short_help_str(200)) for name in names)
                formatter.write_dl([*helps])

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments, short forms spelled out."""
        return super().parse_args(ctx, spell_out(args))

    def invoke(self, ctx: Any) -> Any:
        """Run the command, and rewrite the message if it fails."""
        try:
            return super().invoke(ctx)
        except UsageError as error:
            if isinstance(error.__cause__, InputError):
                option = error.param.opts[0]
                raise InputError(str(error.__cause__), where=option) from error.__cause__
            explain_usage(error)
            raise
        except (InputError, RunError) as error:
            options = list_options(self.commands[ctx.invoked_subcommand])
            # The same error, whose type decides the exit code and whose page is kept.
            error.args = (name_options(str(error), options),)
            raise


def spell_out(arguments: list[str]) -> list[str]:
    """Replace short forms such as `--json`; after `--` nothing is an option."""
    # A store or a file may be called --json.
    end = arguments.index("--") if "--" in arguments else len(arguments)
    options = [word for argument in arguments[:end] for word in SHORT.get(argument, (argument,))]
    return [*options, *arguments[end:]]
