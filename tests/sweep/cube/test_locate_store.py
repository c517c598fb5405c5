import os
from pathlib import Path

import pytest
from cubes import arrays

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
        ("file:///data/cube.zarr", "/data/cube.zarr"),
        ("file:/data/cube.zarr", "/data/cube.zarr"),
        ("FILE://LocalHost/data/my%20cube%C3%A9.zarr", "/data/my cubeé.zarr"),
        ("file:///data/%FF", os.fsdecode(b"/data/\xff")),
        ("file:///data/a?b#c", "/data/a?b#c"),
        ("local:///data/cube.zarr", "/data/cube.zarr"),
        ("S3://Bucket/Cube.zarr", "s3://Bucket/Cube.zarr"),
    ],
)
def test_a_store_is_located(store, located):
    assert locate_store(store) == located


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("file://otherhost/data/cube.zarr", "a folder of this machine, got the host 'otherhost'"),
        ("file://cube.zarr", "a folder of this machine, got the host 'cube.zarr'"),
        ("file://", "a folder of this machine"),
        ("file:///data/%00", "a folder of this machine"),
        ("memory://cube.zarr", "name a folder"),
        ("Cloud://cube.zarr", "cloud"),
        ("simplecache::s3://bucket/cube.zarr", "itself: s3://bucket/cube.zarr"),
        ("filecache::simplecache::gs://b/c.zarr", "itself: gs://b/c.zarr"),
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


def test_a_folder_by_its_url(small, small_url, spec_file, cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "my cube.zarr"
    url = f"file://localhost{tmp_path}/my%20cube.zarr"
    assert cli("sweep", spec_file(small), url, "--quiet") == (0, "", "")
    assert {path.name for path in tmp_path.iterdir()} == {"my cube.zarr", "spec.yaml"}
    assert arrays(folder) == arrays(small_url)
    for question in (["status"], ["status", "--verify"], ["limits"], ["best"]):
        assert cli(question[0], url, *question[1:]) == cli(question[0], folder, *question[1:])
    assert paradl.open_dataset(url).sizes["pe"] == 4


def test_a_cube_is_extended_by_its_url(small, spec_file, cli, tmp_path):
    url = (tmp_path / "cube.zarr").as_uri()
    paradl.run(small, url)
    longer = {"oracle": "paper", "axes": small["axes"] | {"pe": [1, 2, 4, 8, 16]}}
    code, _, _ = cli("sweep", spec_file(longer), url, "--extend", "--quiet")
    assert code == 0
    assert paradl.open_dataset(tmp_path / "cube.zarr").sizes["pe"] == 5
    assert paradl.run(small, url, overwrite=True).sizes["pe"] == 4
