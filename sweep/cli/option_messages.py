"""Messages about a spec's keys, told of the options that stand for them."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from grids.reading.errors import InputError


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
        raise InputError(text) from None
