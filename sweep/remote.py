"""Object stores: their failures in one message each.

Zarr reaches them through fsspec, whose clients (s3fs, gcsfs, adlfs ...) find addresses and
credentials by themselves, in environment variables and files (docs/scale.md). Each client raises
errors of its own kinds, which is why everything is caught here.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from grids.errors import InputError


def is_remote(url: str) -> bool:
    """Whether a store is named by a URL, and not a folder."""
    return "://" in url


@contextmanager
def opening(url: str) -> Iterator[None]:
    """InputError where an object store cannot be used; other failures to open it pass."""
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
        if not is_remote(url) or isinstance(error, ValueError | TypeError | KeyError):
            raise
        raise InputError(
            f"the object store cannot be used ({error})",
            where=url,
            advice="check its address and credentials (of S3: AWS_ENDPOINT_URL, AWS_PROFILE or "
            "AWS_ACCESS_KEY_ID with AWS_SECRET_ACCESS_KEY)",
        ) from None


@contextmanager
def writing(url: str) -> Iterator[None]:
    """OSError, as of a disk, where an object store fails."""
    try:
        yield
    except Exception as error:
        if not is_remote(url) or isinstance(error, OSError):
            raise
        raise OSError(str(error)) from error


def _check_bucket(url: str) -> None:
    """Tell a bucket that is missing from one that does not hold the store yet."""
    from fsspec.core import url_to_fs

    filesystem, path = url_to_fs(url)
    bucket, slash, _ = path.partition("/")
    if not slash or is_remote(path):  # a web server has no buckets
        return
    try:
        filesystem.info(bucket)
    except PermissionError:  # who may write a part of a bucket need not see the whole
        return
    except FileNotFoundError:
        raise InputError(
            f"there is no bucket {bucket!r}", where=url, advice="make it, or check its name"
        ) from None
