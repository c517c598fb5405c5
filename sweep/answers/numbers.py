"""Numbers of answers, as Python and JSON have them; ranges over draws."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

PERCENTS = (10, 90)
SHARES = [percent / 100 for percent in PERCENTS]


def number(value: Any) -> float:
    """The only value of an array; ValueError where it has several, of which none is the answer."""
    return float(np.asarray(value).item())


def finite(value: float) -> float | None:
    """The value; None for NaN and infinity, which JSON has no word for."""
    return value if np.isfinite(value) else None


def name_percentiles(name: str) -> tuple[str, ...]:
    """The keys of a range in an answer: `name_p10` and `name_p90`."""
    return tuple(f"{name}_p{percent}" for percent in PERCENTS)


def find_range(values: NDArray[Any]) -> tuple[float, float]:
    """The 10th and the 90th percentile of draws; NaN where any of them is."""
    low, high = np.quantile(values, SHARES)
    return float(low), float(high)


def name_range(name: str, values: NDArray[Any]) -> dict[str, Any]:
    """The range of draws, `name_p10` and `name_p90`; None where any of them is not finite."""
    if not np.isfinite(values).all():
        return dict.fromkeys(name_percentiles(name))
    return dict(zip(name_percentiles(name), find_range(values), strict=True))


def pick_range(name: str, values: NDArray[Any], write: Callable[[float], Any]) -> dict[str, Any]:
    """The range of draws that may be infinite, or whole: its ends are draws, written by `write`."""
    ends = np.quantile(values, SHARES, method="inverted_cdf")
    return dict(zip(name_percentiles(name), map(write, ends.tolist()), strict=True))
