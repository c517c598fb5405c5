"""The command line. Heavy imports are inside the commands, so that `--help` answers at once."""

import os
import sys

import typer

from grids.reading.errors import InputError
from sweep.cli import (
    catalogue,
    configurations,
    fit,
    hybrid,
    measured,
    pictures,
    place,
    plans,
    rankings,
    report,
    samples,
    stores,
    surrogates,
    sweep,
)
from sweep.cli.commands import BAD_INPUT, FAILED, end
from sweep.cli.shared_options import Version
from sweep.cli.usage import Commands
from sweep.errors import RunError

app = typer.Typer(
    name="paradl",
    context_settings={"help_option_names": ["-h", "--help"]},
    no_args_is_help=True,
    cls=Commands,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


@app.callback()
def _common(version: Version = False) -> None:
    """How a network trains at scale under every way of parallelising it, and what stops it."""


# In the order in which `paradl --help` lists their commands.
for part in (
    *(sweep, stores, rankings, plans, report, configurations, hybrid, fit, place, catalogue),
    *(samples, measured),
):
    app.add_typer(part.app)
app.add_typer(pictures.app, name="plot")
app.add_typer(surrogates.app, name="surrogate")


def main() -> None:
    """Run the command line; every expected failure is one message and an exit code."""
    try:
        try:
            app()
        finally:
            # Here, not when Python ends: there a closed pipe would print a traceback.
            sys.stdout.flush()
    except InputError as error:
        end(str(error), BAD_INPUT)
    except RunError as error:
        end(str(error), FAILED)
    except BrokenPipeError:  # the reader of our output has seen enough
        # Python flushes once more when it ends: into nothing, so that it stays silent.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
