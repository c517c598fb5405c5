"""Compare codecs, chunks and shards by write rate and size; the engine's choice rests on this."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import zarr
from numpy.typing import NDArray
from zarr.codecs import BloscCodec

from benchmarks import spaces
from benchmarks.effort import Effort
from benchmarks.kernel import Block
from benchmarks.rawzarr import Codec, Layout, stored_bytes, write
from benchmarks.report import Report, Row
from benchmarks.timing import interleaved
from sweep.cube.creation import CODEC
from sweep.cube.plan import CHUNK_CELLS, SHARD_CELLS

Arrays = Mapping[str, NDArray[Any]]

ENGINE = "as the engine"
RUST = "as the engine, zarrs"

CODECS: dict[str, Codec | None] = {
    "no codec": None,
    "lz4 1, shuffle": partial(BloscCodec, cname="lz4", shuffle="shuffle", clevel=1),
    "lz4 5, no shuffle": partial(BloscCodec, cname="lz4", shuffle="noshuffle", clevel=5),
    "lz4 5, bitshuffle": partial(BloscCodec, cname="lz4", shuffle="bitshuffle", clevel=5),
    "zstd 1, shuffle": partial(BloscCodec, cname="zstd", shuffle="shuffle", clevel=1),
    "zstd 1, bitshuffle": partial(BloscCodec, cname="zstd", shuffle="bitshuffle", clevel=1),
    "zstd 5, shuffle": partial(BloscCodec, cname="zstd", shuffle="shuffle", clevel=5),
}
CHUNKS = (2**14, 2**16, 2**18, 2**19, 2**20, 2**21)
SHARDS = (2**20, 2**21, 2**22, 2**23, 2**24)


def layouts() -> dict[str, Layout]:
    """Return the engine's layout, and layouts that differ from it in one respect."""
    as_is = Layout(CODEC, CHUNK_CELLS, SHARD_CELLS)
    codecs = {name: Layout(codec, CHUNK_CELLS, SHARD_CELLS) for name, codec in CODECS.items()}
    chunks = {
        f"chunks of {_power(n)}": Layout(CODEC, n, SHARD_CELLS) for n in CHUNKS if n != CHUNK_CELLS
    }
    shards = {
        f"shards of {_power(n)}": Layout(CODEC, CHUNK_CELLS, n)
        for n in SHARDS
        if n != SHARD_CELLS and n % CHUNK_CELLS == 0  # a shard has whole chunks
    }
    rust = {RUST: as_is} if find_spec("zarrs") else {}
    parts = {
        "no empty chunks": replace(as_is, write_empty=False),
        "no checksums": replace(as_is, checksum=False),
    }
    return {ENGINE: as_is} | rust | parts | codecs | chunks | shards


def measure(effort: Effort) -> Report:
    """Write a block per strategy, side by side, in every layout."""
    arrays = sample(effort.sampled)
    with TemporaryDirectory() as name:
        folder = Path(name)
        actions = {
            label: partial(_write, folder / label, arrays, layout, label == RUST)
            for label, layout in layouts().items()
        }
        timings = interleaved(actions, effort.rounds)
        sizes = {label: stored_bytes(folder / label) for label in actions}
    cells = arrays["limit"].size
    rows = tuple(
        Row(
            label,
            cells / timing.median,
            "cells/s",
            timing.rate_against(timings[ENGINE]),
            ENGINE,
            note=f"{sizes[label] / cells:.2f} B/cell",
        )
        for label, timing in timings.items()
    )
    engine = f"blosc {_settings(CODEC)}, chunks of {_power(CHUNK_CELLS)}"
    return Report("codecs", f"write rate and size; the engine: {engine} cells", rows)


def sample(strategies: int) -> Arrays:
    """Return the blocks of the first strategies as a sweep stores them, stacked."""
    grid = spaces.wide(22)
    blocks = [Block(grid, position).arrays() for position in range(strategies)]
    return {name: np.stack([block[name] for block in blocks]) for name in blocks[0]}


def _write(folder: Path, arrays: Arrays, layout: Layout, rust: bool) -> None:
    pipeline = {"codec_pipeline.path": "zarrs.ZarrsCodecPipeline"} if rust else {}
    with zarr.config.set(pipeline):
        write(folder, arrays, layout)


def _settings(codec: "partial[BloscCodec]") -> str:
    return ", ".join(f"{name} {value}" for name, value in codec.keywords.items())


def _power(cells: int) -> str:
    return f"2**{cells.bit_length() - 1}"
