"""Rows: what is known of each contender at each PE count, as plain data."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from grids.convergence.entry import Convergence
from kernels.names.flags import FORBIDS
from sweep.answers.numbers import finite
from sweep.cube.variables import name_limits
from sweep.questions.hybrid.draws import find_percentiles
from sweep.questions.hybrid.epochs import draw_epochs
from sweep.questions.hybrid.lines import SpeedupLine


def describe_convergence(convergence: Convergence, samples: float) -> dict[str, Any]:
    """Where epochs come from, and those of one PE, whose batch is `samples`: E(b)."""
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
    """SU^M of each hybrid, whether it and SE were given, and whether it is the fastest."""
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
    """A row for each contender at each PE count that its groups divide."""
    best = {count: max(float(line.expected[count - 1]) for line in lines) for count in counts}
    return [
        _describe_count(line, count, best[count], samples)
        for count in counts
        for line in lines
        if count % line.contender.group == 0
    ]


def _describe_count(line: SpeedupLine, count: int, best: float, samples: float) -> dict[str, Any]:
    """One contender with `count` PEs; `best`: the speed-up of the fastest there."""
    position, replicas = count - 1, count // line.contender.group
    speedup, epochs = float(line.expected[position]), float(line.epochs[position])
    drawn = find_percentiles(line.speedup[:, position])
    flags = int(line.limits[position]) & FORBIDS
    return {
        "pe": count,
        "strategy": line.contender.label,
        "replicas": replicas,
        # There is none for a machine that is too small, or PEs that are too full.
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
