"""The command line. Heavy imports are inside the commands, so that `--help` answers at once."""

import os
import sys

import typer

from grids.reading.errors import InputError
from sweep.cli.catalogue import LISTINGS
from sweep.cli.commands import BAD_INPUT, FAILED, end, report_long
from sweep.cli.configurations import explain, predict
from sweep.cli.exports import export
from sweep.cli.hybrid import hybrid
from sweep.cli.measured import calibrate, compare, plot
from sweep.cli.option_messages import name_option
from sweep.cli.pictures import KINDS
from sweep.cli.place import place
from sweep.cli.plans import PLANS
from sweep.cli.rankings import RANKINGS, TRADES
from sweep.cli.samples import SAMPLES
from sweep.cli.schemas import schema
from sweep.cli.shared_options import Version
from sweep.cli.stores import diff, status
from sweep.cli.surrogates import app as surrogate
from sweep.cli.sweep import sweep
from sweep.cli.usage import Commands
from sweep.errors import RunError

app = typer.Typer(
    name="paradl",
    no_args_is_help=True,
    cls=Commands,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


@app.callback()
def _common(version: Version = False) -> None:
    """How a network trains at scale under every way of parallelising it, and what stops it."""


# In the order in which `paradl --help` lists them.
for command in (
    *(sweep, status, *RANKINGS, *PLANS, *TRADES, report_long(predict), report_long(explain)),
    *(report_long(hybrid), place, schema, *LISTINGS, report_long(diff), report_long(export)),
    *(*SAMPLES, report_long(compare), report_long(calibrate)),
):
    app.command()(command)
for kind, draw in KINDS.items():
    plot.command(kind)(report_long(draw))
app.add_typer(plot, name="plot")
app.add_typer(surrogate, name="surrogate")


def main() -> None:
    """Run the command line; every expected failure is one message and an exit code."""
    try:
        try:
            app()
        finally:
            # Here and not as Python ends: then a pipe that is closed could only be told by a
            # traceback.
            sys.stdout.flush()
    except InputError as error:
        end(name_option(str(error)), BAD_INPUT)
    except RunError as error:
        end(name_option(str(error)), FAILED)
    except BrokenPipeError:  # whoever read our output has seen enough
        # Python flushes once more as it ends: into nothing, and so in silence.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
