"""Short forms: `--json` is `--format json`, of every command that has such an option."""

from typing import Any

from typer.core import TyperGroup

from sweep.cli.usage import UsageError, explain_usage

SHORT = {"--json": ("--format", "json")}


class ShortForms(TyperGroup):
    """Commands that understand short forms, and say what to write where an option is wrong."""

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


def spell_out(arguments: list[str]) -> list[str]:
    """The arguments without short forms; behind `--` nothing is an option."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    options = [each for given in arguments[:end] for each in SHORT.get(given, (given,))]
    return [*options, *arguments[end:]]
