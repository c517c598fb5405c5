"""Rows: what is told of each contender at each PE count, as plain data."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from grids.convergence.entry import Convergence
from kernels.flags import FORBIDS
from sweep.answers.numbers import finite
from sweep.cube.variables import name_limits
from sweep.questions.hybrid.draws import find_percentiles
from sweep.questions.hybrid.epochs import draw_epochs
from sweep.questions.hybrid.lines import Line


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


def list_splits(lines: Sequence[Line], given: bool) -> list[dict[str, Any]]:
    """SU^M of each hybrid, whether it and SE were given, and whether it is the fastest."""
    fastest = {
        line.contender.group: line.contender.label
        for line in sorted(lines[1:], key=lambda line: line.split)
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
        for line in lines[1:]
    ]


def list_rows(lines: Sequence[Line], counts: Sequence[int], samples: float) -> list[dict[str, Any]]:
    """A row for each contender at each PE count that its groups divide."""
    return [
        _describe_count(line, count, max(float(each.expected[count - 1]) for each in lines))
        | _describe_batch(line, count, samples)
        for count in counts
        for line in lines
        if count % line.contender.group == 0
    ]


def _describe_count(line: Line, count: int, best: float) -> dict[str, Any]:
    """One contender's speed-up with `count` PEs; `best`: of all contenders."""
    position = count - 1
    speedup = float(line.expected[position])
    drawn = find_percentiles(line.speedup[:, position])
    flags = int(line.limits[position]) & FORBIDS
    return {
        "pe": count,
        "strategy": line.contender.label,
        "replicas": count // line.contender.group,
        # Of a machine that is too small, or of PEs that are too full, there is none.
        "scaling_efficiency": None if flags else finite(float(line.efficiency[position])),
        "speedup": speedup if speedup > 0 else None,
        **{name: value if speedup > 0 else None for name, value in drawn.items()},
        "wins": speedup == best > 0,
        "feasible": not flags,
        "limit": name_limits(flags),
    }


def _describe_batch(line: Line, count: int, samples: float) -> dict[str, Any]:
    """The global batch, its epochs, None where it never converges, and whether it was measured."""
    epochs = float(line.epochs[count - 1])
    return {
        "global_batch": round(samples * (count // line.contender.group)),
        "epochs": finite(epochs),
        "converges": bool(np.isfinite(epochs)),
        "extrapolated": bool(line.extrapolated[count - 1]),
    }
