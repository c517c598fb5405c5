from pathlib import Path

import pytest

import paradl
from paradl.grids.reading.errors import InputError
from paradl.sweep.cube.object_store import locate_store


@pytest.mark.parametrize(
    ("store", "located"),
    [
        ("cube.zarr", "cube.zarr"),
        (Path("/data/cube.zarr"), "/data/cube.zarr"),
        ("a:b/cube.zarr", "a:b/cube.zarr"),  # a folder with an odd name
        ("file:cube.zarr", "file:cube.zarr"),  # and another: this is no URL
        ("100%25.zarr", "100%25.zarr"),
        ("S3://Bucket/Cube.zarr", "s3://Bucket/Cube.zarr"),
    ],
)
def test_a_store_is_located(store, located):
    assert locate_store(store) == located


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("file:///data/cube.zarr", "name a folder by its path"),
        ("memory://cube.zarr", "name a folder"),
        ("Cloud://cube.zarr", "cloud"),
        ("simplecache::s3://bucket/cube.zarr", "simplecache::s3"),
        ("filecache::simplecache::gs://b/c.zarr", "filecache::"),
    ],
)
def test_what_cannot_be_a_store_is_refused(url, said, cli, spec_file, small):
    for command in (["sweep", spec_file(small)], ["status"], ["limits"], ["best"]):
        code, out, err = cli(*command, url)
        assert (code, out) == (2, "")
        assert err.startswith(f"paradl: {url}: ")
        assert said in err
        assert err.count("\n") == 1
    with pytest.raises(InputError, match="; "):
        paradl.run(small, url)
