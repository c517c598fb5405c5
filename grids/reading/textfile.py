"""Users' files as text: regular files of a plausible size."""

import json
import re
import stat
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any, BinaryIO

from paradl.grids.reading.errors import InputError

# The size of a table of 40,000 measured runs. The most hostile known text of this size takes 0.9 s
# and 230 MB.
MOST_BYTES = 4 * 2**20
# Colours of a terminal, and moves of its cursor.
ESCAPES = re.compile(r"\x1b\[[\d;?]*[A-Za-z]")


def read_text(path: Path, most: int = MOST_BYTES) -> str:
    """Return the text of a user's file of at most `most` bytes."""
    with open_file(path) as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise InputError(
            f"larger than {most:,} bytes", where=str(path), advice="is it the right file?"
        )
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise InputError(
            "not UTF-8 text", where=f"{path}:{line}", advice="is it the right file?"
        ) from None


@contextmanager
def open_file(path: Path) -> Iterator[BinaryIO]:
    """Open a user's regular file; a pipe would block, and a device may be endless.

    InputError: it is none, or cannot be read; so are errors of the block's reads.
    """
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError) as error:  # a path with a null byte is a wrong value
        raise _explain(path, error) from None
    if not stat.S_ISREG(mode):
        kind = "a folder" if stat.S_ISDIR(mode) else "a device or a pipe"
        raise InputError(f"expected a file, got {kind}", where=str(path), advice="name a file")
    try:
        with path.open("rb") as file:
            yield file
    except OSError as error:
        raise _explain(path, error) from None


def _explain(path: Path, error: OSError | ValueError) -> InputError:
    if isinstance(error, FileNotFoundError):
        return InputError("no such file", where=str(path), advice="check the path")
    reason = error.strerror if isinstance(error, OSError) else str(error)
    return InputError(f"cannot be read: {reason}", where=str(path))


def parse_json(text: str | bytes, path: Path) -> Any:
    """Return the value of a file's JSON text. InputError: it is none, or nested too deeply."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"no JSON: {str(error)[:100]}", where=str(path), advice="is it cut off?"
        ) from None


def remove_escapes(text: str) -> str:
    """Return what a log says without what it sent to a terminal."""
    return ESCAPES.sub("", text)


def digest_text(text: str) -> str:
    """Return the first 16 hexadecimal digits of the text's SHA-256, a network's fingerprint."""
    return sha256(text.encode()).hexdigest()[:16]


# Formats of pictures. matplotlib has others, which are neither lossless nor sharp at every size.
PICTURES = (".png", ".svg", ".pdf")
PAGES = (".html", ".htm")


def expect_ending(path: Path, endings: Collection[str]) -> None:
    """Check that a file to write has an ending that says its format. InputError: it has not."""
    if path.suffix.lower() not in endings:
        raise InputError(
            f"expected a file that ends in {', '.join(endings)}, got {path.suffix or 'none'!r}",
            where=str(path),
            advice=f"write it like {path.stem}{next(iter(endings))}",
        )


def expect_folder(path: Path) -> None:
    """Check that a file can be written. InputError: its folder is missing, or it is no file."""
    if not path.parent.is_dir():
        raise InputError(f"no folder {str(path.parent)!r}", where=str(path), advice="make it first")
    # `write_whole` would put a file in the place of a device: of /dev/null, if root asks for it.
    if path.exists() and not path.is_file():
        kind = "a folder" if path.is_dir() else "a device or a pipe"
        raise InputError(f"expected a file, got {kind}", where=str(path), advice="name the file")


def expect_output(path: Path, inputs: Iterable[Path]) -> None:
    """Check that a file can be written, and is none of the inputs. InputError: it cannot, or is."""
    expect_folder(path)
    for source in inputs:
        # Links and other spellings may lead to the same file.
        if path.exists() and source.exists() and path.samefile(source):
            raise InputError(
                "this file is an input", where=str(path), advice="name another output file"
            )


def write_text(text: str, path: Path) -> None:
    """Write, or overwrite, a file at once: it is never there in half."""
    write_whole(lambda part: part.write_text(text, encoding="utf-8"), path)


def write_whole(write: Callable[[Path], object], path: Path) -> None:
    """Let `write` fill a file beside the path, which then takes its place, with its suffix.

    InputError: it cannot be written.
    """
    expect_folder(path)
    part = path.with_name(f".{path.stem}.part{path.suffix}")
    try:
        write(part)
        part.replace(path)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise InputError(f"cannot be written: {error.strerror}", where=str(path)) from None
