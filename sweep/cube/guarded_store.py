"""A store opened so that nothing but plain files of credible size is read from it.

Whoever opens a store may have been sent it: a pipe in a file's place would be waited for for ever,
and a sparse file, or an object, of a terabyte would be read into memory. They are refused before a
byte is read.
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

from sweep.cube.object_store import is_remote

# The longest file of a store, shards of 16 MiB and metadata alike, is far below either.
MAX_METADATA_BYTES = 2**26
MAX_FILE_BYTES = 2**30


class IrregularFileError(ValueError):
    """A file that is none, or too large; ValueError, as Zarr raises for a damaged one."""


class CheckedReads(ABC):
    """Reads of a store, each after a check; to be inherited in front of one of Zarr's stores."""

    @abstractmethod
    async def check(self, key: str, byte_range: ByteRequest | None) -> None:
        """Raise IrregularFileError where a key, or a part of it, is not to be read."""

    async def get(
        self,
        key: str,
        prototype: BufferPrototype | None = None,
        byte_range: ByteRequest | None = None,
    ) -> Buffer | None:
        """The bytes of a key, None where it is gone."""
        await self.check(key, byte_range)
        store: Any = super()
        content: Buffer | None = await store.get(key, prototype, byte_range)
        return content

    async def get_partial_values(
        self,
        prototype: BufferPrototype,
        key_ranges: Iterable[tuple[str, ByteRequest | None]],
    ) -> list[Buffer | None]:
        """Parts of keys."""
        ranges = list(key_ranges)
        for key, byte_range in ranges:
            await self.check(key, byte_range)
        store: Any = super()
        parts: list[Buffer | None] = await store.get_partial_values(prototype, ranges)
        return parts


class FolderStore(CheckedReads, LocalStore):
    """Zarr's store of a folder; IrregularFileError where a file is none, or is too large."""

    async def check(self, key: str, byte_range: ByteRequest | None) -> None:
        """Check that a file is a regular one, of a credible length."""
        try:
            status = os.stat(self.root / key)  # follows links
        except (FileNotFoundError, NotADirectoryError):
            return
        if not stat.S_ISREG(status.st_mode):
            raise IrregularFileError(f"{key} is not a regular file")
        _check_size(key, status.st_size)


class RemoteStore(CheckedReads, FsspecStore):
    """Zarr's store of a URL; IrregularFileError where an object is too large."""

    async def check(self, key: str, byte_range: ByteRequest | None) -> None:
        """Check the length of what is asked for; of a whole object it takes a request."""
        if isinstance(byte_range, RangeByteRequest):
            _check_size(key, byte_range.end - byte_range.start)
        elif isinstance(byte_range, SuffixByteRequest):
            _check_size(key, byte_range.suffix)
        else:
            with suppress(OSError):  # reading it says what is wrong
                # Not `getsize`, which reads the object where a server does not tell its size.
                size = (await self.fs._info(f"{self.path}/{key}")).get("size")
                _check_size(key, size or 0)


def _check_size(key: str, size: int) -> None:
    limit = MAX_METADATA_BYTES if key.endswith(".json") else MAX_FILE_BYTES
    if size > limit:
        raise IrregularFileError(f"{key} has {size:,} bytes, more than the limit of {limit:,}")


def make_store(url: str, read_only: bool) -> Store:
    """The store that Zarr opens for a folder or a URL."""
    if is_remote(url):
        return RemoteStore.from_url(url, read_only=read_only)
    return FolderStore(url, read_only=read_only)
