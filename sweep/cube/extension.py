"""Extension: a cube whose axes gain values, of which only the new cells are computed.

The stored values keep their places and the new ones follow them, so that a block keeps its place,
and whole blocks their files. A block at the old end of an axis whose shard was not full gains
cells: its done-mark is cleared, and it is computed anew. Cut short at any instant, the cube is the
old one or the new one: what readers go by is the root's metadata, which change in one write, after
everything that they speak of.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import zarr
from numpy.typing import NDArray
from zarr.core.buffer import default_buffer_prototype
from zarr.core.sync import sync
from zarr.storage import MemoryStore

from grids.grid import LABELS, Grid
from grids.reading.errors import InputError
from grids.rows import append_rows
from sweep.cube import provenance
from sweep.cube.coordinates import list_columns, list_coordinates
from sweep.cube.creation import consolidate_metadata
from sweep.cube.difference import describe_other_changes, list_added_values
from sweep.cube.layout import find_shape
from sweep.cube.plan import Plan, plan_cube
from sweep.cube.root import METADATA, NO_METADATA
from sweep.cube.store import Cube, get_array, open_cube
from sweep.errors import RunError


@dataclass(frozen=True)
class Extension:
    """A longer cube: its grid and plan, and the values that each axis gains."""

    grid: Grid
    plan: Plan
    added: dict[str, list[Any]]


def plan_extension(cube: Cube, wanted: Grid) -> Extension:
    """The extension that gives a cube all values that `wanted` has.

    InputError: `wanted` lacks or changes something, or has numbers before the end of an axis.
    """
    differs = describe_other_changes(cube.grid, wanted)
    if differs:
        raise InputError(
            f"the store holds another sweep, and can only gain values: {differs}",
            where=cube.url,
            advice="give the stored values too, or sweep into another store",
        )
    new = list_added_values(cube.grid, wanted)
    # Labels and rows have no order: a new one goes to the end wherever the spec lists it.
    for dim in set(new) - {*LABELS, *wanted.rows}:
        _check_at_the_end(cube, dim, new[dim])
    grid = _merge_entries(cube.grid, wanted)
    # Blocks keep their size, whatever a new cube of this shape would have: else all files would
    # have to be cut anew.
    plan = replace(plan_cube(grid), shard=cube.plan.shard, chunk=cube.plan.chunk)
    return Extension(grid, plan, new)


def find_missing_blocks(cube: Cube, extension: Extension) -> NDArray[np.bool_]:
    """Which blocks of the extended cube are to be computed [blocks along each dimension]."""
    missing = np.ones(extension.plan.grid, bool)
    before = tuple(slice(count) for count in cube.plan.grid)
    gaining = find_gaining_blocks(cube.plan, extension.plan)
    missing[before] = ~cube.read_done().reshape(cube.plan.grid) | gaining
    return missing


def find_gaining_blocks(before: Plan, after: Plan) -> NDArray[np.bool_]:
    """Which blocks of a plan hold more cells in the other [blocks along each dimension]."""
    gains = np.zeros(before.grid, bool)
    sizes = zip(before.shape, after.shape, before.shard, strict=True)
    for dim, (old, new, shard) in enumerate(sizes):
        # A last block that is full gains nothing: the new values are other blocks'.
        if new > old and old % shard:
            gains[(slice(None),) * dim + (-1,)] = True
    return gains


def extend_cube(cube: Cube, extension: Extension) -> Cube:
    """The cube with room for the new cells, whose blocks are not done."""
    outdated = cube.read_done() & find_gaining_blocks(cube.plan, extension.plan).reshape(-1)
    # Marks go first. A kill after this costs the old cube these blocks, which are then computed
    # again; the other way round, blocks would count as done that lack cells.
    cube.mark(np.flatnonzero(outdated).tolist(), done=False)
    axes = list_coordinates(extension.grid)
    axes |= {name: values for name, (_, values) in list_columns(extension.grid).items()}
    for name in (*cube.arrays, *axes):  # another extension may have been cut short here
        get_array(cube.group, name).update_attributes({})
    # Arrays by their own metadata, in which `resize` writes their new shapes: the root's copy, by
    # which readers go, stays what it was.
    group = zarr.open_group(cube.group.store, mode="r+", zarr_format=3, use_consolidated=False)
    for name in cube.arrays:
        get_array(group, name).resize(find_shape(name, extension.plan, len(cube.statistics)))
    for name, values in axes.items():
        get_array(group, name).resize(values.shape)
        # What is stored comes first and keeps its place: readers of the old cube find it there.
        get_array(group, name)[:] = values
    # Last: in this one write the old cube becomes the new one.
    _switch_root(group, _describe_extended(cube, extension))
    return open_cube(cube.url, "r+")


def _switch_root(group: zarr.Group, attributes: dict[str, Any]) -> None:
    """Give the root other attributes and the metadata of all arrays as they are now, in one write.

    Zarr would take two, and what lies between them is neither cube: so it makes both in memory.
    """
    draft, prototype = MemoryStore(), default_buffer_prototype()
    try:
        paths = [path for path, _ in group.members(max_depth=None)]
    except NO_METADATA as error:
        raise RunError(
            f"{group.store}: {error}; mend it with: paradl status STORE --verify"
        ) from error
    for path in ("", *(f"{path}/" for path in paths)):
        stored = sync(group.store.get(f"{path}{METADATA}", prototype))
        assert stored is not None  # members have metadata
        sync(draft.set(f"{path}{METADATA}", stored))
    root = zarr.open_group(draft, mode="r+", zarr_format=3)
    root.attrs.put(attributes)
    consolidate_metadata(root)
    root_metadata = sync(draft.get(METADATA, prototype))
    assert root_metadata is not None  # it was written two lines above
    # On a disk Zarr writes a file beside it, and renames that into its place; an object store
    # replaces an object as a whole: no reader sees a half.
    sync(group.store.set(METADATA, root_metadata))


def _describe_extended(cube: Cube, extension: Extension) -> dict[str, Any]:
    """Root attributes of the extended cube: of a new store, with the old one's history.

    The id is another, as workers may hold the old cube open.
    """
    history = f"{cube.group.attrs['history']}\n{provenance.format_event('extended')}"
    return provenance.describe_origin(extension.grid, extension.plan) | {"history": history}


def _check_at_the_end(cube: Cube, dim: str, new: list[float]) -> None:
    """Refuse numbers before an axis' end: they ascend, and what is stored stays where it is."""
    last = cube.grid.axes[dim][-1]
    early = [value for value in new if value < last]
    if early:
        listed = ", ".join(f"{value:.12g}" for value in early[:5])
        raise InputError(
            f"axes.{dim}: an axis grows at its end, beyond {last:.12g}; these values come before: "
            f"{listed}{' ...' if len(early) > 5 else ''}",
            where=cube.url,
            advice="leave them out, or sweep into another store",
        )


def _merge_entries(stored: Grid, wanted: Grid) -> Grid:
    """The design space of all that `wanted` has, what is stored first."""
    entries: dict[str, Any] = {}
    for dim, kind in zip(LABELS, ("models", "datasets", "systems", "strategies"), strict=True):
        present = stored.labels[dim]
        labelled = zip(wanted.labels[dim], getattr(wanted, kind), strict=True)
        new = (entry for label, entry in labelled if label not in present)
        entries[kind] = (*getattr(stored, kind), *new)
    rows = {name: append_rows(stored.rows[name], rows) for name, rows in wanted.rows.items()}
    axes = wanted.spec.axes.model_copy(update=rows)
    return replace(wanted, **entries, spec=wanted.spec.model_copy(update={"axes": axes}))
