"""Scaling: a time, a throughput or an efficiency over p, a curve for each strategy."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from grids.entries.strategies import Strategy
from grids.models.layers import Floats
from grids.reading.errors import InputError, shorten, suggest_name
from kernels.oracle import settle_choices
from sweep.answers.draws import draw_times
from sweep.answers.numbers import SHARES
from sweep.cells.selection import Selection
from sweep.cells.source import Source
from sweep.cube.derived import Paradl
from sweep.plots.curves import draw_curve, make_hollow_key, name_curve
from sweep.plots.figures import (
    SCALES,
    Size,
    add_legend,
    make_axes,
    scale_amounts,
    scale_counts,
    use_style,
)
from sweep.plots.looks import Look, choose_looks
from sweep.plots.slices import (
    BEYOND,
    build_case,
    describe_place,
    expect_any,
    find_allowed,
    find_beyond,
    list_by_cause,
    name_reasons,
    name_stop,
    open_slice,
    read_slice,
)

if TYPE_CHECKING:
    import xarray as xr

Quantity = Literal["time", "throughput", "efficiency"]
ENDS = ("epoch_time_p10", "epoch_time_p90")
# PE counts of a curve whose efficiency is drawn.
MOST_COUNTS = 64
SERIAL = Strategy("serial")


@dataclass(frozen=True)
class Curve:
    """One strategy at the PE counts that nothing forbids it, ascending.

    values: by PE count. low, high: 10th and 90th percentiles, where the cube holds them. cause:
    what forbids the next count; None: the axis ends. beyond: where the global batch is larger than
    the data set.
    """

    strategy: str
    pe: Floats
    values: Floats
    low: Floats | None = None
    high: Floats | None = None
    cause: str | None = None
    beyond: NDArray[np.bool_] | None = None

    @property
    def is_stopped(self) -> bool:
        """Whether a limit ends the curve before the axis does; one PE is all that serial is."""
        return self.cause is not None and self.strategy != "serial"


@dataclass(frozen=True)
class Scaling:
    """Curves in the order of the cube, and the strategies without any, with why.

    place: what all of it is about. known: all strategies of the cube, which colours go by.
    """

    quantity: Quantity
    place: str
    curves: tuple[Curve, ...]
    known: tuple[str, ...]
    forbidden: Mapping[str, str] = field(default_factory=dict)


def describe_scaling(
    source: Source, selection: Selection | None = None, quantity: Quantity = "time"
) -> Scaling:
    """The curves of a slice: seconds an epoch, samples a second, or speed-up a PE.

    InputError: an axis beside strategy and pe with several values. NothingFeasibleError: no curve.
    """
    if quantity not in get_args(Quantity):
        raise InputError(
            f"unknown quantity {shorten(quantity)}",
            where="quantity",
            advice=suggest_name(str(quantity), get_args(Quantity)),
        )
    cells = read_slice(open_slice(source, selection, ENDS), ("strategy", "pe"))
    derived = Paradl(cells)
    lines = cells.assign(
        time=derived.epoch_time,
        value=getattr(derived, {"time": "epoch_time"}.get(quantity, quantity)),
    )
    labels = [str(label) for label in cells["strategy"].values]
    drawn = {label: _make_curve(lines.sel(strategy=label), quantity) for label in labels}
    forbidden = {name: reason for name, reason in drawn.items() if isinstance(reason, str)}
    curves = tuple(curve for curve in drawn.values() if isinstance(curve, Curve))
    expect_any(curves, "; ".join(dict.fromkeys(forbidden.values())))
    place = describe_place(cells, shown=("strategy", "pe"))
    return Scaling(quantity, place, curves, derived.grid.labels["strategy"], forbidden)


def _make_curve(line: "xr.Dataset", quantity: Quantity) -> Curve | str:
    """The curve of one strategy; why there is none."""
    limit, time = _flatten(line, "limit"), _flatten(line, "time").astype(float)
    allowed = find_allowed(limit) & np.isfinite(time)
    if not allowed.any():
        return name_reasons(limit)
    return Curve(
        str(line["strategy"].item()),
        line["pe"].values.astype(float)[allowed],
        _flatten(line, "value").astype(float)[allowed],
        **_find_band(line.isel(pe=np.flatnonzero(allowed)), quantity),
        cause=name_stop(limit, int(np.flatnonzero(allowed)[-1])),
        beyond=find_beyond(limit[allowed]),
    )


def _flatten(line: "xr.Dataset", name: str) -> Any:
    """A variable by PE count; every other dimension has the size 1."""
    return line[name].values.reshape(-1)


def _find_band(line: "xr.Dataset", quantity: Quantity) -> dict[str, Floats]:
    """The ends of the 80 % interval by PE count; nothing where the cube holds none."""
    if not all(name in line for name in ENDS):
        return {}
    if quantity == "efficiency":
        return _draw_efficiencies(line)
    early, late = (_flatten(line, name).astype(float) for name in ENDS)
    if quantity == "time":
        return {"low": early, "high": late}
    # Inverse to the time: of the longest it is the least.
    value, time = (_flatten(line, name).astype(float) for name in ("value", "time"))
    return {"low": value * time / late, "high": value * time / early}


def _draw_efficiencies(line: "xr.Dataset") -> dict[str, Floats]:
    """The same of the efficiency, a ratio of two times of one machine: both from the same draws.

    Of more than 64 PE counts evenly some, and between them by straight lines in logarithms.
    """
    grid = Paradl(line).grid.ask_intervals()
    if not grid.has_intervals:  # Table III
        return {}
    pe, value = line["pe"].values.astype(float), _flatten(line, "value").astype(float)
    kept = np.unique(np.linspace(0, pe.size - 1, min(pe.size, MOST_COUNTS)).round().astype(int))
    together = draw_times(settle_choices(build_case(grid, line.isel(pe=kept))))
    alone = draw_times(build_case(grid, line.isel(pe=[0]).assign_coords(pe=[1]), SERIAL))
    draws = together.shape[-1]
    shares = alone.reshape(1, draws) / together.reshape(kept.size, draws) / pe[kept, None]
    shares[pe[kept] == 1] = 1.0  # one PE alone, whatever the strategy
    ends = np.quantile(shares, SHARES, axis=1) / value[kept]
    low, high = (
        value * np.exp(np.interp(np.log(pe), np.log(pe[kept]), np.log(end))) for end in ends
    )
    return {"low": low, "high": high}


UNITS = {
    "time": "time of an epoch [s]",
    "throughput": "samples a second",
    "efficiency": "parallel efficiency",
}
MOST_BANDS = 6  # more of them only hide each other


def draw_scaling(scaling: Scaling, size: Size = "page") -> Figure:
    """The figure of some curves, the legend in the order of their ends.

    A cross ends a curve that a limit stops; the cause stands below its name.
    """
    curves = sorted(scaling.curves, key=lambda curve: -curve.values[-1])
    looks = choose_looks(scaling.known)
    banded = len(curves) <= MOST_BANDS and any(curve.low is not None for curve in curves)
    rows = len(curves) + sum(curve.is_stopped for curve in curves)
    with use_style(size):
        height = max(SCALES[size].height, SCALES[size].measure_rows(rows))
        figure, axes = make_axes(
            size,
            scaling.place + ("; bands: 80%" if banded else ""),
            f"not drawn: {list_by_cause(scaling.forbidden)}" if scaling.forbidden else "",
            height,
        )
        lines = [_draw_curve(axes, curve, looks[curve.strategy], banded) for curve in curves]
        if any(curve.beyond is not None and curve.beyond.any() for curve in curves):
            lines.append(make_hollow_key(BEYOND.replace("larger", "\nlarger")))
        _scale_axes(axes, scaling, banded)
        add_legend(figure, lines)
    return figure


def _draw_curve(axes: Axes, curve: Curve, look: Look, banded: bool) -> Line2D:
    """Draw a curve, and a cross where it is stopped."""
    band = None
    if banded and curve.low is not None and curve.high is not None:
        band = curve.low, curve.high
    line = draw_curve(axes, look, curve.pe, curve.values, band, curve.beyond)
    if curve.is_stopped:
        end, size = (curve.pe[-1:], curve.values[-1:]), 1.5 * line.get_markersize()
        cross = {"color": "black", "markersize": size, "markeredgewidth": line.get_linewidth()}
        axes.plot(*end, "x", **cross, zorder=4, clip_on=False)
    cause = f"to {curve.pe[-1]:,.0f}: {curve.cause}" if curve.is_stopped else None
    name_curve(line, curve.strategy, cause)
    return line


def _scale_axes(axes: Axes, scaling: Scaling, banded: bool) -> None:
    """Scales, ticks and words of both axes."""
    drawn = [curve.values for curve in scaling.curves]
    if banded:
        ends = [end for curve in scaling.curves for end in (curve.low, curve.high)]
        drawn += [end for end in ends if end is not None]
    values = np.concatenate(drawn)
    if scaling.quantity == "efficiency":
        axes.set_ylim(0, 1.05 * max(1.0, values.max()))
    else:
        scale_amounts(axes, values.min(), values.max())
    axes.set_ylabel(UNITS[scaling.quantity])
    scale_counts(axes, np.concatenate([curve.pe for curve in scaling.curves]))
    axes.grid()
