"""Files of finished blocks that a question reads, and their loss.

Zarr reads a lost file as fill values, which mean that the configurations cannot exist: a model
would drop out of the answer, and another winner be named.
"""

from collections.abc import Collection, Iterator, Mapping

import numpy as np
from zarr.core.sync import sync

from sweep.cells.selection import Positions
from sweep.cube.store import Cube
from sweep.errors import RunError


def check_files(
    cube: Cube, names: Collection[str], chosen: Mapping[str, Positions | slice]
) -> None:
    """Raise RunError with the first file of the arrays `names` that a finished block lacks.

    chosen: positions along the dimensions of the cube; all along those that are not in it.
    """
    for block in list_finished(cube, chosen):
        for name in cube.list_arrays(block):
            # One request per file of the slice: listing a store would list all of its blocks.
            file = cube.name_file(name, block)
            if name in names and not sync(cube.group.store.exists(file)):
                raise RunError(
                    f"{cube.url}: {file} is gone, a file of a finished block; "
                    f"find all that are with: paradl status {cube.url} --verify, "
                    "and run the same paradl sweep again"
                )


def list_finished(cube: Cube, chosen: Mapping[str, Positions | slice]) -> Iterator[int]:
    """The finished blocks that hold a part of a slice."""
    plan = cube.plan
    sizes = zip(plan.dims, plan.shape, plan.shard, strict=True)
    at = [
        np.unique(np.arange(size)[chosen.get(dim, slice(None))] // shard)
        for dim, size, shard in sizes
    ]
    blocks = np.ravel_multi_index(np.ix_(*at), plan.grid).reshape(-1)
    yield from blocks[cube.read_done()[blocks]].tolist()
