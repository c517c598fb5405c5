"""Convert numbers for Python and JSON; summarise draws by their percentiles."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

N = TypeVar("N")
PERCENTS = (10, 90)  # the ends of every interval in answers
SHARES = [percent / 100 for percent in PERCENTS]


def number(value: Any) -> float:
    """The only value of an array as a float. ValueError: it has none or several."""
    return float(np.asarray(value).item())


def finite(value: float) -> float | None:
    """The value, or None for NaN and infinity, which JSON cannot write."""
    return value if np.isfinite(value) else None


def name_percentiles(name: str) -> tuple[str, ...]:
    """Keys of a range in an answer: `name_p10` and `name_p90`."""
    return tuple(f"{name}_p{percent}" for percent in PERCENTS)


def find_range(values: NDArray[Any]) -> tuple[float, float]:
    """10th and 90th percentiles of draws; NaN if any draw is NaN."""
    low, high = np.quantile(values, SHARES)
    return float(low), float(high)


def read_range(row: Mapping[str, object], name: str) -> tuple[float | None, float | None]:
    """The ends `name_p10` and `name_p90` of a row; None where it has none."""
    low, high = (row.get(key) for key in name_percentiles(name))
    assert isinstance(low, int | float | None)
    assert isinstance(high, int | float | None)
    return low, high


def find_ends(values: NDArray[Any]) -> tuple[float | None, float | None]:
    """10th and 90th percentiles of draws; None if any draw is not finite."""
    return find_range(values) if np.isfinite(values).all() else (None, None)


def pick_ends(values: NDArray[Any], write: Callable[[float], N]) -> tuple[N, N]:
    """10th and 90th of `pick_percentiles`. write: converts each."""
    low, high = map(write, pick_percentiles(values, PERCENTS).values())
    return low, high


def pick_percentiles(values: NDArray[Any], percents: Sequence[int]) -> dict[str, float]:
    """Percentiles of draws by name, such as `p10`, without interpolating between draws.

    For draws that may be infinite, or are counts.
    """
    picked = np.percentile(values, percents, method="inverted_cdf").tolist()
    return {f"p{percent}": value for percent, value in zip(percents, picked, strict=True)}
