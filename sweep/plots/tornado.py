"""Tornado: by how much each parameter of the machine changes the time of one configuration."""

import numpy as np

from paradl.sweep.cells.selection import Selection
from paradl.sweep.cells.source import Source
from paradl.sweep.cube.derived_quantities import Paradl
from paradl.sweep.plots.bars import Bars
from paradl.sweep.plots.looks import LESS, MORE, SLOPE_LOOKS
from paradl.sweep.plots.slices import expect_any, open_slice, read_fastest, write_axis, write_title
from paradl.sweep.questions.sensitivity import list_sensitivities

MOST_SLOPES = 12
LEAST = 0.001  # of an elasticity that is drawn
NOTE = "elasticity: % of time for 1 % more of a parameter; right: time if halved or doubled"


def describe_tornado(source: Source, selection: Selection | None = None) -> Bars:
    """Find the elasticities d log T / d log x of one configuration's time, the steepest first.

    Texts are of the upgrade that was tried. InputError: an axis has several values.
    NothingFeasibleError: the configuration is forbidden.
    """
    cells = read_fastest(open_slice(source, selection), ())
    rows_of_cell = {dim: [cells[dim].item()] for dim in Paradl(cells).grid.rows}
    rows = list_sensitivities(source, {**(selection or {}), **rows_of_cell})
    expect_any(rows, "no allowed configuration; why: paradl explain")
    # The widest bar on top gives the picture its name.
    rows = sorted(rows, key=lambda row: -abs(row["elasticity"]))
    shown = [row for row in rows if abs(row["elasticity"]) >= LEAST][:MOST_SLOPES]
    rest = len(rows) - len(shown)
    slopes = np.array([row["elasticity"] for row in shown])
    return Bars(
        f"sensitivity of the time of an epoch: {write_title(cells)}",
        [write_axis(row["parameter"]) for row in shown],
        {MORE: np.minimum(slopes, 0), LESS: np.maximum(slopes, 0)},
        SLOPE_LOOKS,
        ("elasticity", ""),
        [
            "" if row["change"] is None else f"{row['upgrade']}: {row['change']:+.1%}"
            for row in shown
        ],
        [NOTE, *([f"not drawn: {rest} smaller ones"] if rest else [])],
    )
