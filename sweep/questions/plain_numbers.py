"""Plain numbers out of an answer's arrays, as Python and JSON have them."""

from typing import Any

import numpy as np


def number(value: Any) -> float:
    """The only value of an array; ValueError where it has several, of which none is the answer."""
    return float(np.asarray(value).item())


def finite(value: float) -> float | None:
    """NaN, which JSON has no word for, as None."""
    return value if np.isfinite(value) else None
