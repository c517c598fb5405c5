"""Locations of stores: a folder or an object store, with one message for every failure.

Zarr reaches object stores through fsspec, whose clients (s3fs, gcsfs, adlfs ...) read addresses and
credentials from environment variables and files (docs/scale.md). Every client raises its own kinds
of errors, so all of them are caught here.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from paradl.grids.reading.errors import InputError, shorten

# Kinds that fsspec has, and that no other process can read.
NO_STORES = {"memory", "file", "local"}


def locate_store(store: object) -> str:
    """Return the path of a folder, or the URL of an object store, as the user named it.

    InputError: an empty name, or an unknown kind of store.

    >>> locate_store("S3://bucket/cube.zarr")
    's3://bucket/cube.zarr'
    """
    advice = "name a folder by its path, such as cube.zarr, or a URL such as s3://bucket/cube.zarr"
    if not isinstance(store, str | Path) or not str(store).strip():
        raise InputError(
            f"expected a folder or an object-store URL, got {shorten(store)}",
            where="store",
            advice=advice,
        )
    text = str(store)
    scheme, colon, rest = text.partition("://")
    if not colon:
        return text
    # Late, here and below, since folders need no fsspec.
    from fsspec import available_protocols

    # A cache in front of a store has no asynchronous calls, which Zarr makes.
    if scheme.lower() not in {*available_protocols()} - NO_STORES:
        raise InputError(
            f"unknown kind of store {shorten(scheme.lower())}", where=text, advice=advice
        )
    return f"{scheme.lower()}://{rest}"


def is_remote(url: str) -> bool:
    """Return whether a store is a URL and not a folder."""
    return "://" in url


def expect_parent(url: str) -> None:
    """Raise InputError if a store's parent folder is not there: the path may be mistyped."""
    parent = Path(url).parent
    # What cannot be looked up is reported where the store's folder is made.
    with suppress(OSError):
        if not is_remote(url) and not parent.exists():
            raise InputError(f"no folder {str(parent)!r}", where=url, advice="make it first")


@contextmanager
def translate_open_errors(url: str) -> Iterator[None]:
    """Raise InputError if an object store cannot be used; other errors of opening it pass."""
    try:
        yield
    except FileNotFoundError:
        if is_remote(url):
            _check_bucket(url)
        raise
    except ImportError as error:
        raise InputError(
            f"the client of this store is not installed ({error})",
            where=url,
            advice="install it, on every machine that computes blocks",
        ) from None
    except Exception as error:
        # Zarr raises these three for bad metadata, which `root.open_group` reports.
        if not is_remote(url) or isinstance(error, ValueError | TypeError | KeyError):
            raise
        raise InputError(
            f"the object store cannot be accessed ({error})",
            where=url,
            advice="check its address and credentials (of S3: AWS_ENDPOINT_URL, AWS_PROFILE or "
            "AWS_ACCESS_KEY_ID with AWS_SECRET_ACCESS_KEY)",
        ) from None


@contextmanager
def translate_failures(url: str) -> Iterator[None]:
    """Raise OSError if an object store fails, as a disk would."""
    try:
        yield
    except Exception as error:
        # So that callers have to handle only one kind of failure.
        if not is_remote(url) or isinstance(error, OSError):
            raise
        raise OSError(str(error)) from error


def _check_bucket(url: str) -> None:
    """Refuse a bucket that does not exist."""
    # Clients raise FileNotFoundError for a missing key, which is a new store, and for a bucket.
    from fsspec.core import url_to_fs

    filesystem, path = url_to_fs(url)
    bucket, slash, _ = path.partition("/")
    if not slash or is_remote(path):  # a web server has no buckets
        return
    try:
        filesystem.info(bucket)
    except PermissionError:  # one may be allowed to write into a bucket, but not to see it
        return
    except FileNotFoundError:
        raise InputError(
            f"there is no bucket {bucket!r}", where=url, advice="create it, or check its name"
        ) from None
