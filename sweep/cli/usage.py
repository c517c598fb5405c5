"""The group of commands: short forms of options, and advice on wrong ones."""

from typing import Any

import typer
from typer.core import TyperGroup

from grids.reading.errors import InputError
from sweep.cli.option_messages import list_options, name_options
from sweep.errors import RunError

# Typer has no public name for the errors of a command line.
UsageError: Any = typer.BadParameter.__mro__[1]

# What users of other programs type, and what paradl calls it.
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

# Typer takes these texts from pydantic.
PLAINER = {
    "Input should be a valid integer, unable to parse string as an integer": "expected a whole "
    "number, such as 32",
    "Input should be a valid number, unable to parse string as a number": "expected a number, "
    "such as 0.5",
}


def explain_usage(error: Any) -> None:
    """Add what to write instead to the message of a usage error."""
    option = getattr(error, "option_name", None)
    instead = None if option is None else _find_option(option)
    if instead is not None:
        error.message = f"{error.message}; write {instead}"
        error.possibilities = None  # typer's guesses by spelling
    for theirs, ours in PLAINER.items():
        error.message = error.message.replace(theirs, ours)


def _find_option(option: str) -> str | None:
    from grids.entries.parameters import FREE  # late: it imports pydantic

    name = option.lstrip("-").replace("-", "_")
    return f"--set {name}=VALUE" if name in FREE else ELSEWHERE.get(option)


SHORT = {"--json": ("--format", "json")}


class Commands(TyperGroup):
    """Commands that accept short forms, and whose error messages name options."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments, short forms spelled out."""
        return super().parse_args(ctx, spell_out(args))

    def invoke(self, ctx: Any) -> Any:
        """Run the command, and rewrite the message if it fails."""
        try:
            return super().invoke(ctx)
        except UsageError as error:
            explain_usage(error)
            raise
        except (InputError, RunError) as error:
            options = list_options(self.commands[ctx.invoked_subcommand])
            error.args = (name_options(str(error), options),)
            raise


def spell_out(arguments: list[str]) -> list[str]:
    """Replace short forms such as `--json`; after `--` nothing is an option."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    options = [word for argument in arguments[:end] for word in SHORT.get(argument, (argument,))]
    return [*options, *arguments[end:]]
