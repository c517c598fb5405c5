"""Grad: exact derivatives of an epoch's time in continuous parameters, of many cells at once.

Forward mode, through both stages: cells do not depend on each other, so that one number, by which a
parameter is multiplied everywhere, has the derivative of every cell. At a kink (another algorithm,
a message that is just hidden) it is that of the side that was chosen.
"""

from collections.abc import Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from grids.grid import LABELS, Grid, Index
from grids.reading.errors import InputError, shorten, suggest_name
from kernels.arrays import Cells
from kernels.case import Case
from kernels.compiled import compiled, fetch
from kernels.division import Division
from sweep.cube.coordinates import describe_coordinate, list_coordinates
from sweep.engine.compile_cache import keep_programs
from sweep.questions.continuous import SPOTS, evaluate_scaled, read_spot
from sweep.questions.predict_many import make_grid

if TYPE_CHECKING:
    import xarray as xr

TIME = "epoch_time"
DERIVATIVE, ELASTICITY = f"d_{TIME}_d_", f"elasticity_{TIME}_"


def grad(
    model: Any,
    strategy: Any,
    pe: Any,
    batch: Any,
    wrt: str | Sequence[str],
    *,
    system: Any = "abci",
    dataset: Any = None,
    parameters: Mapping[str, object] | None = None,
    settings: Mapping[str, object] | None = None,
) -> "xr.Dataset":
    """Derivatives of the time of an epoch, for every combination of the values.

    Arguments are those of `predict`, one value or several each; wrt: parameters, such as
    "inter_bandwidth" or "peak_flops". Variables over the axes: epoch_time [s], for each parameter
    x `d_epoch_time_d_x` [s per SI unit of x] and `elasticity_epoch_time_x`, d log T / d log x.
    NaN where there is no such configuration. Of a network's levels beyond the node all move
    together, and d_..._d_x counts x at the first of them.

    InputError: an unknown parameter, `group=best` or `segments=best`, which have no derivative.
    """
    import xarray as xr

    names = [wrt] if isinstance(wrt, str) else list(wrt)
    for name in names:
        if name not in SPOTS:
            raise InputError(
                f"no derivative in {shorten(name)}", where="wrt", advice=suggest_name(name, SPOTS)
            )
    axes = {"model": model, "system": system, "strategy": strategy, "pe": pe, "batch": batch}
    if dataset is not None:
        axes["dataset"] = dataset
    grid = make_grid(axes, parameters or {}, settings or {})
    keep_programs()
    arrays = {name: np.full(grid.shape, np.nan) for name in _list_variables(names)}
    for index in product(*(range(len(grid.labels[dim])) for dim in LABELS)):
        if grid.workload(*index[:3]) is not None:
            _fill(arrays, grid, (index[0], index[1], index[2], index[3]), names)
    coordinates = {
        dim: (dim, values, describe_coordinate(dim, grid.spec.scaling))
        for dim, values in list_coordinates(grid).items()
    }
    variables = {
        name: (list(grid.dims), values, {"units": "s" if name == TIME else "1"})
        for name, values in arrays.items()
        if not name.startswith(DERIVATIVE)
    }
    for name in names:
        units = f"s ({describe_coordinate(name, grid.spec.scaling)['units']})-1"
        derivative = DERIVATIVE + name
        variables[derivative] = (list(grid.dims), arrays[derivative], {"units": units})
    return xr.Dataset(variables, coords=coordinates)


def _list_variables(names: Sequence[str]) -> list[str]:
    return [TIME, *(prefix + name for name in names for prefix in (DERIVATIVE, ELASTICITY))]


def _fill(
    arrays: Mapping[str, NDArray[np.float64]], grid: Grid, index: Index, names: Sequence[str]
) -> None:
    """Fill in one model, data set, system and strategy."""
    if grid.strategies[index[3]].choices:
        raise InputError(
            f"{shorten(grid.labels['strategy'][index[3]])} chooses, which has no derivative",
            where="strategy",
            advice="name the group and the segments, as predict tells those that are best",
        )
    # A PE count at a time: its groups are of one size, as evaluating anew wants them.
    for at, pe in enumerate(grid.axes["pe"]):
        axes = {**grid.axes, "pe": np.array([pe])}
        case, groups = grid.case(index, axes), grid.groups(index, axes)
        assert case is not None  # its samples fit
        assert groups is not None
        division = groups.divide(groups.place()[0])
        time, slopes = fetch(_differentiate(case, division, names=tuple(names)))
        place = (*index, slice(at, at + 1))
        arrays[TIME][place] = time
        for name, slope in zip(names, slopes, strict=True):
            arrays[ELASTICITY + name][place] = slope / time
            arrays[DERIVATIVE + name][place] = slope / _read_value(case, grid, name)


def _read_value(case: Case, grid: Grid, name: str) -> Any:
    """A parameter's value at each cell, of several levels at the first."""
    if name not in grid.axes:
        return read_spot(case, name)
    shape = [1] * len(grid.axes)
    shape[list(grid.axes).index(name)] = -1
    return grid.axes[name].reshape(shape)


@compiled("names")
def _differentiate(
    case: Case, division: Division, *, names: tuple[str, ...]
) -> tuple[Array, Array]:
    """The time of an epoch [cells], and its derivatives in logarithms [parameter, cells]."""

    def find_time(factors: Cells) -> Array:
        scaled = {name: jnp.asarray(factors)[n] for n, name in enumerate(names)}
        return jnp.asarray(evaluate_scaled(case, division, scaled).epoch_time)

    ones = jnp.ones(len(names))
    # All directions in one program: one for each took as often as long to compile.
    slopes = jax.vmap(lambda along: jax.jvp(find_time, (ones,), (along,))[1])(jnp.eye(len(names)))
    return find_time(ones), slopes
