"""`ds.paradl`: quantities derived from a cube's variables, and every question about it.

A question takes the arguments of its function after the cube, and answers the same.
"""

from collections.abc import Mapping
from html import escape
from types import MethodType
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

import paradl
from paradl.grids.reading.errors import find_meant
from paradl.sweep.answers.objectives import check_price, look_up_prices
from paradl.sweep.cube.derived_quantities import Paradl, name_array
from paradl.sweep.cube.dimensions import AXES
from paradl.sweep.cube.variables import DERIVED
from paradl.sweep.text.tables import shorten_label

if TYPE_CHECKING:
    from paradl.sweep.plots.plots import Plots

# Functions of `paradl` that take a cube, except `bottleneck`, which is a derived quantity, too.
QUESTIONS = (
    *("best", "crossovers", "diff", "export", "limits", "needs"),
    *("pareto", "provision", "regret", "sensitivity", "write_report"),
)
# Derived properties that the repr lists.
SHOWN = [name for name in DERIVED if name not in ("cost", "epochs_alone")]


class Accessor(Paradl):
    """Derived quantities of a cube or a slice, and the questions about it.

    >>> ds.paradl.best()  # doctest: +SKIP
    >>> ds.sel(model="vgg16").paradl.pe_hours  # doctest: +SKIP
    """

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the text alone."""
        return f"<pre>{escape(repr(self))}</pre>"

    @property
    def pe_hours(self) -> xr.DataArray:
        """PE-hours per epoch."""
        hours = self.epoch_time * self._get("pe") / 3600
        return name_array(self._restore_order(hours), "pe_hours")

    def cost(self, price: float | Mapping[str, float]) -> xr.DataArray:
        """Cost per epoch; price: of a PE-hour, for all systems or by name."""
        check_price(price)
        systems = self._get("system")
        prices = systems.copy(data=look_up_prices(np.asarray(systems.values), price)).drop_attrs()
        money = self._restore_order(self.pe_hours * prices)
        return name_array(money, "cost")

    @property
    def memory_share(self) -> xr.DataArray:
        """Memory of the fullest PE as a fraction of the memory of a PE."""
        share = self._restore_order(self._get("memory") / self._look_up_capacity())
        return name_array(share, "memory_share")

    def _look_up_capacity(self) -> xr.DataArray | float:
        """Memory of a PE [B], from an axis, the spec or each system."""
        if "memory_capacity" in self._ds.coords:
            return self._ds["memory_capacity"]
        fixed = self.grid.spec.parameters.get("memory_capacity")
        if fixed is not None:
            return fixed
        machines = {system.name: system.pe.memory_capacity for system in self.grid.systems}
        return self._map_labels("system", machines)

    @property
    def plot(self) -> "Plots":
        """Pictures of the cube. RunError: matplotlib is not installed."""
        from paradl.sweep.plots.plots import Plots  # late: matplotlib is optional

        return Plots(self._ds)

    def __getattr__(self, name: str) -> Any:
        """A question about this Dataset."""
        if name not in QUESTIONS:
            meant = find_meant(name, dir(self))
            advice = f"; did you mean {meant!r}?" if meant else ""
            raise AttributeError(f"ds.paradl has no {name!r}{advice}")
        return MethodType(getattr(paradl, name), self._ds)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *QUESTIONS})

    def __repr__(self) -> str:
        """Summary of the cube in a few lines, without computing anything."""
        sizes = self._ds.sizes
        axes = [
            f"  {dim:<16}{_describe_values(self._ds[dim].values)}"
            for dim in dict.fromkeys([*AXES, *self.grid.dims])
            if dim in self._ds.coords
        ]
        shape = " x ".join(f"{size} {dim}" for dim, size in sizes.items()) or "one cell"
        return "\n".join(
            [
                f"<paradl: {shape}, oracle: {self.grid.spec.oracle}>",
                *axes,
                f"  derived         {', '.join(SHOWN)}, cost(price)",
                f"  questions       {', '.join(f'{name}()' for name in QUESTIONS)}",
            ]
        )


def _describe_values(values: np.ndarray[Any, Any]) -> str:
    """Values along an axis in one line: all of a few, else both ends and their number."""
    listed = np.atleast_1d(values).tolist()
    texts = [
        shorten_label(value) if isinstance(value, str) else f"{value:,.6g}" for value in listed
    ]
    return ", ".join(texts) if len(texts) <= 4 else f"{texts[0]} ... {texts[-1]} ({len(texts):,})"
