"""Files of a cache: each with a digest of its content, and read only if nobody else can write it.

Programs are unpickled, and scripts go into reports: who can write them runs code here. One flipped
bit of a program gave a wrong cube without a word.
"""

import os
import stat
import sys
from collections.abc import Iterable
from functools import cache, partial
from hashlib import sha256
from pathlib import Path
from shlex import quote

DIGEST_BYTES = sha256().digest_size
WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def digest_sources(folders: Iterable[Path]) -> str:
    """Return a digest of the Python files of packages."""
    digest = sha256()
    for folder in folders:
        # Sorted, since `rglob` has the file system's order.
        for path in sorted(folder.rglob("*.py")):
            digest.update(f"{folder.name}/{path.relative_to(folder).as_posix()}\n".encode())
            digest.update(path.read_bytes())
    # 64 bits protect against mistakes, not against malice.
    return digest.hexdigest()[:16]


def read_file(path: Path) -> bytes | None:
    """Return the content of a file; None: there is none, it is damaged, or others can write it.

    A damaged file is deleted, and stderr says so.
    """
    try:
        if not _is_private(path.parent, os.stat(path.parent)):
            return None
        with path.open("rb") as file:
            if not _is_private(path, os.fstat(file.fileno())):
                return None
            digest, content = file.read(DIGEST_BYTES), file.read()
        if digest == _digest(path, content):
            return content
        _tell(f"{path}: damaged; it is deleted and made anew")
        path.unlink()
    # A cache that others share may be read-only.
    except OSError:
        pass
    return None


def write_file(path: Path, content: bytes) -> None:
    """Keep a file that `read_file` accepts, unless others can write to its folder. OSError: it
    cannot be written.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not _is_private(path.parent, os.stat(path.parent)):
        return
    unfinished = path.with_suffix(f".{os.getpid()}")
    try:
        # Many systems let a user's group write to new files (umask 002).
        with open(unfinished, "wb", opener=partial(os.open, mode=0o644)) as file:
            file.write(_digest(path, content) + content)
        # Another process may read the file at any time.
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def _digest(path: Path, content: bytes) -> bytes:
    """Return the digest of a file: its name, too, lest it pass for another."""
    digest = sha256(path.name.encode())
    digest.update(content)
    return digest.digest()


def _is_private(path: Path, facts: os.stat_result) -> bool:
    """Return whether only this user and root can write a file or a folder; if not, say so."""
    # Elsewhere modes say nothing of who may write, and the user's cache folder is closed to others.
    if os.name != "posix":
        return True
    if facts.st_uid not in (0, os.getuid()):
        _tell(f"{path}: not used as a cache, since it belongs to another user")
    elif facts.st_mode & WRITABLE_BY_OTHERS:
        fix = f"chmod -R go-w {quote(str(path))}"
        _tell(f"{path}: not used as a cache, since others can write to it: {fix}")
    else:
        return True
    return False


@cache  # once per process
def _tell(message: str) -> None:
    print(f"paradl: {message}", file=sys.stderr)
