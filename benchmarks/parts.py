"""Parts of published runs by size, PEs, precision, device, software and source."""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from benchmarks.layout_runs import Run
from benchmarks.layouts import LARGE, MANY, WIDE, find_device, has_experts
from paradl.grids.entries.transformer_rates import is_systolic


class Traits(NamedTuple):
    """What parts of runs are told by; parameters and features: of the network, of a position."""

    family: str
    parameters: int
    features: int
    pes: int
    precision: str
    device: str
    stack: str
    source: str = ""


def find_traits(run: Run) -> Traits:
    """The traits of a run."""
    return Traits(
        "experts" if has_experts(run) else "dense",
        int(run.net.parameters),
        int(run.net.hidden),
        int(run.layout.pes[0]),
        run.precision,
        find_device(run),
        run.stack,
        run.source,
    )


def name_population(traits: Traits) -> str:
    """Runs that are summed up together."""
    if is_systolic(traits.device):
        return "TPUs"
    return "dense networks" if traits.family == "dense" else "mixtures of experts"


# Upper ends, which are no part of the range, and names.
Ranges = Sequence[tuple[float, str]]
SIZES: Ranges = (
    (1e9, "below 1 billion parameters"),
    (1e10, "1 to 10 billion parameters"),
    (LARGE, "10 to 100 billion parameters"),
    (math.inf, "100 billion parameters and more"),
)
WIDTHS: Ranges = ((WIDE + 1, "up to 15,000 features"), (math.inf, "more than 15,000 features"))
COUNTS: Ranges = (
    (65, "1 to 64 PEs"),
    (257, "65 to 256 PEs"),
    (MANY + 1, "257 to 1,024 PEs"),
    (math.inf, "more than 1,024 PEs"),
)


def _find_range(value: float, ranges: Ranges) -> tuple[float, str]:
    return next((end, name) for end, name in ranges if value < end)


# Labels by which runs are divided, each with its place among those of its kind.
LABELS: Sequence[Callable[[Traits], tuple[float, str]]] = (
    lambda row: _find_range(row.parameters, SIZES),
    lambda row: _find_range(row.features, WIDTHS),
    lambda row: _find_range(row.pes, COUNTS),
    lambda row: (0, row.precision),
    lambda row: (0, row.device),
    lambda row: (0, row.stack),
    lambda row: (0, row.source),
)


def divide(rows: Sequence[Traits]) -> Iterator[tuple[str, list[int]]]:
    """Yield the names of parts, which overlap, and the numbers of their rows; not all rows."""
    for find_label in LABELS:
        labels = [find_label(row) for row in rows]
        for label in sorted({*labels}):
            numbers = [number for number, other in enumerate(labels) if other == label]
            if len(numbers) < len(rows):
                yield label[1], numbers
