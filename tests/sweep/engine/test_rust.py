"""The Rust codec pipeline writes the stores that Zarr's own does, and reads them."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import zarr
from zarr.registry import get_pipeline_class

import paradl
from paradl.grids.reading.errors import InputError
from paradl.sweep.engine.verification import verify

pytest.importorskip("zarrs")


def files(url: Path) -> dict[str, bytes]:
    """All of a store but the root's metadata, which tell when and as what it was made."""
    paths = (path for path in url.rglob("*") if path.is_file() and path != url / "zarr.json")
    return {str(path.relative_to(url)): path.read_bytes() for path in paths}


@pytest.fixture
def rust() -> Iterator[None]:
    """As ZARR_CODEC_PIPELINE__PATH, which Zarr reads as it is imported."""
    with zarr.config.set({"codec_pipeline.path": "zarrs.ZarrsCodecPipeline"}):
        assert get_pipeline_class().__name__ == "ZarrsCodecPipeline"
        yield


def test_the_same_store(small, small_url, tmp_path, rust):
    url = tmp_path / "cube.zarr"
    paradl.run(small, url)
    assert verify(str(url)).damaged == ()
    assert files(url) == files(Path(small_url))
    result, expected = (paradl.open_dataset(value) for value in (url, small_url))
    np.testing.assert_array_equal(result.comm_time.values, expected.comm_time.values)


def test_codecs_that_are_not_there(small_url, cli):
    """As where zarrs is asked for, and was not installed."""
    with zarr.config.set({"codec_pipeline.path": "zarrs.Unknown"}):
        code, out, err = cli("limits", small_url)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("paradl: ZARR_CODEC_PIPELINE__PATH: ")
    assert "zarrs" in err


def test_nothing_is_begun_with_codecs_that_are_not_there(small, tmp_path):
    url = tmp_path / "cube.zarr"
    with (
        zarr.config.set({"codec_pipeline.path": "zarrs.Unknown"}),
        pytest.raises(InputError, match="install their package"),
    ):
        paradl.run(small, url)
    assert not url.exists()


def test_a_damaged_store(small_url, tmp_path, rust):
    """A flipped bit is found by either."""
    url = shutil.copytree(small_url, tmp_path / "cube.zarr")
    path = next(url.glob("comm_time/c.*"))
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    assert [Path(place.file).name for place in verify(str(url)).damaged] == [path.name]
