"""The Rust codec pipeline writes the stores that Zarr's own does, and reads them."""

import os
import shutil
from pathlib import Path

import numpy as np
import pytest

import sweep

pytest.importorskip("zarrs")

RUST = {"ZARR_CODEC_PIPELINE__PATH": "zarrs.ZarrsCodecPipeline"}


def files(url: Path) -> dict[str, bytes]:
    """All of a store but the root's metadata, which tell when and as what it was made."""
    paths = (path for path in url.rglob("*") if path.is_file() and path != url / "zarr.json")
    return {str(path.relative_to(url)): path.read_bytes() for path in paths}


def test_the_same_store(small, spec_file, small_url, tmp_path, paradl_process):
    url = tmp_path / "cube.zarr"
    ran = paradl_process("sweep", spec_file(small), url, "--quiet", env=os.environ | RUST)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert files(url) == files(Path(small_url))
    ran = paradl_process("status", url, "--verify", env=os.environ | RUST)
    assert (ran.returncode, ran.stderr) == (0, "")
    found, expected = (sweep.open_dataset(each) for each in (url, small_url))
    np.testing.assert_array_equal(found.comm_time.values, expected.comm_time.values)


@pytest.mark.parametrize("command", ["sweep", "limits"])
def test_codecs_that_are_not_there(command, small, spec_file, small_url, tmp_path, paradl_process):
    """As where zarrs is asked for, and was not installed."""
    url = tmp_path / "cube.zarr"
    asked = ("sweep", spec_file(small), url) if command == "sweep" else ("limits", small_url)
    ran = paradl_process(*asked, env=os.environ | {"ZARR_CODEC_PIPELINE__PATH": "zarrs.Unknown"})
    assert (ran.returncode, ran.stdout, ran.stderr.count("\n")) == (2, "", 1)
    assert ran.stderr.startswith("paradl: ZARR_CODEC_PIPELINE__PATH: ")
    assert "install their package (zarrs), or unset it" in ran.stderr
    assert not url.exists()


def test_a_damaged_store(small_url, tmp_path, paradl_process):
    """A flipped bit is found by either."""
    url = shutil.copytree(small_url, tmp_path / "cube.zarr")
    path = next(url.glob("comm_time/c.*"))
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    ran = paradl_process("status", url, "--verify", env=os.environ | RUST)
    assert ran.returncode == 1
    assert path.name in ran.stdout
