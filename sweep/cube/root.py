"""The root of a store: its Zarr group and attributes, checked before they are trusted.

A store may come from a stranger. So it must be a Zarr v3 group with paradl's attributes and codecs,
or it is refused before a byte of its arrays is decoded: older formats know filters that run code.
Only regular files of a plausible size are read: a pipe in place of one would block for ever, and a
sparse file or an object of a terabyte would fill the memory.
"""

import json
import os
import stat
import warnings
from abc import ABC, abstractmethod
from asyncio import gather
from collections.abc import Iterable, Iterator
from contextlib import suppress
from math import prod
from pathlib import Path
from typing import Any, Literal

import zarr
from zarr.abc.store import ByteRequest, RangeByteRequest, Store, SuffixByteRequest
from zarr.codecs import BloscCodec, BytesCodec, Crc32cCodec, ShardingCodec, VLenUTF8Codec, ZstdCodec
from zarr.core.buffer import Buffer, BufferPrototype
from zarr.core.metadata import ArrayV3Metadata
from zarr.errors import ZarrUserWarning
from zarr.registry import get_pipeline_class
from zarr.storage import FsspecStore, LocalStore

from paradl.grids.grid import Grid
from paradl.grids.reading.errors import InputError, format_text
from paradl.sweep.cube import provenance
from paradl.sweep.cube.object_store import is_remote, translate_open_errors

Mode = Literal["r", "r+"]

METADATA = "zarr.json"
ANEW = "sweep again and overwrite it, or into another store"

# Raised by Zarr and its codecs for a damaged chunk.
UNREADABLE = (ValueError, RuntimeError, OSError)
# Raised by Zarr for damaged metadata, such as other JSON, or none.
NO_METADATA = (*UNREADABLE, TypeError, KeyError, AttributeError, ImportError, ArithmeticError)

# Items of a chunk or shard; the longest that `creation` writes, of an axis, has ten million.
MOST_ITEMS = 2**26

# `creation` writes with these; nothing else is decoded.
CODECS = (BytesCodec, BloscCodec, Crc32cCodec, ShardingCodec, VLenUTF8Codec, ZstdCodec)


# Files of a store, shards of 16 MiB and metadata alike, are far smaller.
MAX_METADATA_BYTES = 2**26
MAX_FILE_BYTES = 2**30
# s3fs would ask for each object's size once more, to read it in parts: a third request a read.
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
        return await gather(*(self.get(key, prototype, extent) for key, extent in key_ranges))


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


def open_group(url: str, mode: Mode) -> zarr.Group | None:
    """Open the group of a cube; None if nothing is there yet. InputError: it is no cube."""
    # Zarr would open a ZipStore, in which no file can be replaced.
    if url.endswith(".zip"):
        raise InputError(
            "a zip file can be written only once", where=url, advice="name a folder, such as x.zarr"
        )
    _check_pipeline()
    try:
        with translate_open_errors(url), warnings.catch_warnings():
            # Zarr warns of chunks without items, and takes another size (3.4.2).
            warnings.filterwarnings("error", ".*chunk shape", ZarrUserWarning)
            # Otherwise Zarr would also look for format 2.
            group = zarr.open_group(make_store(url, mode == "r"), mode=mode, zarr_format=3)
    except InputError:
        raise
    except ZarrUserWarning:
        raise _report_chunks(url, "an array") from None
    except FileNotFoundError:
        # Zarr's GroupNotFoundError is one. `hold_store` creates an empty folder, which is free, and
        # an object store has no folders to check.
        path = Path(url)
        if is_remote(url) or not path.exists() or (path.is_dir() and not any(path.iterdir())):
            return None
        _refuse_file(url)
        if mode == "r":
            raise InputError(
                "not a cube", where=url, advice="check the path", page="no-cube"
            ) from None
        raise InputError(
            "this folder is not empty and not a cube; left untouched",
            where=url,
            advice="choose another path",
            page="no-cube",
        ) from None
    except PermissionError as error:
        raise InputError(f"cannot be opened: {error.strerror}", where=url) from None
    except NO_METADATA as error:
        raise InputError(
            f"not a readable Zarr group ({format_text(str(error))})",
            where=url,
            advice=f"check the path; if it is a cube, bring its {METADATA} back from a copy",
        ) from None
    # Every cube has one of these from its first write on: an interrupted creation is known as ours.
    if not {"paradl_format", "paradl_incomplete"} & set(group.attrs):
        raise InputError(
            "a Zarr group, but not written by paradl; left untouched",
            where=url,
            advice="choose another path",
            page="no-cube",
        )
    _check_arrays(url, group)
    return group


def _refuse_file(url: str) -> None:
    """Refuse a file where a store's folder is expected, such as a spec."""
    path = Path(url)
    if not path.is_file():
        return
    kinds = {
        ".yaml": ("YAML ", f"make a cube from a spec with: paradl sweep {path.name} STORE"),
        ".json": ("JSON ", f"ask about a model's config.json with: --model {url}"),
    }
    kind, advice = kinds.get(path.suffix.replace("yml", "yaml"), ("", "name a folder"))
    what = f"a {kind}file, not a cube; left untouched"
    raise InputError(what, where=url, advice=advice, page="no-cube")


def is_unfinished(group: zarr.Group) -> bool:
    """Return whether the creation of a cube was interrupted, before any block."""
    return bool(group.attrs.get("paradl_incomplete", False))


def read_grid(url: str, group: zarr.Group) -> Grid:
    """Read a cube's design space. InputError: another format, interrupted creation, or damage."""
    if is_unfinished(group):
        raise InputError(
            "this cube was interrupted before its first block",
            where=url,
            advice="rerun the same paradl sweep",
        )
    version = group.attrs.get("paradl_format")
    if version != provenance.FORMAT:
        raise InputError(
            f"cube format {format_text(version)}; this paradl reads format {provenance.FORMAT}",
            where=url,
            advice=f"use paradl {name_writer(group)}, or sweep again into another store",
            page="other-code",
        )
    definition = read_json(url, group, "paradl_spec")
    try:
        return Grid.from_definition(definition)
    except InputError as error:
        raise InputError(f"the cube's spec cannot be read: {error}", where=url) from None


def read_plan(url: str, group: zarr.Group, rank: int) -> tuple[tuple[int, ...], int]:
    """Read the shard and the layers of the plan that a cube of `rank` dimensions was created with.

    InputError: the plan is damaged.
    """
    # Without consolidated metadata, arrays would be opened by files with unchecked codecs.
    if group.metadata.consolidated_metadata is None:
        raise InputError(f"damaged: {METADATA} lists no arrays", where=url, advice=ANEW)
    plan = read_json(url, group, "paradl_plan")
    shard, layers = plan.get("shard"), plan.get("layers")
    sizes = [*shard, layers] if isinstance(shard, list) else []
    if len(sizes) != rank + 1 or not all(type(size) is int and size > 0 for size in sizes):
        raise InputError("the cube's plan does not fit its axes", where=url, advice=ANEW)
    return tuple(sizes[:-1]), sizes[-1]


def read_json(url: str, group: zarr.Group, name: str) -> dict[str, object]:
    """Read a root attribute that is a JSON mapping. InputError: it is missing or damaged."""
    try:
        value = json.loads(str(group.attrs[name]))
        if not isinstance(value, dict):
            raise TypeError(f"expected a mapping, got a {type(value).__name__}")
    except (KeyError, ValueError, TypeError, RecursionError) as error:
        # RecursionError: a stranger's store may nest brackets by the thousand.
        what = "it is missing" if isinstance(error, KeyError) else format_text(str(error))
        raise InputError(
            f"the cube's attribute {name} cannot be read ({what})", where=url, advice=ANEW
        ) from None
    return value


def remove_partial(url: str) -> None:
    """Remove Zarr's incomplete files of killed runs, with the store held and no worker alive."""
    if not is_remote(url):
        for path in Path(url).rglob("*.partial"):
            path.unlink(missing_ok=True)


def _check_pipeline() -> None:
    """Refuse, before anything is written, a Zarr configuration with codecs that are missing."""
    try:
        get_pipeline_class()
    except (ValueError, ImportError) as error:
        raise InputError(
            f"Zarr is configured with codecs that are not installed ({error})",
            where="ZARR_CODEC_PIPELINE__PATH",
            advice="install their package (zarrs), or unset the variable",
        ) from None


def _check_arrays(url: str, group: zarr.Group) -> None:
    """Refuse arrays with codecs or chunk sizes that paradl does not write."""
    consolidated = group.metadata.consolidated_metadata
    # Flattened, to include arrays inside groups, such as summary/statistics.
    members = consolidated.flattened_metadata if consolidated else {}
    for path, metadata in members.items():
        if not isinstance(metadata, ArrayV3Metadata):
            continue
        chunks = [getattr(metadata.chunk_grid, "chunk_shape", (0,))]
        for codec in _walk_codecs(metadata.codecs):
            if isinstance(codec, ShardingCodec):
                chunks.append(codec.chunk_shape)
            if not isinstance(codec, CODECS):
                raise InputError(
                    f"{path} is encoded with {type(codec).__name__}, which paradl never uses; "
                    "nothing was decoded",
                    where=url,
                    advice="do not trust this store",
                )
        if not all(1 <= prod(sizes) <= MOST_ITEMS for sizes in chunks):
            raise _report_chunks(url, path)


def _report_chunks(url: str, path: str) -> InputError:
    what = f"damaged: {path} has chunks of a size that paradl never uses"
    return InputError(what, where=url, advice=ANEW)


def _walk_codecs(codecs: tuple[Any, ...]) -> Iterator[object]:
    """Yield codecs, and those inside shards."""
    for codec in codecs:
        yield codec
        if isinstance(codec, ShardingCodec):
            yield from _walk_codecs((*codec.codecs, *codec.index_codecs))


def name_writer(group: zarr.Group) -> str:
    """Return the version of paradl that made a cube."""
    return format_text(str(group.attrs.get("source", "of that version")).removeprefix("paradl "))
