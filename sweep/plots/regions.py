"""Regions of a map: the fastest strategy between the swept values, on a fine grid."""

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import map_coordinates

from grids.models.layers import Floats

NOBODY = -1
POINTS = 400  # along an axis: a step is narrower than the borders between regions


def is_logarithmic(values: Floats) -> bool:
    """Return whether an axis with these values is logarithmic."""
    return bool((values > 0).all())


def spread_points(values: Floats) -> Floats:
    """Spread points evenly along an axis [POINTS], half a step beyond its first and last values."""
    scaled = np.log2(values) if is_logarithmic(values) else values
    first, last = (3 * scaled[0] - scaled[1]) / 2, (3 * scaled[-1] - scaled[-2]) / 2
    points = np.linspace(first, last, POINTS)
    return np.exp2(points) if is_logarithmic(values) else points


def _locate_points(values: Floats, points: Floats) -> Floats:
    """Interpolate the positions of points among values, on the scale of the axis."""
    if is_logarithmic(values):
        points, values = np.log2(points), np.log2(values)
    return np.interp(points, values, np.arange(len(values)))


def refine_winners(
    times: Floats, rows: tuple[Floats, Floats], columns: tuple[Floats, Floats]
) -> NDArray[np.int64]:
    """Find the winner at points [y, x]: the fastest of the winners at the swept values around it.

    times [strategy, y, x], inf where forbidden. rows, columns: values of an axis, and its points.
    The logarithm of a time is interpolated linearly between allowed values; a strategy ends halfway
    to a value that forbids it.
    """
    at = np.meshgrid(_locate_points(*rows), _locate_points(*columns), indexing="ij")
    nearest = tuple(np.rint(positions).astype(int) for positions in at)
    least, fastest = times.min(axis=0), times.argmin(axis=0)
    winners, lead = np.full(at[0].shape, NOBODY), np.full(at[0].shape, np.inf)
    for number, seconds in enumerate(times):
        allowed = np.isfinite(seconds)
        ratios = np.divide(seconds, least, where=allowed, out=np.ones(least.shape))
        behind = map_coordinates(np.log(ratios), at, order=1)
        around = map_coordinates(1.0 * (allowed & (fastest == number)), at, order=1) > 0
        wins = around & allowed[nearest] & (behind < lead)
        winners[wins], lead[wins] = number, behind[wins]
    return winners
