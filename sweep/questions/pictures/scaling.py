"""Scaling: a time, a throughput or an efficiency over p, a curve for each strategy."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from grids.entries.strategies import Strategy
from grids.models.layers import Floats
from sweep.cells.selection import Selection
from sweep.cells.source import Source
from sweep.cube.derived import Paradl
from sweep.questions.pictures.cases import build_case, narrow_grid
from sweep.questions.pictures.cells import (
    describe_place,
    expect_any,
    expect_choice,
    find_allowed,
    find_beyond,
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
    expect_choice(quantity, get_args(Quantity), "quantity")
    cells = read_slice(open_slice(source, selection, ENDS), ("strategy", "pe"))
    derived = Paradl(cells)
    lines = cells.assign(
        time=derived.epoch_time,
        value=getattr(derived, {"time": "epoch_time"}.get(quantity, quantity)),
    )
    labels = [str(each) for each in cells["strategy"].values]
    drawn = {label: _make_curve(lines.sel(strategy=label), quantity) for label in labels}
    forbidden = {name: reason for name, reason in drawn.items() if isinstance(reason, str)}
    curves = tuple(curve for curve in drawn.values() if isinstance(curve, Curve))
    expect_any(curves, "; ".join(dict.fromkeys(forbidden.values())))
    place = describe_place(cells, told=("strategy", "pe"))
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
    # late: JAX comes with it
    from kernels.oracle import settle_choices
    from sweep.answers.draws import draw_times
    from sweep.answers.numbers import SHARES

    grid = narrow_grid(Paradl(line).grid, line).ask_intervals()
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
        value * np.exp(np.interp(np.log(pe), np.log(pe[kept]), np.log(each))) for each in ends
    )
    return {"low": low, "high": high}
