"""Control groups: what memory Linux grants this process, in a container or a batch job.

A process may be deep in a tree of groups, and each of its ancestors may set a limit. The kernel
tells the place in /proc/self/cgroup: `0::/path` in version 2, `n:memory:/path` in version 1.
"""

from collections.abc import Iterator
from pathlib import Path, PurePosixPath

MEMBERSHIP = Path("/proc/self/cgroup")
MOUNT = Path("/sys/fs/cgroup")


def memory_limits(membership: Path = MEMBERSHIP, mount: Path = MOUNT) -> list[int]:
    """Bytes that each of this process' groups grants, where it sets a limit."""
    files = (
        group / name
        for root, path, name in _read_places(membership, mount)
        for group in _climb(root, path)
    )
    return [limit for file in files if (limit := _read_limit(file)) is not None]


def _read_places(membership: Path, mount: Path) -> Iterator[tuple[Path, PurePosixPath, str]]:
    """List each tree of groups: its mount, this process's place in it, and its file of limits."""
    for line in _read_text(membership).splitlines():
        # At most two cuts: a path may have colons of its own.
        _, controllers, path = line.split(":", 2)
        if not controllers:
            yield mount, PurePosixPath(path), "memory.max"
        elif "memory" in controllers.split(","):
            yield mount / "memory", PurePosixPath(path), "memory.limit_in_bytes"


def _climb(root: Path, path: PurePosixPath) -> Iterator[Path]:
    """The group's folder, and those of its ancestors: in a container often the root's alone."""
    if ".." in path.parts:  # beyond what is mounted here
        path = PurePosixPath("/")
    for group in (path, *path.parents):
        yield root.joinpath(*group.parts[1:])


def _read_limit(file: Path) -> int | None:
    """The limit that a file of the kernel sets; "max", and a file that is not there, set none."""
    text = _read_text(file).strip()
    # Version 1 says "no limit" by a number near 2**63, more than any machine has: as a least of
    # several it does no harm.
    return int(text) if text.isdecimal() else None


def _read_text(file: Path) -> str:
    try:
        return file.read_text()
    except OSError:
        return ""
