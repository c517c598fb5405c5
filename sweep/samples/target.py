"""The folder of a data set: whole, or not there at all."""

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp

from grids.reading.errors import InputError
from sweep.errors import RunError

FACTS = "dataset.json"


@contextmanager
def write_beside(target: Path, *, force: bool) -> Iterator[Path]:
    """A folder beside the target to write to, which then takes its place.

    Whatever fails leaves the target as it was. InputError: something stands there.
    """
    _check(target, force)
    folder: Path | None = None
    try:
        # In the same folder, and so on the same disk: only there is renaming one step.
        folder = Path(mkdtemp(prefix=f".{target.name}.", suffix=".partial", dir=target.parent))
        made = folder / "made"
        made.mkdir()
        yield made
        _check(target, force)  # somebody may have made one meanwhile
        if target.exists():
            os.rename(target, folder / "before")
        os.rename(made, target)
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        what = "the disk is full" if full else f"writing failed ({error.strerror or error})"
        raise RunError(f"{target}: {what}; nothing was written") from error
    finally:
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)


def _check(target: Path, force: bool) -> None:
    """InputError: there is no such folder, or something stands there that would be lost."""
    if not target.parent.is_dir():
        raise InputError("no such folder", where=str(target.parent), advice="make it first")
    if not os.path.lexists(target):
        return
    if not force:
        raise InputError(
            "is there already", where=str(target), advice="name another folder, or give --force"
        )
    if not (target / FACTS).is_file():
        raise InputError(
            "no data set of ours; nothing was removed",
            where=str(target),
            advice="name another folder",
        )
