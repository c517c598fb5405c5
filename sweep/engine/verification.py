"""Verify: read every chunk that must be there, and name those that are not what was written.

Blocks are read one at a time, so that memory does not grow with the cube. A damaged block loses its
done-mark, so that the next sweep computes it anew, and so do all blocks of marks that are damaged.
Coordinates follow from the root's metadata: they are written anew at once.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from zarr.core.buffer import default_buffer_prototype
from zarr.core.sync import sync

from paradl.grids.reading.errors import InputError, format_count
from paradl.sweep.cube.checked_store import MISSING, read_chunk
from paradl.sweep.cube.lock import hold_store
from paradl.sweep.cube.object_store import translate_failures
from paradl.sweep.cube.plan import DONE, NOT_SERIAL, SERIAL, Region
from paradl.sweep.cube.root import UNREADABLE
from paradl.sweep.cube.store import Array, Cube, get_array, list_labels, name_file, open_cube
from paradl.sweep.cube.variables import list_coordinates
from paradl.sweep.engine.progress import Advance, Progress, silent
from paradl.sweep.errors import explain_failure


@dataclass(frozen=True)
class Span:
    """Values along a dimension, by their ends."""

    first: str | float
    last: str | float
    count: int


@dataclass(frozen=True)
class Damage:
    """A file that is not what was written, its cells by dimension, and its block, if any."""

    variable: str
    file: str
    what: str
    cells: dict[str, Span]
    block: int | None = None


@dataclass(frozen=True)
class Verdict:
    """The damage of a store, its blocks that are whole, and why damage was left, if it was."""

    damaged: tuple[Damage, ...]
    whole: int
    left: str = ""


def verify(url: str, progress: Progress = silent) -> Verdict:
    """Read all that is done of the cube at `url`, and see that what is damaged is made anew.

    A store that a run is at work on, or that may not be written, is left as it is.
    """
    open_cube(url)  # says what stands there instead, before it is locked
    with ExitStack() as stack:
        refused = ""
        try:
            stack.enter_context(hold_store(url))
        except InputError as error:
            refused = str(error)
        # Opened again under the lock: a run may have extended it meanwhile.
        cube = open_cube(url)
        with progress(cube.plan, np.arange(0)) as advance:
            damaged = tuple(find_damages(cube, advance))
        done, _ = _read_marks(cube)
        done[[damage.block for damage in damaged if damage.block is not None]] = False
        whole = int(done.sum())
        left = (refused or _mend(url, damaged)) if damaged else ""
    return Verdict(damaged, whole, left)


def find_damages(cube: Cube, advance: Advance) -> Iterator[Damage]:
    """All damage, one after the other; `advance` is told of each block."""
    for dim, values in list_labels(cube).items():
        yield from _check_coordinate(cube, get_array(cube.group, dim), dim, values)
    done, unread = _read_marks(cube)
    yield from unread
    for block in range(cube.plan.blocks):
        if done[block]:
            yield from _check_block(cube, block)
        advance(block)


def _check_coordinate(
    cube: Cube, stored: Array, dim: str, values: NDArray[Any]
) -> Iterator[Damage]:
    """Chunks that do not hold the spec's values."""
    for place in _list_chunks(stored):
        found, what = _read_part(cube, stored, place)
        if found is not None and not np.array_equal(found, values[place]):
            what = "its values differ from the spec"
        if what:
            yield Damage(dim, name_file(stored, place), what, {dim: _describe_span(values[place])})


def _read_marks(cube: Cube) -> tuple[NDArray[np.bool_], list[Damage]]:
    """Which blocks are marked done [blocks], and the files of marks that cannot be read."""
    marks, unread = cube.arrays[DONE], list[Damage]()
    done = np.zeros(marks.shape, bool)
    for place in _list_chunks(marks):
        found, what = _read_part(cube, marks, place)
        if found is not None:
            done[place] = found.astype(bool)
        elif what != MISSING:  # of blocks that are not done
            what += f"; unknown whether done: {format_count(done[place].size, 'block')}"
            unread.append(Damage(DONE, name_file(marks, place), what, {}))
    return done.reshape(-1), unread


def _list_chunks(stored: Array) -> Iterator[Region]:
    """The parts of an array that lie in a file each."""
    sizes = list(zip(stored.shape, stored.chunks, strict=True))
    for starts in product(*(range(0, size, chunk) for size, chunk in sizes)):
        yield tuple(slice(at, at + chunk) for at, (_, chunk) in zip(starts, sizes, strict=True))


def _check_block(cube: Cube, block: int) -> Iterator[Damage]:
    """Files of a block that is marked done."""
    for name in cube.list_arrays(block):
        what = _find_fault(cube, cube.arrays[name], cube.find_place(name, block))
        if what:
            yield _describe_damage(cube, name, block, what)


def _describe_damage(cube: Cube, name: str, block: int, what: str) -> Damage:
    parts = zip(list_coordinates(cube.grid).items(), cube.plan.find_region(block), strict=True)
    hidden = NOT_SERIAL if name == SERIAL else ()
    cells = {
        dim: _describe_span(values[part]) for (dim, values), part in parts if dim not in hidden
    }
    return Damage(name, cube.name_file(name, block), what, cells, block)


def _describe_span(values: NDArray[Any]) -> Span:
    first, last = values[[0, -1]].tolist()
    return Span(first, last, values.size)


def _find_fault(cube: Cube, stored: Array, place: Region) -> str:
    """The fault of the file of a part of an array; empty where it is whole."""
    store, file = stored.store_path.store, name_file(stored, place)
    return sync(read_chunk(cube.url, store, file, default_buffer_prototype()))[1]


def _read_part(cube: Cube, stored: Array, place: Region) -> tuple[NDArray[Any] | None, str]:
    """A part of an array, or the fault of its file."""
    what = _find_fault(cube, stored, place)
    try:
        return None if what else np.asarray(stored[place]), what
    except UNREADABLE as error:  # a forged file may have the right checksum
        return None, f"unreadable ({error})"


def _mend(url: str, damaged: Sequence[Damage]) -> str:
    """Clear the marks of blocks, write the rest anew; returns why it could not."""
    cube = open_cube(url, "r+")
    try:
        with translate_failures(url):
            # Marks first: a kill after this leaves no block that is damaged and done.
            blocks = {damage.block for damage in damaged if damage.block is not None}
            cube.mark(sorted(blocks), False)
            _restore(cube, [damage for damage in damaged if damage.block is None])
    except OSError as error:
        return f"{url}: {explain_failure(error)}"
    return ""


def _restore(cube: Cube, damaged: Sequence[Damage]) -> None:
    """Write coordinates anew; marks that cannot be read go, so their blocks are computed anew."""
    for damage in damaged:
        # Deleted before anything is written: Zarr may read what it replaces, and fail at it.
        sync(cube.group.store.delete(damage.file))
    values = list_labels(cube)
    for damage in damaged:
        if damage.variable != DONE:
            get_array(cube.group, damage.variable)[:] = values[damage.variable]
