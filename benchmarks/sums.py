"""Lines of tables: accuracy of parts of runs, and decisions between layouts."""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from benchmarks.decisions import (
    Decisions,
    Duel,
    Group,
    bin_duels,
    decide,
    find_regret,
    group_rivals,
    pair_software,
)
from benchmarks.forecasts import Forecast, list_logs, measure_coverage
from benchmarks.layout_runs import Run
from benchmarks.layouts import measure_accuracy
from benchmarks.parts import divide, find_traits, name_population
from paradl.grids.entries.layout_words import write_layout

HEAD = (
    *("", "runs", "accuracy", "interval holds", "median of ratios", "constant MFU", "6 P"),
    *("pairs", "faster named", "regret"),
)
DECIDED = ("", "groups", "pairs", "faster named", "regret", "scatter")
RELIABLE = ("stated", "pairs", "mean of stated", "were right")
WORST = (
    "network",
    "PEs",
    "ranked first",
    "measured s",
    "fastest",
    "measured s",
    "regret",
    "source",
)
MOST_WORST = 8


def sum_up(title: str, rows: Sequence[Forecast]) -> list[str]:
    """A line of HEAD."""
    logs, groups = list_logs(rows), group_rivals(rows)
    baselines = (measure_accuracy(list_logs(rows, name)) for name in ("constant", "rule"))
    return [
        *(title, str(len(rows)), f"{measure_accuracy(logs):.1%}", f"{measure_coverage(rows):.0%}"),
        f"{np.exp(np.median(logs)):.2f}",
        *(f"{accuracy:.1%}" for accuracy in baselines),
        *(describe_decisions(decide(groups))[1:4] if groups else [""] * 3),
    ]


def list_populations(forecasts: Iterable[Forecast]) -> dict[str, list[Forecast]]:
    """Runs by family; TPUs apart."""
    populations: dict[str, list[Forecast]] = {}
    for row in forecasts:
        populations.setdefault(name_population(find_traits(row.run)), []).append(row)
    return populations


def list_parts(rows: Sequence[Forecast]) -> Iterator[list[str]]:
    """Lines of HEAD: the parts of runs, which overlap."""
    for name, numbers in divide([find_traits(row.run) for row in rows]):
        yield sum_up(name, [rows[number] for number in numbers])


def list_decisions(forecasts: Sequence[Forecast]) -> Iterator[tuple[str, Decisions]]:
    """Yield what is decided in all groups, by source, and between pairs of software."""
    groups = group_rivals(forecasts)
    if groups:
        yield "all", decide(groups)
    for source in sorted({group[0].forecast.run.source for group in groups}):
        yield source, decide([group for group in groups if group[0].forecast.run.source == source])
    if pairs := pair_software(forecasts):
        yield "between software, of one source", decide(pairs)


def describe_decisions(made: Decisions) -> list[str]:
    """A line of DECIDED without its title."""
    named = f"{made.named:.0%}" if made.pairs else ""
    return [str(made.groups), str(made.pairs), named, f"{made.regret:.1%}", f"{made.scatter:.3f}"]


def list_worst(groups: Iterable[Group]) -> Iterator[list[str]]:
    """Lines of WORST: the groups of the largest regret."""
    for group in sorted(groups, key=find_regret, reverse=True)[:MOST_WORST]:
        first = min(group, key=lambda one: one.forecast.seconds)
        best = min(group, key=lambda one: one.seconds)
        stacks = {one.forecast.run.stack for one in group}
        texts = [
            text
            for one in (first, best)
            for text in (
                f"{one.forecast.run.stack}: " * (len(stacks) > 1)
                + describe_layout(one.forecast.run),
                f"{one.seconds:.4g}",
            )
        ]
        run, regret = first.forecast.run, f"{find_regret(group):.1%}"
        yield [run.model, str(int(run.layout.pes[0])), *texts, regret, run.source]


def list_reliability(duels: Sequence[Duel], spread: float) -> Iterator[list[str]]:
    """Lines of RELIABLE."""
    for low, high, pairs, stated, right in bin_duels(duels, spread):
        stated_range = f"{low:.0%} to {high:.0%}" if low else f"below {high:.0%}"
        yield [stated_range, str(pairs), f"{stated:.0%}", f"{right:.0%}"]


def describe_layout(run: Run) -> str:
    """The layout in words."""
    (columns,) = run.layout.to_names()
    return write_layout(columns)
