"""The command line. Commands import heavy modules themselves, so that `--help` answers at once."""

import atexit
import errno
import gc
import io
import os
import sys
from importlib.metadata import version
from typing import Annotated

from typer import Exit, Option, Typer

from paradl.grids.reading.errors import InputError
from paradl.sweep.cli import (
    catalogue,
    configurations,
    hybrid,
    imports,
    learning,
    measured,
    pictures,
    questions,
    report,
    stores,
)
from paradl.sweep.cli.commands import (
    BAD_INPUT,
    FAILED,
    INTERRUPTED,
    NOTHING_FEASIBLE,
    Commands,
    end,
    find_page,
)
from paradl.sweep.errors import NothingFeasibleError, RunError

# Errors of the file system that say something of the path alone, such as one that a user mistypes.
PATH_ERRORS = (errno.EACCES, errno.EPERM, errno.ENAMETOOLONG)
# Errors of a stdout that takes no more, as of a file on a full disk; they name no file.
OUTPUT_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)

app = Typer(
    name="paradl",
    context_settings={"help_option_names": ["-h", "--help"]},
    no_args_is_help=True,
    epilog="What messages mean: docs/errors.md. For agents: docs/agents.md",
    cls=Commands,
    pretty_exceptions_enable=False,
    # Brackets in help texts are metavars, and no markup.
    rich_markup_mode=None,
)


def print_version(wanted: bool) -> None:
    """Print the version and exit, if `--version` is given."""
    if wanted:
        print(f"paradl {version('paradl')}")
        raise Exit


Version = Annotated[
    bool,
    Option("--version", callback=print_version, is_eager=True, help="Print the version and exit."),
]


@app.callback()
def _common(version: Version = False) -> None:
    """Predict how a network trains at scale under every parallelism, and what stops it."""


for part in (stores, questions, report, configurations, hybrid, catalogue, learning, measured):
    app.add_typer(part.app)
for name, group in (
    *(("plot", pictures.app), ("surrogate", learning.surrogates), ("list", catalogue.listing)),
    *(("import", imports.importing), ("probe", imports.probing)),
):
    app.add_typer(group, name=name)


def main() -> None:
    """Run the command line; an expected failure is one message and an exit code."""
    # Read when a command first imports numpy. Its matrices are small: a fit to ABCI's 56 runs takes
    # 1.2 s of CPU with one thread and 3.0 to 5.2 s with two, of which one waits (2026-11).
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # Imported modules are no garbage: to search them for it took 0.1 of the 1.7 s of CPU of a
    # `predict` every 100,000 objects, and 0.4 s as Python exits, three times (2026-11).
    gc.set_threshold(500_000, 20, 100)
    atexit.register(gc.freeze)
    # Where the caller closed them, they are None, which nothing can be printed on.
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_WRONLY), "w"))
    # Names in users' files may have letters that a terminal in ASCII or Latin-1 lacks.
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        try:
            app()
        finally:
            # If Python flushed at exit, a closed pipe would print a traceback.
            sys.stdout.flush()
    except InputError as error:
        end(str(error), BAD_INPUT, find_page(error))
    except NothingFeasibleError as error:
        end(str(error), NOTHING_FEASIBLE)
    except RunError as error:
        end(str(error), FAILED, find_page(error))
    except KeyboardInterrupt:  # while typer builds the commands, for example
        sys.exit(INTERRUPTED)
    except BrokenPipeError:  # such as `paradl limits STORE | head`
        _drop_output()
    # `Path.is_dir` raises it of a file in a folder that is closed to the user.
    except OSError as error:
        if error.errno in OUTPUT_ERRORS and error.filename is None:
            _drop_output()
            end(f"the answer could not be written ({error.strerror})", FAILED)
        if error.errno not in PATH_ERRORS or error.filename is None:
            raise
        end(f"{error.filename}: {error.strerror}", BAD_INPUT)


def _drop_output() -> None:
    """Send stdout to /dev/null: Python flushes it once more at exit, and there that cannot fail."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
