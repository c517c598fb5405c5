"""A cube to read from: damaged files, and files that finished blocks have lost, raise one error.

Zarr reads a missing or an empty file as fill values, which in a cube say that configurations cannot
exist: an answer would silently drop a model and name another winner. All readers share this store,
xarray's lazy arrays among them.
"""

import re
from dataclasses import replace
from typing import cast

import google_crc32c
import numpy as np
import zarr
from numpy.typing import NDArray
from zarr.abc.store import ByteRequest, Store
from zarr.core.buffer import Buffer, BufferPrototype
from zarr.storage import StorePath, WrapperStore

from paradl.sweep.cube.object_store import translate_failures
from paradl.sweep.cube.plan import DONE, PART, lay_out
from paradl.sweep.cube.root import UNREADABLE
from paradl.sweep.cube.store import Array, Cube
from paradl.sweep.errors import RunError

CHUNK = re.compile(r"(.+?)/c((?:[./]\d+)+)")
MISSING = "the file is missing"
CRC_BYTES = 4  # of the checksum, at the end of a chunk
# Earlier cubes have shards of one chunk. After it come its place, and the checksum of that.
INDEX_BYTES = 16 + CRC_BYTES


def check_reads(cube: Cube) -> Cube:
    """Return the same cube; reading damaged or lost files of its finished blocks is a RunError."""
    store = CheckedStore(cube.group.store, cube)
    group = zarr.Group(zarr.AsyncGroup(cube.group.metadata, StorePath(store)))
    arrays: dict[str, Array] = {
        name: zarr.Array(zarr.AsyncArray(array.metadata, StorePath(store, name)))
        for name, array in cube.arrays.items()
    }
    return replace(cube, group=group, arrays=arrays)


class CheckedStore(WrapperStore[Store]):
    """A cube's store that checks each chunk as it is read."""

    def __init__(self, store: Store, cube: Cube) -> None:
        super().__init__(store)
        self._cube = cube

    def _with_store(self, store: Store) -> "CheckedStore":
        return CheckedStore(store, self._cube)

    async def get(
        self, key: str, prototype: BufferPrototype, byte_range: ByteRequest | None = None
    ) -> Buffer | None:
        """Return the bytes of a key; None for a chunk that an unfinished block has not written.

        RunError: the chunk is damaged or missing.
        """
        match = CHUNK.fullmatch(key)
        # Marks have a message of their own (`Cube.read_done`).
        if match is None or match[1] == DONE:
            return await self._store.get(key, prototype, byte_range)
        content, fault = await read_chunk(self._cube.url, self._store, key, prototype)
        if fault and await self._is_finished(self._find_block(*match.groups())):
            # Again: a running sweep may have written it, and then its mark.
            content, fault = await read_chunk(self._cube.url, self._store, key, prototype)
            if fault:
                raise make_error(self._cube.url, key, fault)
        if content is None or byte_range is None:
            return content
        return await self._store.get(key, prototype, byte_range)

    def _find_block(self, name: str, chunk: str) -> int | None:
        """Return the block that writes a chunk of an array; None for labels of an axis."""
        if name not in self._cube.arrays:
            return None
        plan = self._cube.plan
        at = dict(zip(lay_out(name, plan), map(int, re.findall(r"\d+", chunk)), strict=True))
        at["pe"] = at.get(PART, at.get("pe", 0))
        return int(np.ravel_multi_index([at.get(dim, 0) for dim in plan.dims], plan.grid))

    async def _is_finished(self, block: int | None) -> bool:
        """Return whether the files of a block must be there; those of labels (None) always."""
        if block is None or not self._cube.fits(block):
            return block is None
        place = self._cube.find_place(DONE, block)
        try:
            return bool(np.all(await self._cube.arrays[DONE].async_array.getitem(place)))
        except UNREADABLE:
            return True  # unknown, since the marks are damaged


def make_error(url: str, key: str, fault: str) -> RunError:
    """Return the error of a store with a faulty file."""
    return RunError(
        f"{url}: {key} cannot be read: {fault}; list all damage with: paradl status {url} "
        "--verify, then run the same paradl sweep again",
        page="damaged-store",
    )


async def read_chunk(
    url: str, store: Store, key: str, prototype: BufferPrototype
) -> tuple[Buffer | None, str]:
    """Return the bytes of a chunk of the cube at `url`, or what is wrong with them."""
    try:
        with translate_failures(url):
            content = await store.get(key, prototype)
    except UNREADABLE as error:
        return None, getattr(error, "strerror", "") or str(error)
    if content is None:
        return None, MISSING
    data = content.as_numpy_array()
    if not data.size:
        return None, "the file is empty"
    parts = data[:-INDEX_BYTES], data[-INDEX_BYTES:]
    if _is_whole(data) or all(map(_is_whole, parts)):
        return content, ""
    return None, "its checksum differs"


def _is_whole(data: NDArray[np.uint8]) -> bool:
    checksum: int = google_crc32c.value(cast(bytes, data[:-CRC_BYTES]))
    return data[-CRC_BYTES:].tobytes() == checksum.to_bytes(CRC_BYTES, "little")
