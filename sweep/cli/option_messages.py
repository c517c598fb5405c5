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
    "splits": "--split",
    "speedups": "--speedup",
    "strategies": "--strategy",
    "output": "OUTPUT",
}
# And what an option is called alike.
SAME = (
    *("objective", "price", "efficiency", "epochs", "need", "over", "against", "size", "tolerance"),
    *("partition_by", "max_global_batch", "model", "dataset", "system", "strategy", "pe", "batch"),
    *("deadline", "holds", "micro_batches", "scaling_efficiency", "time_limit", "target"),
    *("overwrite", "extend", "workers", "scheduler", "rows", "seed", "near_limits"),
    *("near_crossovers", "leave_out", "gradient", "gradients", "learner", "members", "width"),
)
# Arguments behind which a message may name a part of theirs.
DETAILED = ("selection ", "splits ", "scheduler ")
# Keys of a spec that are options.
KEYS = "dataset|oracle|conventions|scaling|recompute|calibration|convergence|target|times|optimizer"


# Advice to a caller in Python, which is a flag of the command.
FLAG = re.compile(r"\b(force|overwrite|extend|reduce_only)=True\b")
# And an argument with its value.
VALUE = re.compile(r"\b(convergence)='([^']+)'")
GENERATOR = r"\{(pow2|range|linspace|geomspace): \[([^\]]*)\]\}"


def name_option(text: str) -> str:
    """A message with options where a function's arguments were: at its beginning, and as flags.

    `selection pe: ...` becomes `--sel pe: ...`, `overwrite, extend: ...` two options, and
    `give force=True` becomes `give --force`.
    """
    text = VALUE.sub(r"--\1 \2", text)
    text = FLAG.sub(lambda match: f"--{match[1].replace('_', '-')}", text)
    head, colon, rest = text.partition(": ")
    names, space, detail = head.partition(" ") if head.startswith(DETAILED) else (head, "", "")
    options = [_find_option(name) for name in names.split(", ")]
    if not colon or None in options:
        return text
    if options == ["--sel"]:
        rest = re.sub(r"(?<=such as ).*", _name_selections, rest)
    return f"{', '.join(filter(None, options))}{space}{detail}{colon}{rest}"


def _name_selections(advice: re.Match[str]) -> str:
    """The advice with `--sel` before each value of an axis."""
    return re.sub(r"(?<!\S)(?=\w+=)", "--sel ", advice[0])


def _find_option(name: str) -> str | None:
    """The option of an argument; None: there is none."""
    return ARGUMENTS.get(name) or (f"--{name.replace('_', '-')}" if name in SAME else None)


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
        # A generator as options have it: pow2:1..64, of a range 1..64.
        text = re.sub(GENERATOR, _write_generator, text)
        text = re.sub(rf"'({KEYS}): ([^' ]+)'", r"'--\1 \2'", text)
        raise InputError(text) from None


def _write_generator(match: re.Match[str]) -> str:
    """A spec's generator as an option has it."""
    name, ends = match[1], match[2].replace(", ", "..")
    return ends if name == "range" else f"{name}:{ends}"
