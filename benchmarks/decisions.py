"""Decisions between layouts of one run: is the faster one named, and how sure may an answer be?

A group is what one source published of one network, machine, number of PEs, batch, precision and
software. A layout that was run several times has the median of its times.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from statistics import fmean, median
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import ndtr

from benchmarks.forecasts import Forecast
from benchmarks.layout_runs import Logs, draw_seconds

TIE = 0.03  # measured times that differ by less are equal: repeated runs differ as much
SPREADS = (0.005, 1.0)  # of one run beside another, among which a calibrated one is sought
BINS = (0.0, 0.6, 0.7, 0.8, 0.9, 1.0)  # ends of bins of probabilities


class Rival(NamedTuple):
    """A layout of a group: its measured seconds, and the forecast of one of its runs."""

    seconds: float
    forecast: Forecast


Group = list[Rival]


@dataclass(frozen=True)
class Decisions:
    """What predictions decide in groups.

    named: share of pairs in which the faster layout is predicted to be faster. regret: mean over
    groups of measured time of the layout that is ranked first over the least one, less 1. scatter:
    standard deviation of ln(predicted / measured) around the means of groups.
    """

    pairs: int
    named: float
    groups: int
    regret: float
    scatter: float


def group_rivals(forecasts: Iterable[Forecast], by_software: bool = True) -> list[Group]:
    """Groups of at least two layouts; by_software: of one stack each."""
    groups: dict[tuple[object, ...], dict[tuple[object, ...], list[Forecast]]] = {}
    for row in forecasts:
        run, training = row.run, row.run.training
        task = run.source, run.network, run.system.name, int(run.layout.pes[0]), run.precision
        batch = training.batch, training.length, run.stack if by_software else ""
        (columns,) = run.layout.to_names()
        layout = run.stack, training.fused_attention, *columns.values()
        groups.setdefault((*task, *batch), {}).setdefault(layout, []).append(row)
    return [
        [Rival(median(row.run.seconds for row in rows), rows[0]) for rows in group.values()]
        for group in groups.values()
        if len(group) > 1
    ]


def decide(groups: Sequence[Group]) -> Decisions:
    """Sum up the decisions in groups, of which there is at least one."""
    pairs = [pair for group in groups for pair in combinations(group, 2) if is_apart(*pair)]
    logs = [np.log([one.forecast.seconds / one.seconds for one in group]) for group in groups]
    freedom = sum(len(group) - 1 for group in groups)
    squares = sum(float(np.sum((log - log.mean()) ** 2)) for log in logs)
    return Decisions(
        len(pairs),
        fmean(is_faster_named(*pair) for pair in pairs) if pairs else np.nan,
        len(groups),
        fmean(map(find_regret, groups)),
        float(np.sqrt(squares / freedom)),
    )


def is_apart(one: Rival, other: Rival) -> bool:
    """Whether measured times differ by more than a tie."""
    return max(one.seconds, other.seconds) > (1 + TIE) * min(one.seconds, other.seconds)


def is_faster_named(one: Rival, other: Rival) -> bool:
    """Whether the layout that was faster is predicted to be; equal predictions name none."""
    predicted = one.forecast.seconds - other.forecast.seconds
    return (one.seconds - other.seconds) * predicted > 0


def find_regret(group: Group) -> float:
    """Time lost by the layout that is ranked first: its measured time over the least, less 1."""
    first = min(group, key=lambda one: one.forecast.seconds)
    return first.seconds / min(one.seconds for one in group) - 1


def pair_software(forecasts: Iterable[Forecast]) -> list[Group]:
    """Pairs of layouts by different software, of one source and task, that are no ties."""
    groups = group_rivals(forecasts, by_software=False)
    pairs = (pair for group in groups for pair in combinations(group, 2))
    return [
        [one, other]
        for one, other in pairs
        if one.forecast.run.stack != other.forecast.run.stack and is_apart(one, other)
    ]


class Duel(NamedTuple):
    """Two layouts of a group: ln of the time of the second over that of the first, which is
    predicted to be faster, for each draw of parameters; whether it was; the group's number."""

    apart: Logs
    is_right: bool
    group: int

    def find_chance(self, spread: float) -> float:
        """The probability that the first is faster, as answers state it; spread: of one run
        beside another (`RIVAL_SPREAD`)."""
        return float(ndtr(self.apart / (np.sqrt(2) * spread)).mean())


def list_duels(groups: Iterable[Group]) -> Iterator[Duel]:
    """Yield the pairs of each group, ties too: an answer does not know them."""
    for number, group in enumerate(groups):
        ranked = sorted(group, key=lambda one: one.forecast.seconds)
        drawn = [draw_seconds(one.forecast.run, one.forecast.values) for one in ranked]
        for one, other in combinations(range(len(ranked)), 2):
            is_right = ranked[one].seconds < ranked[other].seconds
            yield Duel(np.log(drawn[other] / drawn[one]), is_right, number)


def weigh_duels(duels: Sequence[Duel], by_group: bool) -> Logs:
    """Weights that sum to 1; by_group: each group has the same, whatever its pairs."""
    sizes = np.bincount([duel.group for duel in duels])
    weights: Logs = np.array([1 / sizes[duel.group] if by_group else 1.0 for duel in duels])
    weights /= weights.sum()
    return weights


def fit_rival_spread(duels: Sequence[Duel], *, by_group: bool = False) -> float:
    """The spread whose probabilities are the most likely, given which layouts were faster."""
    weights = weigh_duels(duels, by_group)

    def find_loss(spread: float) -> float:
        chances = np.array([duel.find_chance(spread) for duel in duels])
        right = np.array([duel.is_right for duel in duels])
        stated = np.clip(np.where(right, chances, 1 - chances), 1e-12, 1)
        return float(-weights @ np.log(stated))

    return float(minimize_scalar(find_loss, bounds=SPREADS, method="bounded").x)


def bin_duels(
    duels: Sequence[Duel], spread: float
) -> Iterator[tuple[float, float, int, float, float]]:
    """Yield for each bin of probability its ends, pairs, mean probability, and share right."""
    chances = np.array([duel.find_chance(spread) for duel in duels])
    right = np.array([duel.is_right for duel in duels])
    for low, high in pairwise(BINS):
        mask = (chances >= low) & (chances < high if high < 1 else chances <= high)
        if mask.any():
            yield low, high, int(mask.sum()), float(chances[mask].mean()), float(right[mask].mean())
