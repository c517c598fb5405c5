"""Ranges: axes with values drawn between two ends, for samples.

`{uniform: [a, b]}` and `{loguniform: [a, b]}`. Grids have no such axes, since cells have listed
values.
"""

from dataclasses import dataclass, field
from typing import Literal, get_args

import numpy as np

from grids.entries.quantity import Parameter
from grids.reading.errors import InputError, shorten
from kernels.names.arrays import Floats

Law = Literal["uniform", "loguniform"]
LAWS: tuple[Law, ...] = get_args(Law)


@dataclass(frozen=True)
class Range:
    """Values from `low` to `high` in SI units, uniform in the value or in its logarithm; whole
    numbers for counts.

    >>> Range("loguniform", 1.0, 100.0).read_quantiles(np.array([0.5]))
    array([10.])
    """

    law: Law
    low: float
    high: float
    whole: bool = False
    # As the user wrote it; kept in a store of samples.
    form: object = field(default=None, compare=False)

    def read_quantiles(self, parts: Floats) -> Floats:
        """Return the values of quantiles in [0, 1)."""
        # Half a count more at either end makes all counts equally likely.
        low, high = (self.low - 0.5, self.high + 0.5) if self.whole else (self.low, self.high)
        if self.law == "loguniform":
            values = np.exp(np.log(low) + parts * (np.log(high) - np.log(low)))
        else:
            values = low + parts * (high - low)
        if self.whole:
            values = np.round(values)
        return np.asarray(np.clip(values, self.low, self.high))


def is_range(form: object) -> bool:
    """True if a user's form is meant as a range, valid or not."""
    return isinstance(form, dict) and len(form) == 1 and next(iter(form)) in LAWS


def read_range(form: object, parameter: Parameter) -> Range:
    """Read a range `{law: [first, last]}`; InputError: what is wrong with it."""
    assert isinstance(form, dict)
    (law, ends), *_ = form.items()
    if not isinstance(ends, list | tuple) or len(ends) != 2:
        raise InputError(
            f"expected {law}: [first, last], got {shorten(ends)}",
            advice=f"write it like '{{{law}: [1e9, 1e11]}}'",
        )
    low, high = parameter.read(ends[0]), parameter.read(ends[1])
    if low >= high:
        raise InputError(
            f"expected the first value below the last, got {shorten(ends)}",
            advice="swap them" if low > high else f"write {low:g} alone",
        )
    if law == "loguniform" and low <= 0:
        raise InputError(
            f"expected a first value above 0, got {shorten(ends[0])}",
            advice="write a small one, or {uniform: [...]}",
        )
    if parameter.layered and parameter.whole:
        raise InputError(
            f"{parameter.name} decides how layers are laid out and cannot be a range",
            advice=f"list its values, such as {{pow2: [{low:g}, {high:g}]}}",
        )
    return Range(law, low, high, parameter.whole, form)
