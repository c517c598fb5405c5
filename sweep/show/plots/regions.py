"""Regions of a map: polygons about the cells of a grid, whose borders are where winners change.

Between the centres of four cells lies a square, which is cut into one quadrangle for each of them:
through the places on its sides where the winner changes, and a point between these. So borders are
lines from crossover to crossover, and no stairs.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from grids.models.layers import Floats

Point = tuple[float, float]


@dataclass(frozen=True)
class Regions:
    """Polygons [point] on scales on which lines are straight, and who is the winner of each.

    borders: lines between polygons of different winners.
    """

    polygons: list[list[Point]]
    winners: list[int]
    borders: list[list[Point]]


def list_regions(
    winners: NDArray[np.int64], x: Floats, y: Floats, across: Floats, up: Floats, nobody: int
) -> Regions:
    """The regions of winners [y, x], cells about x and y, which end half a step beyond the last.

    across [y, x - 1], up [y - 1, x]: where between two neighbours the winner changes; NaN: half
    way. A border with what nobody wins keeps the corners of cells.
    """
    winners = np.pad(winners, 1, "edge")
    middles = (np.tile(_find_middles(x), (len(y), 1)), np.tile(_find_middles(y), (len(x), 1)).T)
    across = _pad(np.where(np.isnan(across), middles[0], across), x, (1, 0))
    up = _pad(np.where(np.isnan(up), middles[1], up), y, (0, 1))
    x, y = add_ends(x), add_ends(y)
    regions = Regions([], [], [])
    for row, column in product(range(len(y) - 1), range(len(x) - 1)):
        corners = winners[row : row + 2, column : column + 2]
        sides = {
            "low": (float(across[row, column]), float(y[row])),
            "high": (float(across[row + 1, column]), float(y[row + 1])),
            "left": (float(x[column]), float(up[row, column])),
            "right": (float(x[column + 1]), float(up[row, column + 1])),
        }
        _cut_square(regions, corners, sides, (x[column : column + 2], y[row : row + 2]), nobody)
    return regions


def _cut_square(
    regions: Regions,
    corners: NDArray[np.int64],
    sides: dict[str, Point],
    ends: tuple[Floats, Floats],
    nobody: int,
) -> None:
    """Add the parts of a square between four centres."""
    lower, upper = corners
    pairs = {
        "low": (lower[0], lower[1]),
        "high": (upper[0], upper[1]),
        "left": (lower[0], upper[0]),
        "right": (lower[1], upper[1]),
    }
    changed = [sides[side] for side, (first, second) in pairs.items() if first != second]
    about = ends if not changed or nobody in corners else np.transpose(changed)
    centre = (float(np.mean(about[0])), float(np.mean(about[1])))
    for (n, m), of_row, of_column in _list_corners():
        corner = (float(ends[0][m]), float(ends[1][n]))
        regions.polygons.append([corner, sides[of_row], centre, sides[of_column]])
        regions.winners.append(int(corners[n, m]))
    regions.borders.extend([each, centre] for each in changed)


def _list_corners() -> Iterator[tuple[tuple[int, int], str, str]]:
    """Each corner of a square, and the sides next to it."""
    yield (0, 0), "low", "left"
    yield (0, 1), "low", "right"
    yield (1, 0), "high", "left"
    yield (1, 1), "high", "right"


def _find_middles(values: Floats) -> Floats:
    return np.asarray((values[1:] + values[:-1]) / 2)


def add_ends(values: Floats) -> Floats:
    """The values, and half a step beyond the first and the last."""
    first, last = values[1] - values[0], values[-1] - values[-2]
    return np.concatenate([[values[0] - first / 2], values, [values[-1] + last / 2]])


def _pad(places: Floats, values: Floats, along: tuple[int, int]) -> Floats:
    """The same for the ends: beside the last cells borders go straight on.

    along: how many rows and columns more at either end repeat the last; across the others there is
    nothing between a cell and its own end.
    """
    ends = add_ends(values)
    repeated = np.pad(places, [(each, each) for each in along], "edge")
    axis = 0 if along[0] == 0 else 1
    shape = [1, 1]
    shape[1 - axis] = repeated.shape[1 - axis]
    first, last = (np.full(shape, (ends[n] + ends[n + 1]) / 2) for n in (0, len(ends) - 2))
    return np.concatenate([first, repeated, last], axis=axis)
