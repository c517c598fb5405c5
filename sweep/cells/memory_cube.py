"""Compute the cells of a design space in memory, as a labelled Dataset."""

import json
from collections.abc import Mapping
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Unpack

import numpy as np

from paradl.grids.design_space import SpaceValues, make_grid
from paradl.grids.entries.systems import System
from paradl.grids.grid import LABELS, Grid
from paradl.grids.reading.errors import InputError
from paradl.grids.shorthands import Values, Words, expect_words
from paradl.sweep.cells.parts import Part
from paradl.sweep.cube.plan import NOT_SERIAL, SERIAL, plan_cube
from paradl.sweep.cube.variables import (
    VARIABLES,
    Arrays,
    describe_coordinate,
    index_rows,
    list_columns,
    list_coordinates,
)

if TYPE_CHECKING:
    import xarray as xr

# Beyond this, a sweep into a store takes less memory and serves further questions.
MOST_CELLS = 100_000_000


def compute_space(
    model: Values,
    *,
    pe: Values | None = None,
    batch: Values | None = None,
    dataset: Values | None = None,
    system: Values | None = None,
    strategy: Values | None = None,
    parameters: Mapping[str, Values] | None = None,
    settings: Mapping[str, object] | None = None,
    **words: Unpack[Words],
) -> "xr.Dataset":
    """Compute a cube in memory, for a design space too small for a store; all questions accept it.

    Values: one, a list, a generator of a spec, or a text such as `64,128` or `1..1024`. Without a
    strategy all ten are compared; groups, segments and batches that are left out are searched.
    parameters: of the oracle. settings: keys of a spec other than its axes. words: global_batch in
    place of batch, sequence [tokens], tokens in place of a data set, precision of the systems.
    InputError: an unknown name, a bad value, or more than a hundred million cells.

    >>> import paradl
    >>> space = {"dataset": "imagenet-226", "system": "abci", "pe": [1, 8, 64], "batch": 32}
    >>> ds = paradl.compute_space("alexnet", **space)
    >>> print(ds.paradl.speedup.sel(strategy="data").values.round(1).ravel())
    [ 1.   2.3 16.5]
    """
    expect_words(compute_space, words)
    options = SpaceValues(
        model, pe, batch, dataset, system, strategy, parameters or {}, settings or {}, **words
    )
    return compute_cells(make_grid(options))


def compute_cells(grid: Grid) -> "xr.Dataset":
    """Compute the cube of a grid, with the same numbers as a store would hold.

    If there are several systems, coordinates state their precision and software.
    """
    import xarray as xr

    arrays = _compute_arrays(grid)
    coordinates = {
        dim: (dim, values, describe_coordinate(dim, grid))
        for dim, values in list_coordinates(grid).items()
    }
    columns = {
        name: (*column, describe_coordinate(name, grid))
        for name, column in list_columns(grid).items()
    }
    without = tuple(dim for dim in grid.dims if dim not in NOT_SERIAL)
    variables = {
        name: (without if name == SERIAL else grid.dims, values, VARIABLES[name].attributes)
        for name, values in arrays.items()
    }
    # With the spec, questions take the Dataset for a cube, as they do one of a store.
    attributes = {"title": grid.spec.name, "paradl_spec": json.dumps(grid.definition())}
    cells = index_rows(xr.Dataset(variables, coordinates | columns, attributes), grid)
    if len(grid.systems) < 2:
        return cells
    settings = {
        name: [getattr(system, name) for system in grid.systems] for name in System.COMPARED
    }
    return cells.assign_coords({name: ("system", values) for name, values in settings.items()})


def compute_part(grid: Grid) -> Part:
    """Compute the cells of a grid as one part, without xarray, whose import takes 0.4 s."""
    arrays = _compute_arrays(grid)
    # Parts have all dimensions; the time on one PE lacks some.
    absent = tuple(at for at, dim in enumerate(grid.dims) if dim in NOT_SERIAL)
    return Part(list_coordinates(grid), arrays | {SERIAL: np.expand_dims(arrays[SERIAL], absent)})


def _compute_arrays(grid: Grid) -> Arrays:
    """Compute every output for all cells, and the time on one PE. InputError: too many cells."""
    # Late: JAX comes with it, and an answer from a store needs none.
    from paradl.sweep.engine.evaluation import evaluate, time_alone
    from paradl.sweep.engine.resources import keep_programs

    if prod(grid.shape) > MOST_CELLS:
        raise InputError(
            f"{prod(grid.shape):,} cells are too many to hold in memory",
            advice=f"give fewer values, {MOST_CELLS:,} cells at most, or sweep them into a store "
            "with: paradl sweep",
        )
    keep_programs()
    shape, outputs = grid.shape, grid.spec.outputs
    arrays = {
        name: np.full(shape, VARIABLES[name].fill_value, VARIABLES[name].dtype) for name in outputs
    }
    sizes = zip(grid.dims, shape, strict=True)
    serial = np.full([size for dim, size in sizes if dim not in NOT_SERIAL], np.nan, np.float32)
    for model, dataset, system in product(*map(range, shape[: len(LABELS) - 1])):
        if grid.table(model, dataset) is None:
            continue  # the samples do not fit: fill values say so
        serial[model, dataset, system] = time_alone(grid, (model, dataset, system, 0), grid.axes)
    # One block at a time: the kernels answer in double precision, the arrays take half of that.
    plan = plan_cube(grid)
    for region in map(plan.find_region, range(plan.blocks)):
        parts = zip(grid.axes.items(), region[len(LABELS) :], strict=True)
        axes = {name: values[part] for (name, values), part in parts}
        for index in product(*(range(part.start, part.stop) for part in region[: len(LABELS)])):
            answers = evaluate(grid, (index[0], index[1], index[2], index[3]), axes, outputs)
            for name, values in (answers or {}).items():
                place: tuple[int | slice, ...] = (*index, *region[len(LABELS) :])
                arrays[name][place] = values
    return arrays | {SERIAL: serial}
