"""Regions tile a map, and each point near a cell's centre belongs to its winner."""

import numpy as np
import pytest

from sweep.show.plots.regions import list_regions

NOBODY = -1


def measure_area(polygon):
    x, y = np.array(polygon).T
    return abs(np.dot(x, np.roll(y, 1)) - np.dot(y, np.roll(x, 1))) / 2


def make_regions(winners, across=None, up=None):
    rows, columns = winners.shape
    return list_regions(
        winners,
        np.arange(columns) + 0.0,
        np.arange(rows) + 0.0,
        np.full((rows, columns - 1), np.nan) if across is None else across,
        np.full((rows - 1, columns), np.nan) if up is None else up,
        NOBODY,
    )


def test_regions_tile_the_map():
    winners = np.array([[0, 1, 1], [0, 0, 2], [NOBODY, 2, 2]])
    across, up = np.random.default_rng(0).uniform(0.2, 0.8, (2, 3, 2))
    regions = make_regions(winners, np.add(across, [0, 1]), np.add(up.T, [[0], [1]]))
    assert sum(map(measure_area, regions.polygons)) == pytest.approx(9)
    assert set(regions.winners) == {0, 1, 2, NOBODY}


def test_a_border_goes_from_change_to_change():
    across = np.array([[0.25], [0.75]])
    regions = make_regions(np.array([[0, 1], [0, 1]]), across)
    area = sum(
        measure_area(polygon)
        for polygon, winner in zip(regions.polygons, regions.winners, strict=True)
        if winner == 0
    )
    # Left of the border: half a step, and beside the rows it goes straight on.
    assert area == pytest.approx(2 * 0.5 + 0.25 * 0.5 + 0.5 * 1 + 0.75 * 0.5)
    ends = {tuple(point) for border in regions.borders for point in border}
    assert {(0.25, 0.0), (0.5, 0.5), (0.75, 1.0)} <= ends


def test_where_nobody_wins_corners_are_kept():
    regions = make_regions(np.array([[0, NOBODY], [0, 0]]))
    ends = {tuple(point) for border in regions.borders for point in border}
    assert {(0.5, 0.0), (0.5, 0.5), (1.0, 0.5)} <= ends
