"""The group of commands: short forms of options, and corrections of wrong ones."""

from traceback import extract_tb
from typing import Any

import typer
from typer.core import TyperGroup

from grids.reading.errors import InputError
from sweep.cli.option_messages import list_options, name_options
from sweep.errors import RunError

# Typer has no public name for the errors of a command line.
UsageError: Any = typer.BadParameter.__mro__[1]

# Options of other programs, and paradl's.
ELSEWHERE = {
    "--precision": "--system NAME:precision=bf16",
    "--software": "--system NAME:software=ddp",
    "--fp16": "--system NAME:precision=amp",
    "--amp": "--system NAME:precision=amp",
    "--bf16": "--system NAME:precision=bf16",
    "--tf32": "--system NAME:precision=tf32",
    **dict.fromkeys(("--gpu", "--gpus", "--pes", "--devices", "--ranks", "--world-size"), "--pe"),
    **dict.fromkeys(("--batch-size", "--bs", "--local-batch"), "--batch"),
    "--global-batch": "--batch with --scaling strong",
    "--machine": "--system",
    "--cluster": "--system",
    "--network": "--model",
    "--data": "--dataset",
    "--bandwidth": "--set 'inter_bandwidth=25 GB/s'",
    "--latency": "--set 'inter_latency=5 us'",
}

# Typer's words, which are pydantic's, and plainer ones.
PLAINER = {
    "Input should be a valid integer, unable to parse string as an integer": "expected a whole "
    "number, such as 32",
    "Input should be a valid number, unable to parse string as a number": "expected a number, "
    "such as 0.5",
}


def explain_usage(error: Any) -> None:
    """Add to the message of a usage error what to write."""
    option = getattr(error, "option_name", None)
    instead = None if option is None else _find_option(option)
    if instead is not None:
        error.message = f"{error.message}; write {instead}"
        error.possibilities = None  # neighbours by spelling
    for theirs, ours in PLAINER.items():
        error.message = error.message.replace(theirs, ours)


def _find_option(option: str) -> str | None:
    """The option to write instead of one that a command lacks."""
    from grids.entries.parameters import FREE  # late: pydantic comes with it

    name = option.lstrip("-").replace("-", "_")
    return f"--set {name}=VALUE" if name in FREE else ELSEWHERE.get(option)


def describe_early_end(error: EOFError) -> str:
    """A message about a file that ends too early: what was read, by which line of code."""
    frames = [frame for frame in extract_tb(error.__traceback__) if "<" not in frame.filename]
    where = f" in {frames[-1].filename}:{frames[-1].lineno}" if frames else ""
    return (
        f"a file ends too early: {error or 'nothing more to read'}{where}; if that line imports, "
        "compiled Python code was cut short: delete the folders __pycache__ and try again"
    )


SHORT = {"--json": ("--format", "json")}


class Commands(TyperGroup):
    """Commands with short forms of options, and with messages that name options."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """The arguments, as the group of commands takes them."""
        return super().parse_args(ctx, spell_out(args))

    def invoke(self, ctx: Any) -> Any:
        """Run the command that the arguments name."""
        try:
            return super().invoke(ctx)
        except UsageError as error:
            explain_usage(error)
            raise
        except (InputError, RunError) as error:
            options = list_options(self.commands[ctx.invoked_subcommand])
            raise type(error)(name_options(str(error), options)) from None
        except EOFError as error:  # of which Typer would make "Aborted!"
            raise RunError(describe_early_end(error)) from error


def spell_out(arguments: list[str]) -> list[str]:
    """The arguments without short forms; behind `--` nothing is an option."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    options = [word for given in arguments[:end] for word in SHORT.get(given, (given,))]
    return [*options, *arguments[end:]]
