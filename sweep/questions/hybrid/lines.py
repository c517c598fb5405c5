"""Speed-up of each contender over PE counts in each draw, and the rows of the answer about them.

SU = SU^M x SE x N x E(b) / E(b N)
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from paradl.grids.convergence.entry import Convergence
from paradl.kernels.names.arrays import Floats
from paradl.kernels.names.flags import FORBIDS, Limit
from paradl.sweep.answers.numbers import finite, pick_ends, pick_percentiles
from paradl.sweep.answers.types.hybrid import (
    EpochsRecord,
    Gain,
    HybridCrossover,
    HybridRow,
    SplitRow,
)
from paradl.sweep.boundaries.roots import find_last
from paradl.sweep.cube.variables import name_limits
from paradl.sweep.questions.hybrid.contenders import Contender
from paradl.sweep.questions.hybrid.epochs import Draws, draw_epochs

if TYPE_CHECKING:
    from paradl.sweep.questions.hybrid.times import ContenderTimes


SHOWN = (10, 50, 90)  # percentiles over the draws behind the first, the expected one


@dataclass(frozen=True)
class SpeedupLine:
    """Training of a contender on 1, 2 ... PEs [count].

    split: SU^M. efficiency [count]: SE. epochs [count]: infinite if the batch never converges.
    extrapolated [count]: whether the batch lies beyond the measured ones. limits [count]: flags.
    speedup [draw, count]: of the whole training, the expected one first; 0 where infeasible.
    """

    contender: Contender
    split: float
    efficiency: Floats
    epochs: Floats
    extrapolated: NDArray[np.bool_]
    limits: NDArray[np.uint16]
    speedup: Floats

    @property
    def most(self) -> int:
        """Largest PE count."""
        return len(self.limits)

    @property
    def expected(self) -> Floats:
        """Expected speed-ups [count]."""
        expected: Floats = self.speedup[0]
        return expected

    def find_forbidding(self) -> int:
        """Return flags that forbid any of the counts that groups divide."""
        group = self.contender.group
        return int(np.bitwise_or.reduce(self.limits[group - 1 :: group])) & FORBIDS


def make_lines(
    contenders: Sequence[Contender],
    times: "Mapping[str, ContenderTimes]",
    convergence: Convergence,
    draws: Draws,
    samples: float,
    most: int,
    efficiency: float | None,
) -> list[SpeedupLine]:
    """Return lines of contenders up to `most` PEs, with `samples` per replica and iteration.

    times: by strategy; empty if the user gave all numbers. efficiency: SE if the user gave it.
    """
    # A contender with a strategy has the strategy's label.
    seconds = {
        contender.label: times[contender.label].draw(draws.errors[:, number])
        for number, contender in enumerate(contenders)
        if contender.label in times
    }
    # In the same draws, so that the ratio of epochs is known better than either.
    alone = draw_epochs(convergence, np.array([samples]), draws.laws, draws.stays)
    lines = []
    for contender in contenders:
        replicas = np.arange(1, most + 1) // contender.group
        batches = replicas * np.float64(samples)
        epochs = draw_epochs(convergence, batches, draws.laws, draws.stays)
        split = _find_split(contender, seconds)
        if efficiency is None:
            scaling = _find_efficiency(contender, seconds, replicas)
        else:
            scaling = np.full((1, most), efficiency)
        limits = _find_limits(contender, times, most)
        speedup = split * scaling * replicas * alone / epochs
        lines.append(
            SpeedupLine(
                contender=contender,
                split=float(split[0, 0]),
                efficiency=scaling[0],
                epochs=epochs[0],
                extrapolated=np.array([convergence.is_extrapolated(round(b)) for b in batches]),
                limits=limits,
                speedup=np.where((limits & np.uint16(FORBIDS)) > 0, 0.0, speedup),
            )
        )
    return lines


def _find_split(contender: Contender, seconds: Mapping[str, Floats]) -> Floats:
    """Return SU^M [draw, 1]: as given, or computed for one group."""
    if contender.split is not None:
        return np.array([[contender.split]])
    group = contender.group
    split: Floats = seconds["data"][:, :1] / seconds[contender.label][:, group - 1 : group]
    return split


def _find_efficiency(
    contender: Contender, seconds: Mapping[str, Floats], replicas: NDArray[np.int64]
) -> Floats:
    """Return SE [draw, count] from the contender's times.

    A contender without times, for which only the speed-up is known, scales over replicas like data
    parallelism over as many PEs.
    """
    times = seconds.get(contender.label)
    if times is not None:
        return times[:, contender.group - 1 : contender.group] / times
    data = seconds["data"]
    return data[:, :1] / data[:, np.maximum(replicas, 1) - 1]


def _find_limits(
    contender: Contender, times: "Mapping[str, ContenderTimes]", most: int
) -> NDArray[np.uint16]:
    """Return flags [count]; a contender without a strategy has those of data parallelism."""
    strategy = contender.strategy or "data"
    flags = times[strategy].limits if strategy in times else np.zeros(most, np.uint16)
    # Arrays have all PE counts, so that counts are positions; groups divide some of them.
    uneven = np.arange(1, most + 1) % contender.group > 0
    return flags | np.where(uneven, np.uint16(Limit.GROUP_DOES_NOT_DIVIDE), np.uint16(0))


def describe_epochs(convergence: Convergence, samples: float) -> EpochsRecord:
    """Describe the epochs: their source, law, and E(b) for one PE, whose batch is `samples`."""
    alone = draw_epochs(convergence, np.array([samples]), np.zeros((1, 2)), np.zeros(1, bool))
    return {
        "source": list(convergence.source),
        "epochs_min": convergence.epochs_min,
        "critical_batch": convergence.critical_batch,
        "measured": [convergence.smallest, convergence.largest],
        "converges_to": convergence.converges_to,
        "alone": float(alone[0, 0]),
        "alone_extrapolated": convergence.is_extrapolated(round(samples)),
    }


def list_splits(hybrids: Sequence[SpeedupLine], given: bool) -> list[SplitRow]:
    """Return one row per hybrid: SU^M, whether it and SE were given, whether it is the fastest."""
    # In ascending order, so the fastest of each group size is the one that stays.
    fastest = {
        line.contender.group: line.contender.label
        for line in sorted(hybrids, key=lambda line: line.split)
        if np.isfinite(line.split)
    }
    return [
        {
            "strategy": line.contender.label,
            "group": line.contender.group,
            "speedup": finite(line.split),
            "fastest": fastest.get(line.contender.group) == line.contender.label,
            "basis": "oracle" if line.contender.split is None else "given",
            "scaling_efficiency": "given" if given else "oracle",
        }
        for line in hybrids
    ]


def list_rows(
    lines: Sequence[SpeedupLine], counts: Sequence[int], samples: float
) -> list[HybridRow]:
    """Return one row per contender and PE count that its groups divide."""
    best = {count: max(float(line.expected[count - 1]) for line in lines) for count in counts}
    return [
        _describe_count(line, count, best[count], samples)
        for count in counts
        for line in lines
        if count % line.contender.group == 0
    ]


def _describe_count(line: SpeedupLine, count: int, best: float, samples: float) -> HybridRow:
    """Return the row of one contender on `count` PEs; best: speed-up of the fastest contender."""
    position, replicas = count - 1, count // line.contender.group
    speedup, epochs = float(line.expected[position]), float(line.epochs[position])
    drawn = pick_percentiles(line.speedup[1:, position], SHOWN) if speedup > 0 else {}
    flags = int(line.limits[position]) & FORBIDS
    return {
        "pe": count,
        "strategy": line.contender.label,
        "replicas": replicas,
        # None if the machine is too small, or memory does not suffice.
        "scaling_efficiency": None if flags else finite(float(line.efficiency[position])),
        "speedup": speedup if speedup > 0 else None,
        "p10": drawn.get("p10"),
        "p50": drawn.get("p50"),
        "p90": drawn.get("p90"),
        "wins": speedup == best > 0,
        "feasible": not flags,
        "limit": name_limits(flags),
        "global_batch": round(samples * replicas),
        "epochs": finite(epochs),
        "converges": bool(np.isfinite(epochs)),
        "extrapolated": bool(line.extrapolated[position]),
    }


# Compare on as many PEs, or the best of each on at most as many, as Pal et al. do.
Against = Literal["same", "best"]
AGAINST: tuple[Against, ...] = ("same", "best")

Wins = NDArray[np.bool_]

# Gains that differ by less between draws are equal up to rounding.
SAME = 1e-9


def find_crossover(hybrid: SpeedupLine, data: SpeedupLine, against: Against) -> HybridCrossover:
    """Return the least PE count from which the hybrid wins, with p10 and p90; None: never.

    several: it also wins, and loses again, at fewer PEs. chance: fraction of the draws with such a
    count. speedup: of the hybrid there. extrapolated: its batch, or that of data, is not measured.
    """
    counts, wins = _compare(hybrid, data, against)
    first = find_last_rise(wins, counts)
    pe = int(first[0]) if np.isfinite(first[0]) else None
    low, high = pick_ends(first[1:], lambda end: int(end) if np.isfinite(end) else None)
    begins = wins[0] & ~np.append(False, wins[0, :-1])
    return {
        "strategy": hybrid.contender.label,
        "group": hybrid.contender.group,
        "against": against,
        "pe": pe,
        "p10": low,
        "p90": high,
        "chance": float(np.isfinite(first[1:]).mean()),
        "several": int(begins.sum()) > 1,
        "speedup": None if pe is None else float(hybrid.expected[pe - 1]),
        "extrapolated": None
        if pe is None
        else bool(hybrid.extrapolated[pe - 1] | data.extrapolated[pe - 1]),
    }


def _compare(
    hybrid: SpeedupLine, data: SpeedupLine, against: Against
) -> tuple[NDArray[np.int64], Wins]:
    """Return PE counts that groups divide, and whether the hybrid wins there [draw, count]."""
    group = hybrid.contender.group
    counts = np.arange(group, hybrid.most + 1, group)
    ours, theirs = hybrid.speedup, data.speedup
    if against == "best":
        # A cluster of p PEs may leave some idle.
        ours, theirs = (np.maximum.accumulate(line, axis=1) for line in (ours, theirs))
    ours, theirs = ours[:, counts - 1], theirs[:, counts - 1]
    # Leave out counts at which neither can train.
    decided = (ours[0] > 0) | (theirs[0] > 0)
    return counts[decided], ours[:, decided] > theirs[:, decided]


def find_last_rise(wins: Wins, counts: NDArray[np.int64]) -> Floats:
    """Return the first count [draw] after the last loss in `wins` [draw, count]; inf: none."""
    # Past the end if the last count is lost.
    first: Floats = np.append(counts.astype(np.float64), np.inf)[find_last(~wins, axis=1) + 1]
    return first


def find_gain(hybrids: Sequence[SpeedupLine], data: SpeedupLine) -> Gain:
    """Return the gain of the best hybrid over data parallelism, at any PE counts; <0: a loss.

    gain: speed-up of the hybrid / that of data - 1, with p10 and p90; None if either cannot train
    at all. chance: probability of a gain. Percentiles and chance are also None if all draws give
    the same gain, which then says nothing about its uncertainty.
    """
    best = max(hybrids, key=lambda line: float(line.expected.max()))
    # The best of all hybrids in each draw: another one may win there than is expected to.
    ours = np.max([line.speedup.max(axis=1) for line in hybrids], axis=0)
    theirs = data.speedup.max(axis=1)
    trains = bool(ours[0] > 0 and theirs[0] > 0)
    gains = ours / theirs - 1 if trains else np.full(len(ours), np.nan)
    is_unsure = trains and np.ptp(gains[1:]) > SAME
    drawn = pick_percentiles(gains[1:], SHOWN) if is_unsure else {}
    count, other = (int(line.expected.argmax()) for line in (best, data))
    unmeasured = bool(best.extrapolated[count] | data.extrapolated[other])
    return {
        "pe": data.most,
        "gain": finite(float(gains[0])),
        "p10": finite(drawn["p10"]) if drawn else None,
        "p50": finite(drawn["p50"]) if drawn else None,
        "p90": finite(drawn["p90"]) if drawn else None,
        "chance": float((gains[1:] > 0).mean()) if drawn else None,
        "strategy": best.contender.label if trains else None,
        "hybrid_pe": count + 1 if trains else None,
        "data_pe": other + 1 if trains else None,
        "extrapolated": unmeasured if trains else None,
    }
