"""One swept cube that most tests read, and the ways to run the command line."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import xarray as xr
import yaml
from cubes import DATA, MIXED, SMALL
from shared import copy_shared

import paradl
from paradl.grids.grid import Grid
from paradl.sweep.cli.main import main


@pytest.fixture(scope="session")
def mixed_url(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A store with the whole of MIXED."""
    return str(copy_shared(tmp_path_factory, "mixed.zarr", lambda path: paradl.run(MIXED, path)))


@pytest.fixture(scope="session")
def mixed_read(mixed_url: str) -> xr.Dataset:
    return paradl.open_dataset(mixed_url).load()


@pytest.fixture
def mixed(mixed_read: xr.Dataset) -> xr.Dataset:
    """The whole of MIXED, read once: chunks take each test 0.4 s; `mixed_url` is for them."""
    return mixed_read.copy(deep=True)


@pytest.fixture(scope="session")
def mixed_grid() -> Grid:
    from paradl.sweep.engine.run import read_grid

    return read_grid(MIXED)


@pytest.fixture
def small() -> dict:
    """A spec of four blocks, to change at will."""
    return {"oracle": "paper", "axes": dict(SMALL["axes"])}


@pytest.fixture(scope="session")
def small_url(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A store with the whole of SMALL."""
    return str(copy_shared(tmp_path_factory, "small.zarr", lambda path: paradl.run(SMALL, path)))


@pytest.fixture
def data_spec() -> dict:
    """A spec of four blocks under one strategy, to change at will."""
    return {"oracle": "paper", "axes": dict(DATA["axes"])}


@pytest.fixture(scope="session")
def data_url(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A store with the whole of DATA, filled by one process."""
    return str(copy_shared(tmp_path_factory, "data.zarr", lambda path: paradl.run(DATA, path)))


@pytest.fixture
def spec_file(tmp_path: Path) -> Callable[[object], str]:
    """Writes a spec (a mapping, or YAML's own text) to a file."""

    def write(content: object) -> str:
        path = tmp_path / "spec.yaml"
        path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
        return str(path)

    return write


@pytest.fixture
def cli(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    """Runs a command in this process: exit code, stdout, stderr."""

    def run(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["paradl", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        shown = capsys.readouterr()
        return int(ended.value.code or 0), shown.out, shown.err

    return run
