"""Zarr stores that read only regular files of a plausible size.

A store may come from a stranger: a pipe in place of a file would block for ever, and a sparse file
or an object of a terabyte would fill the memory. They are refused before a byte is read.
"""

import os
import stat
from abc import ABC, abstractmethod
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from zarr.abc.store import ByteRequest, RangeByteRequest, Store, SuffixByteRequest
from zarr.core.buffer import Buffer, BufferPrototype
from zarr.storage import FsspecStore, LocalStore

from paradl.sweep.cube.object_store import is_remote

# Files of a store, shards of 16 MiB and metadata alike, are far smaller.
MAX_METADATA_BYTES = 2**26
MAX_FILE_BYTES = 2**30
# s3fs would ask for the size of each object once more, to read large ones in parts side by side:
# three requests a read, and not two.
S3 = ("s3://", "s3a://")
S3_OPTIONS = {"max_concurrency": 1}


class IrregularFileError(ValueError):
    """Not a regular file, or too large; a ValueError, as Zarr raises for a damaged file."""


class CheckedReads(ABC):
    """Mixin that checks each read of a Zarr store, to be listed before the store's class."""

    @abstractmethod
    async def check(self, key: str, byte_range: ByteRequest | None) -> None:
        """Check that a key may be read. IrregularFileError: it may not."""

    async def get(
        self,
        key: str,
        prototype: BufferPrototype | None = None,
        byte_range: ByteRequest | None = None,
    ) -> Buffer | None:
        """Return the bytes of a key, or None if it does not exist."""
        await self.check(key, byte_range)
        store: Any = super()
        content: Buffer | None = await store.get(key, prototype, byte_range)
        return content

    async def get_partial_values(
        self, prototype: BufferPrototype, key_ranges: Iterable[tuple[str, ByteRequest | None]]
    ) -> list[Buffer | None]:
        """Return parts of keys."""
        ranges = list(key_ranges)
        for key, byte_range in ranges:
            await self.check(key, byte_range)
        store: Any = super()
        parts: list[Buffer | None] = await store.get_partial_values(prototype, ranges)
        return parts


class FolderStore(CheckedReads, LocalStore):
    """A Zarr store in a folder that reads only regular files of a plausible size."""

    async def check(self, key: str, byte_range: ByteRequest | None) -> None:
        """Check that a file is regular and not too large. IrregularFileError: it is not."""
        try:
            status = os.stat(self.root / key)  # follows links
        except (FileNotFoundError, NotADirectoryError):
            return
        if not stat.S_ISREG(status.st_mode):
            raise IrregularFileError(f"{key} is not a regular file")
        _check_size(key, status.st_size)


class RemoteStore(CheckedReads, FsspecStore):
    """A Zarr store at a URL that reads only objects of a plausible size."""

    async def check(self, key: str, byte_range: ByteRequest | None) -> None:
        """Check the length of a read, by a request if the whole object is meant."""
        if isinstance(byte_range, RangeByteRequest):
            _check_size(key, byte_range.end - byte_range.start)
        elif isinstance(byte_range, SuffixByteRequest):
            _check_size(key, byte_range.suffix)
        else:
            with suppress(OSError):  # the read itself will say what is wrong
                # `getsize` would read the whole object if the server does not state its size.
                size = (await self.fs._info(f"{self.path}/{key}")).get("size")
                _check_size(key, size or 0)


def _check_size(key: str, size: int) -> None:
    limit = MAX_METADATA_BYTES if key.endswith(".json") else MAX_FILE_BYTES
    if size > limit:
        raise IrregularFileError(f"{key} has {size:,} bytes, more than the limit of {limit:,}")


def make_store(url: str, read_only: bool) -> Store:
    """Return the Zarr store of a folder or a URL."""
    if is_remote(url):
        options = S3_OPTIONS if url.startswith(S3) else None
        return RemoteStore.from_url(url, storage_options=options, read_only=read_only)
    return FolderStore(url, read_only=read_only)
