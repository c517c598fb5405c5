"""Cubes in memory: the cells of a design space without a store, as a labelled Dataset."""

import json
from collections.abc import Mapping
from itertools import product
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from grids.entries.strategies import Strategy
from grids.entries.systems import System
from grids.grid import LABELS, Grid
from grids.reading.errors import InputError
from sweep.cells.design_space import SpaceValues, Values, make_grid
from sweep.cells.parts import Part
from sweep.cube.coordinates import (
    describe_coordinate,
    index_rows,
    list_columns,
    list_coordinates,
)
from sweep.cube.layout import NOT_SERIAL, SERIAL
from sweep.cube.plan import plan_cube
from sweep.cube.variables import VARIABLES, Arrays

if TYPE_CHECKING:
    import xarray as xr

# Beyond that, a sweep into a store takes less memory, and serves the next question.
MOST_CELLS = 100_000_000
# Settings of a system that make its times unlike those of another.
SYSTEM_SETTINGS = System.SETTINGS


def compute_space(
    model: Values,
    *,
    pe: Values | None = None,
    batch: Values | None = None,
    dataset: Values | None = None,
    system: Values = "abci",
    strategy: Values | None = None,
    parameters: Mapping[str, Values] | None = None,
    settings: Mapping[str, object] | None = None,
) -> "xr.Dataset":
    """A cube in memory, for a design space that is not worth a store; every question takes it.

    Values are one, a list, a spec's generator, or a text such as `64,128` or `1..1024`. Without a
    strategy all ten; groups, segments and batches that are left out are searched. parameters:
    the oracle's; settings: the spec's keys beside its axes. InputError: an unknown name, a bad
    value, more than a hundred million cells.
    """
    options = SpaceValues(
        model, pe, batch, dataset, system, strategy, parameters or {}, settings or {}
    )
    return compute_cells(make_grid(options))


def compute_cells(grid: Grid) -> "xr.Dataset":
    """The cube of a grid in memory, numbers as a store would hold them.

    Several systems have coordinates of their precision and software.
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
    attributes = {"title": grid.spec.name, "paradl_spec": json.dumps(grid.definition())}
    cells = index_rows(xr.Dataset(variables, coordinates | columns, attributes), grid)
    if len(grid.systems) < 2:
        return cells
    settings = {name: [getattr(each, name) for each in grid.systems] for name in SYSTEM_SETTINGS}
    return cells.assign_coords({name: ("system", values) for name, values in settings.items()})


def compute_part(grid: Grid) -> Part:
    """The cells of a grid as one part, for what needs no Dataset: xarray takes 0.4 s to import."""
    arrays = _compute_arrays(grid)
    absent = tuple(at for at, dim in enumerate(grid.dims) if dim in NOT_SERIAL)
    return Part(list_coordinates(grid), arrays | {SERIAL: np.expand_dims(arrays[SERIAL], absent)})


def _compute_arrays(grid: Grid) -> Arrays:
    """Every output over all cells, and the time on one PE. InputError: more than can be held."""
    from sweep.engine.compile_cache import keep_programs
    from sweep.engine.evaluation import evaluate

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
    one = grid.axes | {"pe": np.ones(1)}
    for model, dataset, system in product(*map(range, shape[: len(LABELS) - 1])):
        if grid.table(model, dataset) is None:
            continue
        # The index' strategy is replaced by the serial one.
        alone = evaluate(grid, (model, dataset, system, 0), one, ("comp_time",), Strategy("serial"))
        assert alone is not None  # the samples fit
        serial[model, dataset, system] = alone["comp_time"][0]
    # A large space is computed a block at a time: each is answered in double precision.
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
