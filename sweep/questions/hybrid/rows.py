"""Rows of the answer: each contender at each PE count, its crossovers, and the gain."""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from grids.convergence.entry import Convergence
from kernels.names.arrays import Floats
from kernels.names.flags import FORBIDS
from sweep.answers.numbers import finite
from sweep.cube.variables import name_limits
from sweep.questions.hybrid.epochs import draw_epochs, find_percentiles
from sweep.questions.hybrid.lines import SpeedupLine


def describe_convergence(convergence: Convergence, samples: float) -> dict[str, Any]:
    """Describe the epochs: their source, law, and E(b) for one PE, whose batch is `samples`."""
    alone = draw_epochs(convergence, np.array([samples]), np.zeros((1, 2)), np.zeros(1, bool))
    return {
        "target": convergence.target,
        "epochs": {
            "source": list(convergence.source),
            "epochs_min": convergence.epochs_min,
            "critical_batch": convergence.critical_batch,
            "measured": [convergence.smallest, convergence.largest],
            "converges_to": convergence.converges_to,
            "alone": float(alone[0, 0]),
            "alone_extrapolated": convergence.is_extrapolated(round(samples)),
        },
    }


def list_splits(hybrids: Sequence[SpeedupLine], given: bool) -> list[dict[str, Any]]:
    """Return one row per hybrid: SU^M, whether it and SE were given, whether it is the fastest."""
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
) -> list[dict[str, Any]]:
    """Return one row per contender and PE count that its groups divide."""
    best = {count: max(float(line.expected[count - 1]) for line in lines) for count in counts}
    return [
        _describe_count(line, count, best[count], samples)
        for count in counts
        for line in lines
        if count % line.contender.group == 0
    ]


def _describe_count(line: SpeedupLine, count: int, best: float, samples: float) -> dict[str, Any]:
    """Return the row of one contender on `count` PEs; best: speed-up of the fastest contender."""
    position, replicas = count - 1, count // line.contender.group
    speedup, epochs = float(line.expected[position]), float(line.epochs[position])
    drawn = find_percentiles(line.speedup[:, position])
    flags = int(line.limits[position]) & FORBIDS
    return {
        "pe": count,
        "strategy": line.contender.label,
        "replicas": replicas,
        # None if the machine is too small, or memory does not suffice.
        "scaling_efficiency": None if flags else finite(float(line.efficiency[position])),
        "speedup": speedup if speedup > 0 else None,
        **{name: value if speedup > 0 else None for name, value in drawn.items()},
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


def find_crossover(hybrid: SpeedupLine, data: SpeedupLine, against: Against) -> dict[str, Any]:
    """Return the least PE count from which the hybrid wins, with p10 and p90; None: never.

    several: it also wins, and loses again, at fewer PEs. chance: fraction of the draws with such a
    count. speedup: of the hybrid there. extrapolated: its batch, or that of data, is not measured.
    """
    counts, wins = _compare(hybrid, data, against)
    first = find_last_rise(wins, counts)
    pe = int(first[0]) if np.isfinite(first[0]) else None
    ends = {name: find_percentiles(first)[name] for name in ("p10", "p90")}
    begins = wins[0] & ~np.append(False, wins[0, :-1])
    return {
        "strategy": hybrid.contender.label,
        "group": hybrid.contender.group,
        "against": against,
        "pe": pe,
        **{name: int(end) if np.isfinite(end) else None for name, end in ends.items()},
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
    # Position after the last loss: 0 without a loss, past the end if the last count is lost.
    behind = np.where(~wins, np.arange(1, len(counts) + 1), 0).max(axis=1, initial=0)
    first: Floats = np.append(counts.astype(np.float64), np.inf)[behind]
    return first


def find_gain(hybrids: Sequence[SpeedupLine], data: SpeedupLine) -> dict[str, Any]:
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
    drawn = gains if np.ptp(gains[1:]) > SAME else np.full(len(ours), np.nan)
    count, other = (int(line.expected.argmax()) for line in (best, data))
    unmeasured = bool(best.extrapolated[count] | data.extrapolated[other])
    return {
        "pe": data.most,
        "gain": finite(float(gains[0])),
        **{name: finite(value) for name, value in find_percentiles(drawn).items()},
        "chance": None if np.isnan(drawn[0]) else float((gains[1:] > 0).mean()),
        "strategy": best.contender.label if trains else None,
        "hybrid_pe": count + 1 if trains else None,
        "data_pe": other + 1 if trains else None,
        "extrapolated": unmeasured if trains else None,
    }
