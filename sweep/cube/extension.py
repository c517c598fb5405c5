"""Extension: a cube whose axes gain values; only new cells are computed.

New values follow the stored ones, so that blocks keep their positions and full blocks their files.
A block at the old end of an axis may gain cells, if its shard was not full; then its done-mark is
cleared, and it is computed again. If the process is killed, the cube is either the old or the new
one: readers rely on the root's metadata, which change in one write, after all that they describe.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import zarr
from numpy.typing import NDArray
from zarr.core.buffer import Buffer
from zarr.core.group import GroupMetadata
from zarr.storage import MemoryStore

from paradl.grids.grid import LABELS, Grid
from paradl.grids.reading.errors import InputError
from paradl.grids.rows import append_rows
from paradl.sweep.cube import provenance
from paradl.sweep.cube.creation import consolidate_metadata, write_files
from paradl.sweep.cube.difference import describe_other_changes, list_added_values
from paradl.sweep.cube.plan import Plan, find_shape, plan_cube
from paradl.sweep.cube.store import Cube, get_array, open_cube
from paradl.sweep.cube.variables import list_columns, list_coordinates


@dataclass(frozen=True)
class Extension:
    """An extended cube: its grid and plan, and the values that each axis gains."""

    grid: Grid
    plan: Plan
    added: dict[str, list[Any]]


def plan_extension(cube: Cube, wanted: Grid) -> Extension:
    """Plan the extension of a cube by all values that only `wanted` has.

    InputError: `wanted` lacks or changes something, or inserts numbers before the end of an axis.
    """
    differs = describe_other_changes(cube.grid, wanted)
    if differs:
        raise InputError(
            f"a store can only gain values, and this one has a different sweep: {differs}",
            where=cube.url,
            advice="include the stored values, or sweep into another store",
        )
    new = list_added_values(cube.grid, wanted)
    # Labels and zipped axes have no order: new ones go to the end, wherever the spec lists them.
    for dim in set(new) - {*LABELS, *wanted.rows}:
        _check_at_the_end(cube, dim, new[dim])
    grid = _merge_entries(cube.grid, wanted)
    # Blocks keep their size, whatever a new cube of this shape would have, since otherwise all
    # files would have to be rewritten.
    plan = replace(plan_cube(grid), shard=cube.plan.shard)
    return Extension(grid, plan, new)


def find_missing_blocks(cube: Cube, extension: Extension) -> NDArray[np.bool_]:
    """Return which blocks of the extended cube must be computed [blocks along each dimension]."""
    missing = np.ones(extension.plan.grid, bool)
    before = tuple(slice(count) for count in cube.plan.grid)
    gaining = find_gaining_blocks(cube.plan, extension.plan)
    missing[before] = ~cube.read_done().reshape(cube.plan.grid) | gaining
    return missing


def find_gaining_blocks(before: Plan, after: Plan) -> NDArray[np.bool_]:
    """Return which blocks have more cells in the plan `after` [blocks along each dimension]."""
    gains = np.zeros(before.grid, bool)
    sizes = zip(before.shape, after.shape, before.shard, strict=True)
    for dim, (old, new, shard) in enumerate(sizes):
        # A full last block gains nothing: new values belong to new blocks.
        if new > old and old % shard:
            gains[(slice(None),) * dim + (-1,)] = True
    return gains


def extend_cube(cube: Cube, extension: Extension) -> Cube:
    """Make room for the new cells in the store, with their blocks not done."""
    outdated = cube.read_done() & find_gaining_blocks(cube.plan, extension.plan).reshape(-1)
    # Marks go first: after a kill, these blocks of the old cube are computed again. In the other
    # order, blocks that lack cells would count as done.
    cube.mark(np.flatnonzero(outdated).tolist(), done=False)
    axes = list_coordinates(extension.grid)
    axes |= {name: values for name, (_, values) in list_columns(extension.grid).items()}
    # In memory first, as for a new store, and from the root's metadata: those of the arrays may be
    # of an extension that was killed.
    files: dict[str, Buffer] = {}
    store = MemoryStore(files)
    consolidated = cube.group.metadata.consolidated_metadata
    assert consolidated is not None  # without, no cube is opened
    nodes = {"": GroupMetadata()} | consolidated.flattened_metadata
    list(zarr.create_hierarchy(store=store, nodes=nodes))  # each is created as it is asked for
    group = zarr.open_group(store, mode="r+", zarr_format=3)
    for name in cube.arrays:
        get_array(group, name).resize(find_shape(name, extension.plan, len(cube.statistics)))
    for name, values in axes.items():
        get_array(group, name).resize(values.shape)
        # Stored values come first, where readers of the old cube expect them.
        get_array(group, name)[:] = values
    consolidate_metadata(group).attrs.put(_describe_extended(cube, extension))
    write_files(cube.group.store, files)
    return open_cube(cube.url, "r+")


def _describe_extended(cube: Cube, extension: Extension) -> dict[str, Any]:
    """Return root attributes as for a new store, with the old one's history."""
    # A new id, too, since workers may have the old cube open.
    history = f"{cube.group.attrs['history']}\n{provenance.format_event('extended')}"
    return provenance.describe_origin(extension.grid, extension.plan) | {"history": history}


def _check_at_the_end(cube: Cube, dim: str, new: list[float]) -> None:
    """Refuse numbers before the end of an axis, where stored values would have to move."""
    last = cube.grid.axes[dim][-1]
    early = [value for value in new if value < last]
    if early:
        listed = ", ".join(f"{value:.12g}" for value in early[:5])
        raise InputError(
            f"axes.{dim}: an axis can only grow beyond its end, {last:.12g}; not by: "
            f"{listed}{' ...' if len(early) > 5 else ''}",
            where=cube.url,
            advice="leave them out, or sweep into another store",
        )


def _merge_entries(stored: Grid, wanted: Grid) -> Grid:
    """Return the design space of all that `wanted` has, with stored entries first."""
    entries: dict[str, Any] = {}
    for dim, kind in zip(LABELS, ("models", "datasets", "systems", "strategies"), strict=True):
        present = stored.labels[dim]
        labelled = zip(wanted.labels[dim], getattr(wanted, kind), strict=True)
        new = (entry for label, entry in labelled if label not in present)
        entries[kind] = (*getattr(stored, kind), *new)
    rows = {name: append_rows(stored.rows[name], rows) for name, rows in wanted.rows.items()}
    axes = wanted.spec.axes.model_copy(update=rows)
    return replace(wanted, **entries, spec=wanted.spec.model_copy(update={"axes": axes}))
