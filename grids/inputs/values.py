"""Parameter values over the cells: swept, fixed, or the default."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from paradl.grids.entries.parameters import DEFAULTS
from paradl.kernels.batches import Scaling
from paradl.kernels.names.arrays import Floats, Integers
from paradl.kernels.options import Options, OracleName


@dataclass(frozen=True)
class Settings:
    """A user's fixed values: SI parameters by name, the oracle, batch scaling, and options.

    draws: number of machine draws, for spreads. slopes: parameters in which elasticities are
    wanted. rows: columns of parameters that change together, by their axis.
    """

    parameters: Mapping[str, float]
    scaling: Scaling = "weak"
    options: Options = field(default_factory=Options)
    oracle: OracleName = "paper"
    draws: int = 0
    slopes: tuple[str, ...] = ()
    rows: Mapping[str, Mapping[str, Floats]] = field(default_factory=dict)


class Values:
    """Look-up of a parameter: an axis of the grid, else a fixed value, else the default."""

    def __init__(self, axes: Mapping[str, Floats], settings: Settings, leading: int) -> None:
        self.leading, self.rank = leading, len(axes) + leading
        self._given = {name: np.asarray(value) for name, value in settings.parameters.items()}
        # An axis overrides fixed values and rows, so a question may vary what they hold.
        shapes = {
            name: [values.size if at == position else 1 for at in range(-leading, len(axes))]
            for position, (name, values) in enumerate(axes.items())
        }
        for dim in settings.rows.keys() & axes.keys():
            numbers = axes[dim].astype(int)
            self._given |= {
                name: column[numbers].reshape(shapes[dim])
                for name, column in settings.rows[dim].items()
            }
        for name, values in axes.items():
            self._given[name] = values.reshape(shapes[name])

    def __contains__(self, name: str) -> bool:
        return name in self._given

    def get(self, name: str, default: float | None = None) -> Floats:
        """Return the values, with all dimensions of cells."""
        # The table's defaults are for parameters that neither system nor strategy sets.
        value = self._given.get(name, DEFAULTS.get(name, default))
        array = np.asarray(value, float)
        return array if array.ndim == self.rank else array.reshape((1,) * self.rank)

    def take(self, names: Iterable[str], shape: tuple[int, ...], cells: Integers) -> "RowValues":
        """Return the given ones of some parameters at flat positions in cells of this shape."""
        given = {name: self._given[name] for name in names if name in self}
        return RowValues(
            {
                name: array.ravel()
                if array.size == 1
                else np.broadcast_to(array, shape).ravel()[cells]
                for name, array in given.items()
            }
        )


class RowValues(Values):
    """Values of rows of parameters that change together: columns by name, [rows] or numbers."""

    def __init__(self, columns: Mapping[str, Any]) -> None:
        self._given = {name: np.asarray(column, float) for name, column in columns.items()}
        self.leading, self.rank = 0, 1


NOTHING = RowValues({})  # no parameter is set
