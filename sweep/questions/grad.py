"""Grad: exact derivatives of the epoch time in continuous parameters, for many cells at once.

They are those of a sweep's elasticities, in double precision (`kernels.derivatives`). At a kink,
where another algorithm becomes faster or a message is just hidden, the side taken counts.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain, product
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from paradl.grids.design_space import make_product
from paradl.grids.entries.parameters import CONTINUOUS
from paradl.grids.grid import LABELS, Grid, Index
from paradl.grids.reading.errors import InputError, shorten, suggest_name
from paradl.grids.shorthands import expect_system
from paradl.kernels.blocks.outputs import differentiate_epoch
from paradl.kernels.compiled import fetch
from paradl.kernels.configuration.case import Case
from paradl.kernels.configuration.places import read_parameter
from paradl.kernels.names.stored import name_elasticity
from paradl.sweep.cube.variables import describe_coordinate, list_coordinates
from paradl.sweep.engine.resources import keep_programs

if TYPE_CHECKING:
    import xarray as xr

TIME = "epoch_time"
DERIVATIVE = f"d_{TIME}_d_"
# In place of 0: added to any other number it is lost, but slopes keep all their digits.
TINY = 1e-60


def grad(
    model: Any,
    strategy: Any,
    pe: Any,
    batch: Any,
    wrt: str | Sequence[str],
    *,
    system: Any = None,
    dataset: Any = None,
    parameters: Mapping[str, object] | None = None,
    settings: Mapping[str, object] | None = None,
) -> "xr.Dataset":
    """Derivatives of the epoch time for every combination of the values, as a Dataset.

    Arguments are those of `predict`, with one or several values each. wrt: parameters, such as
    "inter_bandwidth" or "peak_flops". Variables over the axes: epoch_time [s], and for each
    parameter x `d_epoch_time_d_x` [s per SI unit of x] and `elasticity_epoch_time_x`, d log T / d
    log x; NaN where the configuration cannot exist. All network levels beyond the node vary
    together; d_..._d_x is with respect to x at the first of them. Where x is 0, the elasticity is 0
    and d_..._d_x is towards more of x; NaN of layouts of transformers, whose slopes are differences
    with nine digits.

    InputError: an unknown parameter, or one that layouts do not have; `group=best` or
    `segments=best`, which have no derivative.

    >>> import paradl
    >>> space = {"dataset": "imagenet-226", "system": "abci", "settings": {"oracle": "paper"}}
    >>> slopes = paradl.grad("alexnet", "data", [8, 64], 32, "inter_bandwidth", **space)
    >>> print(slopes["elasticity_epoch_time_inter_bandwidth"].values.round(3).ravel())
    [-0.614 -0.597]
    """
    import xarray as xr

    names = [wrt] if isinstance(wrt, str) else list(wrt)
    for name in names:
        if name not in CONTINUOUS:
            advice = suggest_name(name, CONTINUOUS)
            raise InputError(f"no derivative in {shorten(name)}", where="wrt", advice=advice)
    axes = {"model": model, "system": expect_system(system)}
    axes |= {"strategy": strategy, "pe": pe, "batch": batch}
    if dataset is not None:
        axes["dataset"] = dataset
    outputs = [name_elasticity(TIME, name) for name in names]
    grid = make_product(axes, parameters or {}, {**(settings or {}), "outputs": outputs})
    keep_programs()
    # Filled with NaN, which stays where samples do not fit their model.
    pairs = ((DERIVATIVE + name, name_elasticity(TIME, name)) for name in names)
    arrays = {name: np.full(grid.shape, np.nan) for name in (TIME, *chain(*pairs))}
    for index in product(*(range(len(grid.labels[dim])) for dim in LABELS)):
        if grid.workload(*index[:3]) is not None:
            place: Index = (index[0], index[1], index[2], index[3])
            _fill(arrays, grid, place, names)
    coordinates = {
        dim: (dim, values, describe_coordinate(dim, grid))
        for dim, values in list_coordinates(grid).items()
    }
    variables = {
        name: (list(grid.dims), values, {"units": "s" if name == TIME else "1"})
        for name, values in arrays.items()
        if not name.startswith(DERIVATIVE)
    }
    for name in names:
        units = f"s ({describe_coordinate(name, grid)['units']})-1"
        derivative = DERIVATIVE + name
        variables[derivative] = (list(grid.dims), arrays[derivative], {"units": units})
    return xr.Dataset(variables, coords=coordinates)


def _fill(
    arrays: Mapping[str, NDArray[np.float64]], grid: Grid, index: Index, names: Sequence[str]
) -> None:
    """Fill in one model, data set, system and strategy."""
    if grid.strategy(index).choices:
        raise InputError(
            f"{shorten(grid.labels['strategy'][index[3]])} has no derivative: it makes a choice",
            where="strategy",
            advice="state the group and the segments, such as the best ones that predict prints",
        )
    case = grid.case(index)
    assert case is not None  # its samples fit
    is_zero = {name: read_parameter(case, name) == 0 for name in names}
    if not case.in_numpy:  # where slopes are differences
        case = _leave_zero(grid, index, case, [name for name in names if is_zero[name].any()])
    # Slopes are d time / d log x, from which both variables follow.
    time, slopes = fetch(differentiate_epoch(case, parameters=tuple(names)))
    arrays[TIME][index] = time
    for name, slope in zip(names, slopes, strict=True):
        arrays[name_elasticity(TIME, name)][index] = np.where(is_zero[name], 0.0, slope) / time
        value = read_parameter(case, name)  # differences say nothing of a slope at 0
        arrays[DERIVATIVE + name][index] = slope / np.where(value == 0, np.nan, value)


def _leave_zero(grid: Grid, index: Index, case: Case, names: Sequence[str]) -> Case:
    """Return the case with TINY in place of 0 of these parameters, whose logarithm has no slope."""
    if not names:
        return case
    axes = {
        dim: np.where(values == 0, TINY, values) if dim in names else values
        for dim, values in grid.axes.items()
    }
    given = {**grid.spec.parameters, **{name: TINY for name in names if name not in axes}}
    spec = grid.spec.model_copy(update={"parameters": given})
    near = replace(grid, spec=spec).case(index, axes)
    assert near is not None
    return near
