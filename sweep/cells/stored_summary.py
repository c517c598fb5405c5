"""Read the summary that a store keeps, for slices with all of its PE counts.

A summary has about a thousandth of the cube's bytes, and reading it needs neither JAX nor xarray,
which take longer to import. Statistics are looked up by their stored names, since a store may have
more statistics than this version knows, in another order.
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
    """Lines of a store's summary at the chosen positions, and whether every line has a statistic.

    coordinates, chosen: values and positions along all dimensions of the cube, in its order.
    InputError: a summary of another version, or one that lacks a statistic.
    """
    check_version(cube.url, cube.group)
    # Counts may be missing: stores do not know flags that are newer.
    known = (*cube.statistics, *COUNTS)
    missing = [name for name in STATISTICS if name not in known]
    if missing:
        raise InputError(f"damaged: its summary has no {missing[0]!r}", where=cube.url, advice=ANEW)
    others = {dim: values[chosen[dim]] for dim, values in coordinates.items() if dim != "pe"}
    table = _read_table(cube, tuple(chosen.values()))
    lines = Lines(others, join_blocks(type_statistics(table, cube.statistics)))
    return lines, not np.isnan(table).all(axis=0).any()


def check_version(url: str, group: zarr.Group) -> None:
    """Raise InputError for a summary of another version, whose statistics may differ in meaning."""
    # The first stores of 0.2.0 state no version; theirs is 1.
    version = get_array(group, SUMMARY).attrs.get("version", 1)
    if version != VERSION:
        raise InputError(
            f"a summary of version {format_text(version)}; this paradl reads version {VERSION}",
            where=url,
            advice=f"use paradl {name_writer(group)}, or sweep again into another store",
        )


def join_blocks(parts: Arrays) -> Arrays:
    """Join the statistics [block, ...] of lines of PE counts that several blocks share."""
    largest, forbidden = parts["largest_pe"], parts["forbidden_by"]
    block = np.arange(len(largest)).reshape(-1, *[1] * (largest.ndim - 1))
    holds = np.where(largest > 0, block, 0).max(axis=0)  # the block of the largest PE count
    # The next PE count is forbidden in that block, or in the first later one that forbids anything.
    later = (block >= holds) & (forbidden > 0)
    return {
        **{name: values for names in BEST.values() for name, values in _join_best(parts, names)},
        "largest_pe": largest.max(axis=0),
        "forbidden_by": _pick_block(np.where(later, forbidden, 0), later.argmax(axis=0)),
        **{name: parts[name].sum(axis=0) for name in COUNTS if name in parts},
    }


def _join_best(parts: Arrays, names: Mapping[str, str]) -> Iterator[tuple[str, NDArray[Any]]]:
    """Yield each statistic of an objective from the block with the least time."""
    times = parts[names["time"]]
    # Not nanargmin: it raises for a line without any time.
    least = np.where(np.isnan(times), np.inf, times).argmin(axis=0)
    for field, name in names.items():
        largest = field == "efficient_pe"
        yield name, parts[name].max(axis=0) if largest else _pick_block(parts[name], least)


def _read_table(cube: Cube, place: Place) -> NDArray[np.float64]:
    """Statistics of a part of the cube [statistic, block along pe, others]."""
    pe = cube.plan.dims.index("pe")
    # oindex takes the outer product of positions; plain indexing would pair them, as numpy does.
    table = cube.arrays[SUMMARY].oindex[(*place[:pe], slice(None), *place[pe:])]
    return np.moveaxis(np.asarray(table), (pe, pe + 1), (0, 1))


def _pick_block(values: NDArray[Any], block: NDArray[np.intp]) -> NDArray[Any]:
    """Value of each line from one of its blocks."""
    picked: NDArray[Any] = np.take_along_axis(values, block[None], axis=0)[0]
    return picked
