"""The cells of a cube, part after part, for questions that no summary answers.

A part is the share of a slice in one block, so that memory does not grow with the cube. Unfinished
blocks are passed over, and so are those of samples that do not fit their model, unless asked for.
"""

import json
import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from grids.reading.errors import InputError
from kernels.names.flags import FORBIDS
from sweep.cells.files import check_files, list_finished
from sweep.cells.selection import Positions, Selection, locate_values, read_columns
from sweep.cube.coordinates import Columns, list_columns, list_coordinates
from sweep.cube.dimensions import list_dims, restore_axes
from sweep.cube.layout import NOT_SERIAL, SERIAL, find_part
from sweep.cube.plan import make_plan
from sweep.cube.store import Cube
from sweep.cube.variables import VARIABLES, Arrays

if TYPE_CHECKING:
    import xarray as xr

# Times and bytes: NaN in all of them marks a cell that cannot exist.
MEASURED = frozenset(
    name for name, variable in VARIABLES.items() if variable.units in ("s", "byte")
)


@dataclass(frozen=True, eq=False)
class Part:
    """Cells that lie together.

    coordinates: the values along each dimension, in the cube's order. arrays: variables over all
    dimensions, of size 1 along those that they do not vary along.
    """

    coordinates: Arrays
    arrays: Arrays

    @property
    def shape(self) -> tuple[int, ...]:
        """Cells along each dimension."""
        return tuple(map(len, self.coordinates.values()))

    @property
    def size(self) -> int:
        """Cells in all."""
        return math.prod(self.shape)

    @cached_property
    def epoch_time(self) -> NDArray[np.float32]:
        """[s] an epoch, NaN where there is no such configuration."""
        total: NDArray[np.float32] = self.arrays["comp_time"] + self.arrays["comm_time"]
        return total

    @cached_property
    def feasible(self) -> NDArray[np.bool_]:
        """Whether a cell is feasible."""
        return np.asarray((self.arrays["limit"] & np.uint16(FORBIDS)) == 0)

    @cached_property
    def defined(self) -> NDArray[np.bool_]:
        """Whether a cell can exist: any time or memory is a number."""
        numbers = [array for name, array in self.arrays.items() if name in MEASURED - {SERIAL}]
        if not numbers:
            return np.ones(self.shape, bool)
        known = np.zeros(self.shape, bool)
        for array in numbers:
            known |= ~np.isnan(array)
        return known

    def along(self, dim: str) -> NDArray[Any]:
        """The values of a dimension, shaped to meet the arrays."""
        shape = [1] * len(self.coordinates)
        shape[list(self.coordinates).index(dim)] = -1
        return self.coordinates[dim].reshape(shape)

    def pick(self, values: Mapping[str, NDArray[Any]]) -> "Part":
        """The cells with these values along its dimensions, all of which it has."""
        at = [
            find_positions(known, values[dim]) if dim in values else np.arange(len(known))
            for dim, known in self.coordinates.items()
        ]
        # A whole part is not picked from, which would copy it.
        if all(np.array_equal(i, np.arange(n)) for i, n in zip(at, self.shape, strict=True)):
            return self
        named = zip(self.coordinates.items(), at, strict=True)
        chosen = {dim: known[i] for (dim, known), i in named}
        return Part(chosen, {name: _pick(array, at) for name, array in self.arrays.items()})

    def arrange(self, coordinates: Arrays) -> "Part":
        """The same cells over other dimensions; one that only either has is of size 1."""
        gone = tuple(at for at, dim in enumerate(self.coordinates) if dim not in coordinates)
        new = tuple(at for at, dim in enumerate(coordinates) if dim not in self.coordinates)
        arrays = {
            name: np.expand_dims(np.squeeze(array, gone), new)
            for name, array in self.arrays.items()
        }
        arranged = {dim: self.coordinates.get(dim, values) for dim, values in coordinates.items()}
        return Part(arranged, arrays)


def _pick(array: NDArray[Any], at: list[Positions]) -> NDArray[Any]:
    """The values at positions along each dimension, 0 along those of size 1."""
    sizes = zip(at, array.shape, strict=True)
    picked: NDArray[Any] = array[np.ix_(*(i if size > 1 else [0] for i, size in sizes))]
    return picked


def read_parts(
    source: "Cube | xr.Dataset",
    names: Collection[str],
    selection: Selection | None = None,
    *,
    misfits: bool = False,
) -> Iterator[Part]:
    """The parts of a slice, in the cube's order, each with the variables `names`.

    misfits: with the parts of samples that do not fit their model.

    InputError: an unknown axis or value, a variable that the cube does not hold. RunError: a file
    of a finished block is gone.
    """
    return read_places(source, names, locate_places(source, selection or {}), misfits=misfits)


def read_places(
    source: "Cube | xr.Dataset",
    names: Collection[str],
    places: Mapping[str, Positions],
    *,
    misfits: bool = False,
) -> Iterator[Part]:
    """The parts of a slice as `read_parts` has them; places: ascending, along each dimension."""
    expect_variables(source, names)
    if isinstance(source, Cube):
        return _read_blocks(source, names, places, misfits)
    return _read_slices(source, names, places)


def locate_places(source: "Cube | xr.Dataset", selection: Selection) -> dict[str, Positions]:
    """The positions of a slice along each dimension; InputError as of `locate_values`."""
    every = list_axes(source)
    chosen = locate_values(every, selection, list_parameters(source))
    return {dim: chosen.get(dim, np.arange(len(values))) for dim, values in every.items()}


def find_positions(known: NDArray[Any], values: NDArray[Any]) -> Positions:
    """The position of each value among those that are known, -1 where it is not."""
    places = {value: at for at, value in enumerate(known.tolist())}
    return np.array([places.get(value, -1) for value in values.tolist()], np.int64)


def list_variables(source: "Cube | xr.Dataset") -> list[str]:
    """The variables that a cube holds for its cells, with the time on one PE."""
    held = (*source.grid.spec.outputs, SERIAL) if isinstance(source, Cube) else source
    return [name for name in VARIABLES if name in held]


def expect_variables(source: "Cube | xr.Dataset", names: Collection[str]) -> None:
    """InputError: a variable that the cube does not hold."""
    held = list_variables(source)
    missing = [name for name in names if name not in held]
    if missing:
        raise InputError(
            f"the cube has no variable {missing[0]!r}, and this question needs its cells",
            advice=f"sweep with outputs: [{', '.join(name for name in names if name != SERIAL)}]",
        )


def locate_slice(source: "Cube | xr.Dataset", selection: Selection) -> Arrays:
    """The values along each dimension of a slice; InputError as of `locate_values`."""
    places, every = locate_places(source, selection), list_axes(source)
    return {dim: values[places[dim]] for dim, values in every.items()}


def list_axes(source: "Cube | xr.Dataset") -> Arrays:
    """The values along each dimension of a cube, in its order."""
    if isinstance(source, Cube):
        return list_coordinates(source.grid)
    restored = restore_axes(source)
    return {dim: restored[dim].values for dim in list_dims(restored)}


def list_parameters(source: "Cube | xr.Dataset") -> Columns:
    """The parameters of a cube that change together, with the dimension of each."""
    is_cube = isinstance(source, Cube)
    return list_columns(source.grid) if is_cube else read_columns(restore_axes(source))


def read_versions(source: "Cube | xr.Dataset") -> dict[str, str]:
    """The versions that a cube was made with."""
    if isinstance(source, Cube):
        return dict(source.versions)
    versions: dict[str, str] = json.loads(source.attrs.get("paradl_versions", "{}"))
    return versions


def _read_blocks(
    cube: Cube, names: Collection[str], places: Mapping[str, Positions], misfits: bool
) -> Iterator[Part]:
    """The parts of a store, one for each block."""
    every = list_coordinates(cube.grid)
    check_files(cube, names, places)
    for block in list_finished(cube, places):
        if not (misfits or cube.fits(block)):
            continue
        region = dict(zip(cube.plan.dims, cube.plan.find_region(block), strict=True))
        inside = {
            dim: at[(at >= region[dim].start) & (at < region[dim].stop)]
            for dim, at in places.items()
        }
        yield Part(
            {dim: every[dim][at] for dim, at in inside.items()},
            {name: _read_array(cube, name, block, region, inside) for name in names},
        )


def _read_array(
    cube: Cube,
    name: str,
    block: int,
    region: Mapping[str, slice],
    inside: Mapping[str, Positions],
) -> NDArray[np.generic]:
    """A block's part of a variable over all dimensions."""
    place = find_part(name, cube.plan, tuple(region.values()))
    dims = [dim for dim in region if name != SERIAL or dim not in NOT_SERIAL]
    values = np.asarray(cube.arrays[name][place])
    # A whole block is not picked from, which would copy it.
    picked = [inside[dim] - region[dim].start for dim in dims]
    if tuple(map(len, picked)) != values.shape:
        values = values[np.ix_(*picked)]
    absent = tuple(at for at, dim in enumerate(region) if dim not in dims)
    return np.expand_dims(values, absent)


def _read_slices(
    cube: "xr.Dataset", names: Collection[str], places: Mapping[str, Positions]
) -> Iterator[Part]:
    """The parts of a Dataset, cut as a store of its shape would be."""
    restored = restore_axes(cube, names).isel(places)
    dims = list_dims(restored)
    shape = tuple(restored.sizes[dim] for dim in dims)
    plan = make_plan(tuple(dims), shape, 0, 2)
    for block in range(plan.blocks):
        region = dict(zip(dims, plan.find_region(block), strict=True))
        piece = restored.isel(region).load()
        yield Part(
            {dim: piece[dim].values for dim in dims},
            {name: _spread(piece[name], dims) for name in names},
        )


def _spread(array: "xr.DataArray", dims: list[str]) -> NDArray[np.generic]:
    """The values over all dimensions, of size 1 along those that the array lacks."""
    absent = tuple(at for at, dim in enumerate(dims) if dim not in array.dims)
    return np.expand_dims(array.values, absent)
