"""The summary that a store keeps, for slices that leave its PE counts whole.

A question then reads a thousandth of the cube's bytes, and answers without JAX and xarray, which
take longer to import. Statistics are looked up by the names beside them: a store may have more of
them than this paradl knows, and in another order.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import zarr
from numpy.typing import NDArray

from grids.reading.errors import InputError, format_text
from kernels.names.statistics import BEST, COUNTS, STATISTICS
from sweep.cells.lines import Lines
from sweep.cube.layout import SUMMARY
from sweep.cube.root import ANEW, name_writer
from sweep.cube.statistics import VERSION, type_statistics
from sweep.cube.store import Cube, get_array
from sweep.cube.variables import Arrays, Positions

Place = tuple[Positions | slice, ...]


def read_lines(
    cube: Cube, coordinates: Arrays, chosen: Mapping[str, Positions | slice]
) -> tuple[Lines, bool]:
    """The lines of a store's summary at these places, and whether each has a statistic.

    coordinates, chosen: along every dimension of the cube, in its order.

    InputError: a summary of another version, or one that lacks a statistic.
    """
    check_statistics(cube)
    others = {dim: values[chosen[dim]] for dim, values in coordinates.items() if dim != "pe"}
    table = _read_table(cube, tuple(chosen.values()))
    lines = Lines(others, join_blocks(type_statistics(table, cube.statistics)))
    return lines, not np.isnan(table).all(axis=0).any()


def check_statistics(cube: Cube) -> None:
    """Refuse a summary of another version, or one that lacks a statistic."""
    check_version(cube.url, cube.group)
    missing = [name for name in STATISTICS if name not in cube.statistics]
    if missing:
        raise InputError(
            f"damaged: its summary has no {missing[0]!r}",
            where=cube.url,
            advice=ANEW,
        )


def check_version(url: str, group: zarr.Group) -> None:
    """Refuse a summary whose statistics may mean something else than this paradl knows."""
    # Stores of 0.2.0's first days state none, and have the statistics of version 1.
    version = get_array(group, SUMMARY).attrs.get("version", 1)
    if version != VERSION:
        raise InputError(
            f"a summary of version {format_text(version)}, and this paradl reads version {VERSION}",
            where=url,
            advice=f"use paradl {name_writer(group)}, or sweep again into another store",
        )


def join_blocks(parts: Arrays) -> Arrays:
    """One summary of lines of PE counts that lie in several blocks, which lead in the arrays."""
    largest, forbidden = parts["largest_pe"], parts["forbidden_by"]
    block = np.arange(len(largest)).reshape(-1, *[1] * (largest.ndim - 1))
    holds = np.where(largest > 0, block, 0).max(axis=0)  # the block of the largest
    # What forbids the next PE count: in that block, or in the first after it where anything is
    # forbidden.
    later = (block >= holds) & (forbidden > 0)
    return {
        **{name: values for names in BEST.values() for name, values in _join_best(parts, names)},
        "largest_pe": largest.max(axis=0),
        "forbidden_by": _pick_block(np.where(later, forbidden, 0), later.argmax(axis=0)),
        **{name: parts[name].sum(axis=0) for name in COUNTS},
    }


def _join_best(parts: Arrays, names: Mapping[str, str]) -> Iterator[tuple[str, NDArray[Any]]]:
    """The statistics of an objective, of the block with the least time."""
    times = parts[names["time"]]
    # inf for NaN: nanargmin refuses a line in which no block has any time.
    least = np.where(np.isnan(times), np.inf, times).argmin(axis=0)
    for field, name in names.items():
        largest = field == "efficient_pe"
        yield name, parts[name].max(axis=0) if largest else _pick_block(parts[name], least)


def _read_table(cube: Cube, place: Place) -> NDArray[np.float64]:
    """The statistics of a part of the cube [statistic, block along the PE counts, others]."""
    pe = cube.plan.dims.index("pe")
    # oindex selects along each axis by itself; plain positions would be paired, as numpy does.
    table = cube.arrays[SUMMARY].oindex[(*place[:pe], slice(None), *place[pe:])]
    return np.moveaxis(np.asarray(table), (pe, pe + 1), (0, 1))


def _pick_block(values: NDArray[Any], block: NDArray[np.intp]) -> NDArray[Any]:
    """Each line's value of one of its blocks."""
    picked: NDArray[Any] = np.take_along_axis(values, block[None], axis=0)[0]
    return picked
