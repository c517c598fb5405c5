"""Messages about a spec's keys, or a function's arguments, told of their options."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from grids.reading.errors import InputError

# Of functions, what an option is called otherwise; an export's output is an argument.
ARGUMENTS = {
    "along": "--crossovers",
    "undefined": "--all",
    "selection": "--sel",
    "output": "OUTPUT",
}
# And what an option is called alike.
SAME = (
    *("objective", "price", "efficiency", "epochs", "need", "over", "against", "size", "tolerance"),
    *("partition_by", "max_global_batch", "model", "dataset", "system", "strategy", "pe", "batch"),
)
# Keys of a spec that are options.
KEYS = "dataset|oracle|conventions|scaling|recompute|calibration|convergence|target|times|optimizer"


def name_option(text: str) -> str:
    """A message with an option at its beginning, where a function's argument was."""
    name, colon, rest = text.partition(": ")
    option = ARGUMENTS.get(name) or (f"--{name.replace('_', '-')}" if name in SAME else None)
    return f"{option}{colon}{rest}" if option and colon else text


@contextmanager
def speak_of_options() -> Iterator[None]:
    """Tell what is wrong with a configuration by the options that it was given with.

    `axes.pe: ...` becomes `--pe: ...`: on a command line, nobody wrote any axes.
    """
    try:
        yield
    except InputError as error:
        # At the start of each line: one message may be about several keys.
        text = re.sub(r"^axes\.(\w+)(\.\d+)?", r"--\1", str(error), flags=re.MULTILINE)
        text = re.sub(r"^parameters\b", "--set", text, flags=re.MULTILINE)
        text = re.sub(r"^(calibration|convergence|target): ", r"--\1: ", text)
        text = re.sub(rf"'({KEYS}): ([^' ]+)'", r"'--\1 \2'", text)
        raise InputError(text) from None
