"""Count and name the limits that forbid cells."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paradl.kernels.names.flags import FORBIDS, Limit
from paradl.sweep.cube.variables import join_limits, name_limits

Flags = NDArray[Any]


def list_reasons(flags: int) -> list[str]:
    """Names of the limits that forbid a cell; empty if it is allowed."""
    return name_limits(int(flags) & FORBIDS)


def keep_reasons(limits: Iterable[str]) -> list[str]:
    """Names among an answer's limits that forbid it; marks forbid nothing."""
    forbidding = list_reasons(FORBIDS)
    return [name for name in limits if name in forbidding]


def count_reasons(limit: Flags) -> NDArray[np.int64]:
    """Number of limits that forbid each cell."""
    # `.value`, since with the flag itself NumPy would widen the cube's uint16 to int64.
    single = [((limit & flag.value) > 0).astype(np.int64) for flag in Limit if flag & FORBIDS]
    total: NDArray[np.int64] = np.sum(single, axis=0)
    return total


def write_commonest(limit: Flags) -> str:
    """The most frequent combination of limits that forbid a cell, as text."""
    kinds, counts = np.unique(limit & FORBIDS, return_counts=True)
    return ", ".join(name_limits(int(kinds[counts.argmax()])))


def write_each(limit: Flags, nothing: str) -> NDArray[Any]:
    """Limits of each cell as text; `nothing` where there are none."""
    texts, at = join_limits(limit)
    return np.array([text or nothing for text in texts], object)[at]


def rank_limits(limit: Flags) -> list[str]:
    """Names of the limits that forbid cells, the most frequent first."""
    flags = {name: Limit[name.upper()] for name in list_reasons(FORBIDS)}
    return rank_reasons(
        {name: int(((limit & flag.value) > 0).sum()) for name, flag in flags.items()}
    )


def rank_reasons(counts: Mapping[str, int]) -> list[str]:
    """Names with a count above 0, the most frequent first; ties keep the order of `Limit`."""
    frequent = sorted(counts.items(), key=lambda item: -item[1])
    return [name for name, count in frequent if count]
