"""Scaling: time, throughput or efficiency over p, one curve per strategy."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from paradl.grids.reading.errors import InputError
from paradl.kernels.names.arrays import Floats
from paradl.sweep.cells.selection import Selection
from paradl.sweep.cells.source import Source
from paradl.sweep.cube.derived_quantities import Paradl
from paradl.sweep.cube.variables import find_allowed
from paradl.sweep.plots import slices
from paradl.sweep.plots.figures import add_legend, make_axes, scale_amounts, scale_counts
from paradl.sweep.plots.looks import Look, choose_looks, draw_curve, make_hollow_key, styled

if TYPE_CHECKING:
    import xarray as xr

Quantity = Literal["time", "throughput", "efficiency"]
# Name of the quantity in `ds.paradl`, the label of its axis, and its power of p where it is ideal.
QUANTITIES = {
    "time": ("epoch_time", "time of an epoch [s]", -1),
    "throughput": ("throughput", "throughput [samples/s]", 1),
    "efficiency": ("efficiency", "parallel efficiency", 0),
}
ENDS = ("epoch_time_p10", "epoch_time_p90")
Band = tuple[Floats, Floats]


@dataclass(frozen=True)
class ScalingCurve:
    """One strategy's values [pe] at its allowed PE counts, ascending.

    beyond [pe]: where the global batch is larger than the data set. band: 10th and 90th percentiles
    [pe], if the cube has them. cause: the limit that forbids the next count; None: the axis ends.
    """

    strategy: str
    pe: Floats
    values: Floats
    beyond: NDArray[np.bool_]
    band: Band | None = None
    cause: str | None = None

    @property
    def is_stopped(self) -> bool:
        """Whether a limit ends the curve; serial runs on one PE by definition."""
        return self.cause is not None and self.strategy != "serial"


@dataclass(frozen=True)
class ScalingCurves:
    """Curves in the order of the cube. forbidden: strategies without one, with the reason.

    known: all strategies of the cube, so that its pictures agree in colours. serial: the value on
    one PE, from which ideal scaling starts; NaN if unknown.
    """

    quantity: Quantity
    title: str
    curves: tuple[ScalingCurve, ...]
    known: tuple[str, ...]
    forbidden: Mapping[str, str] = field(default_factory=dict)
    serial: float = np.nan


def describe_scaling(
    source: Source, selection: Selection | None = None, quantity: Quantity = "time"
) -> ScalingCurves:
    """Compute the curves of a slice: seconds per epoch, samples per second, or speed-up per PE.

    InputError: another axis than strategy and pe has several values. NothingFeasibleError: no
    curve.
    """
    if quantity not in QUANTITIES:
        raise InputError.unknown("quantity", quantity, QUANTITIES, where="quantity")
    cells = slices.read_fastest(slices.open_slice(source, selection, ENDS), ("strategy", "pe"))
    derived = Paradl(cells)
    value = getattr(derived, QUANTITIES[quantity][0])
    lines = cells.assign(time=derived.epoch_time, value=value)
    curves, forbidden = [], {}
    for strategy in map(str, cells["strategy"].values):
        line = lines.sel(strategy=strategy)
        line = line.squeeze([dim for dim in line.dims if dim != "pe"])
        allowed = find_allowed(line["limit"].values) & np.isfinite(line["time"].values)
        if allowed.any():
            curves.append(_make_curve(line, allowed, quantity))
        else:
            forbidden[strategy] = slices.name_reasons(line["limit"].values)
    slices.expect_any(curves, "; ".join(dict.fromkeys(forbidden.values())))
    title = slices.write_title(cells, shown=("strategy", "pe"))
    known = derived.grid.labels["strategy"]
    # Samples of an epoch are the same in all cells: throughput times time.
    seconds = float(cells["serial_time"].values.flat[0])
    samples = float((lines["value"] * lines["time"]).max())
    serial = {"time": seconds, "throughput": samples / seconds, "efficiency": 1.0}[quantity]
    return ScalingCurves(quantity, title, tuple(curves), known, forbidden, serial)


def _make_curve(line: "xr.Dataset", allowed: NDArray[np.bool_], quantity: Quantity) -> ScalingCurve:
    limit, kept = line["limit"].values, np.flatnonzero(allowed)
    cells = line.isel(pe=kept)
    return ScalingCurve(
        str(line["strategy"].item()),
        cells["pe"].values.astype(float),
        cells["value"].values.astype(float),
        slices.find_beyond(limit[kept]),
        _find_band(cells, quantity) if all(name in line for name in ENDS) else None,
        slices.name_stop(limit, int(kept[-1])),
    )


def _find_band(line: "xr.Dataset", quantity: Quantity) -> Band | None:
    """Compute the ends of the 80 % interval [pe]; None of an efficiency, a ratio of two times."""
    if quantity == "efficiency":
        return None
    early, late = (line[name].values.astype(float) for name in ENDS)
    if quantity == "time":
        return early, late
    # The longest time has the lowest throughput.
    value, time = (line[name].values.astype(float) for name in ("value", "time"))
    return value * time / late, value * time / early


MOST_BANDS = 6  # more bands hide each other


@styled
def draw_scaling(scaling: ScalingCurves) -> Figure:
    """Draw curves, and ideal scaling; the legend has the order of their ends.

    A cross ends a curve that a limit stops; the legend gives the limit below the name.
    """
    # The legend has the order of the curves' right ends, which are beside it.
    curves = sorted(scaling.curves, key=lambda curve: -curve.values[-1])
    note = [f"not drawn: {slices.list_by_cause(scaling.forbidden)}"] if scaling.forbidden else []
    if any(curve.band for curve in curves):
        if len(curves) > MOST_BANDS:
            curves = [replace(curve, band=None) for curve in curves]
            note.append(f"no intervals drawn: more than {MOST_BANDS} curves")
        else:
            note.append("bands: 80 % intervals")
    looks = choose_looks(scaling.known)
    hollow = any(curve.beyond.any() for curve in curves)
    rows = 1 + len(curves) + sum(curve.is_stopped for curve in curves) + 2 * hollow
    counts = np.unique(np.concatenate([curve.pe for curve in curves]))
    label = QUANTITIES[scaling.quantity][1]
    title = f"{label.partition(' [')[0]}: {scaling.title}"
    figure, axes = make_axes(title, "; ".join(note), rows)
    lines = [_draw_curve(axes, curve, looks[curve.strategy]) for curve in curves]
    if np.isfinite(scaling.serial):
        ideal = scaling.serial * counts ** QUANTITIES[scaling.quantity][2]
        lines += axes.plot(counts, ideal, ":", color="grey", zorder=1, label="ideal")
    if hollow:
        lines.append(make_hollow_key(slices.BEYOND_KEY))
    _, low, _, high = axes.dataLim.extents
    if scaling.quantity == "efficiency":
        axes.set_ylim(0, 1.05 * max(1.0, high))
    else:
        scale_amounts(axes, low, high)
    axes.set_ylabel(label)
    scale_counts(axes, counts)
    axes.grid()
    add_legend(figure, lines)
    return figure


def _draw_curve(axes: Axes, curve: ScalingCurve, look: Look) -> Line2D:
    line = draw_curve(axes, look, curve.pe, curve.values, curve.beyond, curve.band)
    line.set_label(look.name)
    if curve.is_stopped:
        end, size = (curve.pe[-1:], curve.values[-1:]), 1.5 * line.get_markersize()
        style: Any = {"markersize": size, "mew": line.get_linewidth()}
        axes.plot(*end, "x", color=mpl.rcParams["text.color"], **style, zorder=4, clip_on=False)
        line.set_label(f"{look.name}\nto {curve.pe[-1]:,.0f}: {curve.cause}")
    return line
