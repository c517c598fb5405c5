"""Files of a cache are read only whole, and only where nobody else could have written them."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from paradl.kernels.cache_files import digest_sources, read_file, write_file

POSIX = pytest.mark.skipif(os.name != "posix", reason="modes say nothing of who may write")
ROOT = pytest.mark.skipif(
    getattr(os, "getuid", lambda: 1)() != 0, reason="only root can give a file away"
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file as an earlier process has left it."""
    path = tmp_path / "cache" / "programs" / "name"
    write_file(path, b"content")
    return path


@pytest.fixture(params=[0o002, 0o022, 0o077])
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    usual = os.umask(request.param)
    yield request.param
    os.umask(usual)


def test_every_flipped_bit_is_seen(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole = path.read_bytes()
    for bit in range(8 * len(whole)):
        damaged = bytearray(whole)
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        assert read_file(path) is None
        assert not path.exists()
    write_file(path, b"content")
    assert read_file(path) == b"content"
    assert str(path) in capsys.readouterr().err


@pytest.mark.parametrize("size", [0, 10, -1])
def test_a_file_cut_short_is_deleted(size: int, path: Path) -> None:
    path.write_bytes(path.read_bytes()[:size])
    assert read_file(path) is None
    assert not path.exists()


def test_a_file_does_not_pass_for_another(path: Path) -> None:
    other = path.rename(path.with_name("other"))
    assert read_file(other) is None


@POSIX
def test_what_we_write_is_ours_alone(umask: int, path: Path) -> None:
    """Many systems give each user a group, which may write to new files (umask 002)."""
    assert read_file(path) == b"content"
    assert path.parent.stat().st_mode & 0o777 == 0o700


@POSIX
@pytest.mark.parametrize("mode", [0o770, 0o707, 0o1777])
def test_a_folder_that_others_can_write_to(
    mode: int, path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path.parent.chmod(mode)
    for _ in range(2):
        assert read_file(path) is None
        write_file(path, b"more")
    err = capsys.readouterr().err
    assert err.count("others can write to it: chmod") == err.count("\n") == 1
    path.parent.chmod(0o755)
    assert read_file(path) == b"content"


@POSIX
@pytest.mark.parametrize("mode", [0o664, 0o646])
def test_a_file_that_others_can_write_to(mode: int, path: Path) -> None:
    path.chmod(mode)
    assert read_file(path) is None
    write_file(path, b"anew")  # takes its place
    assert read_file(path) == b"anew"


@ROOT
@pytest.mark.parametrize("whose", ["programs", "name"])
def test_what_belongs_to_another_user(
    whose: str, path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    os.chown(path if whose == path.name else path.parent, 12345, -1)
    assert read_file(path) is None
    assert "another user" in capsys.readouterr().err


@POSIX
def test_a_shared_cache_may_be_read_only(path: Path) -> None:
    path.chmod(0o444)
    path.parent.chmod(0o555)
    try:
        assert read_file(path) == b"content"
    finally:
        path.parent.chmod(0o755)


def test_a_digest_of_sources_depends_on_their_text_and_names(tmp_path: Path) -> None:
    law = tmp_path / "laws" / "law.py"
    law.parent.mkdir()
    law.write_text("SPEED = 2.0\n")
    first = digest_sources([law.parent])
    assert digest_sources([law.parent]) == first
    law.write_text("SPEED = 2\n")
    second = digest_sources([law.parent])
    law.rename(law.with_name("speed.py"))
    assert len({first, second, digest_sources([law.parent])}) == 3
