"""Arrays written with plain Zarr, and no oracle behind them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import zarr
from numpy.typing import NDArray
from zarr.abc.codec import BytesBytesCodec
from zarr.codecs import Crc32cCodec

# A codec for items of `typesize` bytes.
Codec = Callable[..., BytesBytesCodec]

# As in a cube: what is not there is NaN, of flags none.
FILL = {"f": float("nan"), "u": 0}


@dataclass(frozen=True)
class Layout:
    """Layout of stored arrays; codec None compresses nothing.

    write_empty: also store chunks of nothing but fill values, instead of looking for them.
    checksum: of each chunk.
    """

    codec: Codec | None
    chunk_cells: int
    shard_cells: int
    write_empty: bool = True
    checksum: bool = True

    def codecs(self, itemsize: int) -> list[BytesBytesCodec]:
        """The codecs of a chunk."""
        compressing = [self.codec(typesize=itemsize)] if self.codec else []
        return [*compressing, *([Crc32cCodec()] if self.checksum else [])]


def write(folder: Path, arrays: Mapping[str, NDArray[Any]], layout: Layout) -> None:
    """Write each array as a run of cells, over what stood in the folder."""
    for name, values in arrays.items():
        array = zarr.create_array(
            str(folder / name),
            shape=(values.size,),
            chunks=(layout.chunk_cells,),
            shards=None if layout.shard_cells == layout.chunk_cells else (layout.shard_cells,),
            dtype=values.dtype,
            fill_value=FILL[values.dtype.kind],
            compressors=layout.codecs(values.itemsize),
            overwrite=True,
            config={"write_empty_chunks": layout.write_empty},
        )
        array[:] = values.reshape(-1)


def stored_bytes(folder: Path) -> int:
    """Bytes of all files of a store."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
