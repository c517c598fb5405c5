"""A store's folder, opened so that nothing but plain files of credible size is read from it.

Whoever opens a store may have been sent it: a pipe in a file's place would be waited for for ever,
and a sparse file of a terabyte would be read into memory. Both are refused before a byte is read.
"""

import os
import stat
from collections.abc import Iterable

from zarr.abc.store import ByteRequest, Store
from zarr.core.buffer import Buffer, BufferPrototype
from zarr.storage import LocalStore

from sweep.cube.object_store import is_remote

# The longest file of a store, shards of 16 MiB and metadata alike, is far below either.
MAX_METADATA_BYTES = 2**26
MAX_FILE_BYTES = 2**30


class IrregularFileError(ValueError):
    """A file that is none, or too large; ValueError, as Zarr raises for a damaged one."""


class FolderStore(LocalStore):
    """Zarr's store of a folder; IrregularFileError where a file is none, or is too large."""

    async def get(
        self,
        key: str,
        prototype: BufferPrototype | None = None,
        byte_range: ByteRequest | None = None,
    ) -> Buffer | None:
        """The bytes of a file, None where it is gone."""
        self._check_file(key)
        return await super().get(key, prototype, byte_range)

    async def get_partial_values(
        self,
        prototype: BufferPrototype,
        key_ranges: Iterable[tuple[str, ByteRequest | None]],
    ) -> list[Buffer | None]:
        """Parts of files."""
        ranges = list(key_ranges)
        for key, _ in ranges:
            self._check_file(key)
        return await super().get_partial_values(prototype, ranges)

    def _check_file(self, key: str) -> None:
        try:
            status = os.stat(self.root / key)  # follows links
        except (FileNotFoundError, NotADirectoryError):
            return
        if not stat.S_ISREG(status.st_mode):
            raise IrregularFileError(f"{key} is not a regular file")
        limit = MAX_METADATA_BYTES if key.endswith(".json") else MAX_FILE_BYTES
        if status.st_size > limit:
            raise IrregularFileError(
                f"{key} has {status.st_size:,} bytes, and {limit:,} at most are read"
            )


def make_store(url: str, read_only: bool) -> Store | str:
    """What Zarr opens for a folder or a URL."""
    return url if is_remote(url) else FolderStore(url, read_only=read_only)
