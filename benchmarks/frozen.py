"""What versions predicted of runs before their rates were fitted to them: `frozen.csv`.

Nothing is computed anew: seconds, ends of 80 % intervals and baselines stand in the file. To make
them again: check out the commit that a column names.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.layout_runs import Logs
from benchmarks.layouts import measure_accuracy
from benchmarks.parts import Traits, divide, name_population
from benchmarks.report import Effort, Report, Row, tabulate
from paradl.grids.reading.csvfile import read_records

FILE = Path(__file__).with_name("frozen.csv")
VERSIONS = ("cd1fa94b", "6c18efeb")  # commits
TRAITS = ("family", "parameters", "features", "pes", "precision", "device", "stack")
BASELINES = {"constant_mfu_s": "constant MFU", "six_p_s": "6 P"}
INTERVALS = [[f"{end}_{version}_s" for end in ("low", "high")] for version in VERSIONS]
SECONDS = (
    *("measured_s", *BASELINES, *(f"predicted_{version}_s" for version in VERSIONS)),
    *(name for names in INTERVALS for name in names),
)
COLUMNS = ("set", "key", "source", "model", *TRAITS, *SECONDS)
HEAD = (
    *("", "runs"),
    *(word for version in VERSIONS for word in (version, "interval holds", "median of ratios")),
    *BASELINES.values(),
)
SETS = {"transformers": "Papers and release notes", "mlperf": "MLPerf Training"}


@dataclass(frozen=True)
class Frozen:
    """Rows of the file: sets, traits, and seconds by column [rows]."""

    sets: Sequence[str]
    traits: Sequence[Traits]
    seconds: dict[str, Logs]


def read_frozen(path: Path = FILE) -> Frozen:
    """All rows of the file."""
    rows = [row for _, row in read_records(path, COLUMNS, ())]
    numbers = {name: np.array([float(row[name]) for row in rows]) for name in SECONDS}
    return Frozen(
        [row["set"] for row in rows],
        [
            Traits(
                row["family"],
                int(row["parameters"]),
                int(row["features"]),
                int(row["pes"]),
                row["precision"],
                row["device"],
                row["stack"],
            )
            for row in rows
        ],
        numbers,
    )


def list_parts(frozen: Frozen) -> Iterator[tuple[str, list[tuple[str, list[int]]]]]:
    """Yield each set and family, and its parts with the numbers of their rows, all rows first."""
    titles = [
        f"{SETS[kind]}, {name_population(traits)}"
        for kind, traits in zip(frozen.sets, frozen.traits, strict=True)
    ]
    for title in dict.fromkeys(titles):
        numbers = [number for number, other in enumerate(titles) if other == title]
        parts = divide([frozen.traits[number] for number in numbers])
        inside = [(name, [numbers[at] for at in part]) for name, part in parts]
        yield title, [("all", numbers), *inside]


def sum_up(frozen: Frozen, name: str, numbers: Sequence[int]) -> list[str]:
    """A line of HEAD."""
    seconds = {column: values[numbers] for column, values in frozen.seconds.items()}
    measured, words = seconds["measured_s"], [name, str(len(numbers))]
    for version, (low, high) in zip(VERSIONS, INTERVALS, strict=True):
        logs = np.log(seconds[f"predicted_{version}_s"] / measured)
        inside = (seconds[low] <= measured) & (measured <= seconds[high])
        words += [f"{measure_accuracy(logs):.1%}", f"{inside.mean():.0%}"]
        words.append(f"{np.exp(np.median(logs)):.2f}")
    logs_of = (np.log(seconds[name] / measured) for name in BASELINES)
    return [*words, *(f"{measure_accuracy(logs):.1%}" for logs in logs_of)]


def write_tables(frozen: Frozen) -> str:
    """A table of each set and family."""
    sections = [
        f"**{title}**\n\n{tabulate([HEAD, *(sum_up(frozen, *part) for part in parts)])}\n"
        for title, parts in list_parts(frozen)
    ]
    return "\n".join(sections)


def measure(effort: Effort) -> Report:
    """Accuracy of the last frozen version, and what else is known of each part."""
    frozen, rows = read_frozen(), []
    ratios = frozen.seconds[f"predicted_{VERSIONS[-1]}_s"] / frozen.seconds["measured_s"]
    for title, parts in list_parts(frozen):
        for name, numbers in parts:
            line = sum_up(frozen, name, numbers)
            note = "; ".join(f"{what} {value}" for what, value in zip(HEAD, line, strict=True))
            accuracy = measure_accuracy(np.log(ratios[numbers]))
            rows.append(Row(f"{title}, {name}", accuracy, "", note=note.strip()))
    return Report("frozen", "runs that no fit had seen when they were predicted", tuple(rows))
