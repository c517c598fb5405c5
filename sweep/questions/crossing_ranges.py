"""Ranges of crossovers: where the first lies over draws of what is not known."""

from functools import partial
from typing import Any

import numpy as np

from grids.models.layers import Floats
from sweep.answers.numbers import pick_range

Row = dict[str, Any]

# Times that are drawn for one answer, of all strategies along all values.
FEW = 2**14


def find_crossing_ranges(values: Floats, ours: Floats, theirs: Floats, whole: bool) -> Row:
    """`first_p10` and `first_p90`, None where there is no crossover, and `crosses_probability`.

    values: ascending, those at which both are allowed. ours, theirs [value, draw]: what is to be
    small. Where ours is ahead throughout, that is from the first value on. Roots of a continuous
    parameter lie on a line between two values in logarithms.
    """
    draws = ours.shape[-1]
    first = np.full(draws, np.inf)
    crossed = 0
    with np.errstate(divide="ignore"):  # of a value 0, which a parameter may have
        axis = values if whole else np.log(values)
    for draw in range(draws) if values.size else ():
        apart = np.log(ours[:, draw] / theirs[:, draw])
        ahead = apart < 0
        changes = np.flatnonzero(ahead[1:] & ~ahead[:-1])
        crossed += bool(changes.size)
        if changes.size:
            first[draw] = _find_root(values, axis, apart, int(changes[0]), whole)
        elif ahead.all():
            first[draw] = values[0]
    return {
        **pick_range("first", first, partial(_write, whole=whole)),
        "crosses_probability": crossed / draws,
    }


def _find_root(values: Floats, axis: Floats, apart: Floats, at: int, whole: bool) -> float:
    """Where the logarithm of a ratio falls below 0 between a value and the next."""
    if whole or np.isinf(axis[at]):
        return float(values[at + 1])
    part = apart[at] / (apart[at] - apart[at + 1])
    return float(np.exp(axis[at] + part * (axis[at + 1] - axis[at])))


def _write(value: float, whole: bool) -> int | float | None:
    if np.isinf(value):
        return None
    return int(value) if whole else value
