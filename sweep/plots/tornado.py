"""Tornado: by how much each parameter of the machine changes the time of one configuration."""

from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure

from paradl.sweep.cells.selection import Selection
from paradl.sweep.cells.source import Source
from paradl.sweep.cube.derived_quantities import Paradl
from paradl.sweep.plots.figures import add_legend, draw_bars, make_keys, write_totals
from paradl.sweep.plots.looks import LESS, MORE, SLOPE_LOOKS, styled
from paradl.sweep.plots.slices import expect_any, open_slice, read_fastest, write_axis, write_title
from paradl.sweep.questions.sensitivity import list_sensitivities

MOST_BARS = 12
LEAST = 0.001  # of an elasticity that is drawn


@dataclass(frozen=True)
class Slope:
    """The elasticity d log T / d log x of a parameter; effect: of the upgrade that was tried."""

    name: str
    elasticity: float
    effect: str = ""


@dataclass(frozen=True)
class Tornado:
    """Slopes, the steepest first. rest: parameters of smaller elasticities, which are not drawn."""

    title: str
    slopes: tuple[Slope, ...]
    rest: tuple[str, ...] = ()


def describe_tornado(source: Source, selection: Selection | None = None) -> Tornado:
    """Find the elasticities of one configuration's time.

    InputError: an axis has several values. NothingFeasibleError: the configuration is forbidden.
    """
    cells = read_fastest(open_slice(source, selection), ())
    rows_of_cell = {dim: [cells[dim].item()] for dim in Paradl(cells).grid.rows}
    rows = list_sensitivities(source, {**(selection or {}), **rows_of_cell})
    expect_any(rows, "no allowed configuration; why: paradl explain")
    # The widest bar on top gives the picture its name.
    rows = sorted(rows, key=lambda row: -abs(row["elasticity"]))
    shown = [row for row in rows if abs(row["elasticity"]) >= LEAST][:MOST_BARS]
    slopes = (
        Slope(
            write_axis(row["parameter"]),
            row["elasticity"],
            "" if row["change"] is None else f"{row['upgrade']}: {row['change']:+.1%}",
        )
        for row in shown
    )
    rest = tuple(write_axis(row["parameter"]) for row in rows[len(shown) :])
    return Tornado(write_title(cells), tuple(slopes), rest)


@styled
def draw_tornado(tornado: Tornado) -> Figure:
    """Draw a bar for each parameter, and on the right what its upgrade would change."""
    values = np.array([slope.elasticity for slope in tornado.slopes])
    parts = {MORE: np.minimum(values, 0), LESS: np.maximum(values, 0)}
    parts = {name: sizes for name, sizes in parts.items() if sizes.any()}
    title = f"sensitivity of the time of an epoch: {tornado.title}"
    note = "elasticity: % of time for 1 % more of a parameter; right: time if halved or doubled"
    if tornado.rest:
        note += f"; not drawn: {len(tornado.rest)} smaller ones"
    names = [slope.name for slope in tornado.slopes]
    figure, axes = draw_bars(title, note, names, parts, SLOPE_LOOKS, ("elasticity", ""))
    axes.axvline(0, color="grey", linewidth=0.6, zorder=0)
    write_totals(axes, [slope.effect for slope in tornado.slopes])
    add_legend(figure, make_keys(parts, SLOPE_LOOKS))
    return figure
