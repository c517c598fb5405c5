"""One swept cube that most tests read, and the ways to run the command line."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import xarray as xr
import yaml

import sweep
from grids.grid import Grid
from grids.spec import OUTPUTS
from sweep import cli

# Pairs that cannot exist, uneven PE counts, a group that is looked for, an axis more, every output.
MIXED = {
    "name": "mixed",
    "axes": {
        "model": ["alexnet", "cosmoflow"],
        "dataset": ["imagenet-226", "cosmoflow-128"],
        "system": ["abci"],
        "strategy": [
            "serial",
            "data",
            "channel",
            "pipeline:segments=8",
            "data+filter",
            "data+spatial:group=best",
        ],
        "pe": [1, 3, 4, 8, 12],
        "batch": [8, 64],
        "inter_bandwidth": ["1 GB/s", "12.5 GB/s"],
    },
    "outputs": list(OUTPUTS),
}

# Four fast blocks; two pairs cannot exist.
SMALL = {
    "axes": {
        "model": ["alexnet", "cosmoflow"],
        "dataset": ["cosmoflow-128", "imagenet"],
        "system": "abci",
        "strategy": ["serial", "data", "data+channel"],
        "pe": [1, 2, 4, 8],
        "batch": [16, 32],
    },
}

COMMAND = (sys.executable, "-c", "from sweep.cli import main; main()")


@pytest.fixture(scope="session")
def mixed_url(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A store with the whole of MIXED."""
    url = str(tmp_path_factory.mktemp("mixed") / "cube.zarr")
    sweep.run(MIXED, url)
    return url


@pytest.fixture
def mixed(mixed_url: str) -> xr.Dataset:
    return sweep.open_dataset(mixed_url)


@pytest.fixture(scope="session")
def mixed_grid() -> Grid:
    from sweep.engine import read_grid

    return read_grid(MIXED)


@pytest.fixture
def small() -> dict:
    """A spec of four blocks, to change at will."""
    return {"axes": dict(SMALL["axes"])}


@pytest.fixture(scope="session")
def small_url(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A store with the whole of SMALL."""
    url = str(tmp_path_factory.mktemp("small") / "cube.zarr")
    sweep.run(SMALL, url)
    return url


@pytest.fixture
def spec_file(tmp_path: Path) -> Callable[[object], str]:
    """Writes a spec (a mapping, or YAML's own text) to a file."""

    def write(content: object) -> str:
        path = tmp_path / "spec.yaml"
        path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
        return str(path)

    return write


@pytest.fixture
def paradl(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    """Runs a command in this process: exit code, stdout, stderr."""

    def run(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["paradl", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        shown = capsys.readouterr()
        return int(ended.value.code or 0), shown.out, shown.err

    return run


@pytest.fixture
def paradl_process() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs a command in a process of its own."""

    def run(*arguments: object, **options: object) -> subprocess.CompletedProcess[str]:
        command = [*COMMAND, *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, **options)

    return run
