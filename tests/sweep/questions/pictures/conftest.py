"""Slices that pictures are made of, and a small store of the machine oracle."""

import pytest

import sweep


@pytest.fixture(scope="session")
def machine_url(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A store without terms."""
    url = str(tmp_path_factory.mktemp("machine") / "cube.zarr")
    axes = {
        "model": "alexnet",
        "dataset": "imagenet",
        "system": "abci",
        "strategy": "data",  # each more compiles for seconds
        "pe": [1, 2, 4],
        "batch": 32,
    }
    sweep.run({"axes": axes}, url)
    return url
