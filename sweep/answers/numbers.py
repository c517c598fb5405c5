"""Convert numbers for Python and JSON; summarise draws by their percentiles."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

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


def name_range(name: str, values: NDArray[Any]) -> dict[str, Any]:
    """Percentiles of draws as `name_p10` and `name_p90`; None if any draw is not finite."""
    if not np.isfinite(values).all():
        return dict.fromkeys(name_percentiles(name))
    return dict(zip(name_percentiles(name), find_range(values), strict=True))


def pick_range(name: str, values: NDArray[Any], write: Callable[[float], Any]) -> dict[str, Any]:
    """Values of `pick_percentiles` as `name_p10` and `name_p90`. write: converts each."""
    ends = pick_percentiles(values, PERCENTS)
    return {f"{name}_{key}": write(end) for key, end in ends.items()}


def pick_percentiles(values: NDArray[Any], percents: Sequence[int]) -> dict[str, float]:
    """Percentiles of draws by name, such as `p10`, without interpolating between draws.

    For draws that may be infinite, or are counts.
    """
    picked = np.percentile(values, percents, method="inverted_cdf").tolist()
    return {f"p{percent}": value for percent, value in zip(percents, picked, strict=True)}
