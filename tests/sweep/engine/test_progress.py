"""The bar is for terminals: here is one that is none, and a pseudo-terminal."""

import os
import pty
import sys
import time
from collections.abc import Callable
from contextlib import contextmanager, suppress
from threading import Thread
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from cubes import SMALL

import paradl
from paradl.grids.reading.errors import InputError
from paradl.sweep.cube.plan import make_plan
from paradl.sweep.engine.progress import bar, lines, repeat_lines, report_state, silent

DIMS = ("model", "dataset", "system", "strategy", "pe", "batch")
PLAN = make_plan(DIMS, (1, 1, 1, 2, 5, 3), 13, alone=2, shard_cells=7)


def test_blocks_count_their_cells():
    assert sum(PLAN.count_cells(block) for block in range(PLAN.blocks)) == PLAN.cells


@pytest.mark.parametrize("shown", [silent, bar, lines])
def test_progress_takes_every_block(shown, capsys):
    with shown(PLAN, np.arange(0)) as advance:
        for block in range(PLAN.blocks):
            advance(block)
    assert capsys.readouterr().out == ""


@pytest.fixture
def on_terminal(cli, monkeypatch) -> Callable[..., str]:
    """Runs a command; what a terminal shows of its stderr."""

    def run(*arguments: object) -> str:
        parent, child = pty.openpty()
        shown = bytearray()

        def read() -> None:
            with suppress(OSError):  # Linux ends a pseudo-terminal with an error
                while chunk := os.read(parent, 4096):
                    shown.extend(chunk)

        reader = Thread(target=read)
        reader.start()
        with os.fdopen(child, "w") as terminal, monkeypatch.context() as patch:
            patch.setattr(sys, "stderr", terminal)
            code, out, _ = cli(*arguments)
        reader.join(10)
        os.close(parent)
        assert (code, out) == (0, "")
        return shown.decode()

    return run


@pytest.fixture
def spec(spec_file) -> str:
    return spec_file(SMALL | {"axes": SMALL["axes"] | {"strategy": "serial"}})


def test_a_terminal_sees_a_bar(spec, tmp_path, on_terminal):
    shown = on_terminal("sweep", spec, tmp_path / "cube.zarr")
    assert "100%" in shown
    assert "done: 32 cells" in shown


def test_a_bar_counts_the_cells_of_an_extension(tmp_path, spec_file, on_terminal):
    """Old blocks are full, and new ones small."""
    for last, option in ((9, "--overwrite"), (10, "--extend")):
        axes = SMALL["axes"] | {"strategy": "serial", "batch": {"range": [1, last]}}
        spec = spec_file(SMALL | {"axes": axes})
        shown = on_terminal("sweep", spec, tmp_path / "cube.zarr", option)
        assert "100%" in shown


def test_quiet_is_quiet(spec, tmp_path, on_terminal):
    assert on_terminal("sweep", spec, tmp_path / "cube.zarr", "--quiet") == ""


def test_no_bar_without_a_terminal(spec, tmp_path, cli):
    code, out, err = cli("sweep", spec, tmp_path / "cube.zarr")
    assert (code, out) == (0, "")
    assert "%" not in err
    assert sys.stderr is not None


def test_a_pipe_gets_lines(capsys):
    with repeat_lines(lambda passed: "computing", 0.001, 0.001):
        deadline = time.monotonic() + 5
        shown = ""
        while shown.count("computing") < 2 and time.monotonic() < deadline:
            shown += capsys.readouterr().err
    assert shown.count("computing") >= 2


def wait_for(capsys, text: str) -> str:
    """What stderr has, once `text` is in it; a failed test ends in five seconds."""
    deadline, shown = time.monotonic() + 5, ""
    while text not in shown and time.monotonic() < deadline:
        shown += capsys.readouterr().err
        time.sleep(0.001)
    return shown


def test_a_pipe_gets_the_last_state(capsys, monkeypatch):
    monkeypatch.setattr("paradl.sweep.engine.progress.PERIOD", 0.002)
    with report_state("beginning") as report:
        assert "paradl: beginning (0 s)\n" in wait_for(capsys, "beginning")
        report("5 of 9 rows")
        assert "paradl: 5 of 9 rows (0 s)\n" in wait_for(capsys, "5 of 9")


def test_a_silent_state_is_silent(capsys, monkeypatch):
    monkeypatch.setattr("paradl.sweep.engine.progress.PERIOD", 0.001)
    with report_state("beginning", silent=True) as report:
        report("5 of 9 rows")
        time.sleep(0.01)
    assert capsys.readouterr().err == ""


def test_a_pipe_sees_how_far_a_verification_is(small_url, cli, monkeypatch):
    monkeypatch.setattr("paradl.sweep.engine.progress.PERIOD", 0.001)
    code, out, err = cli("status", small_url, "--verify")
    assert code == 0
    assert "blocks" in out
    assert {line.partition(" in ")[0] for line in err.splitlines()} <= {
        f"paradl: verify: {done} of 4 blocks" for done in range(5)
    }
    assert err


LONG = [
    "predict --model alexnet --dataset imagenet --system abci --strategy data --pe 8 --batch 32",
    "hybrid --model alexnet --batch 8 --pe x",
    "compare none.csv",
    "calibrate none.csv -o mine.yaml",
    "export none.zarr cells.csv",
    "diff none.zarr other.zarr",
    "surrogate check .",
    "surrogate predict . .",
    "plot scaling none.zarr -o scaling.png",
]


@pytest.mark.parametrize("command", LONG, ids=lambda command: command.split()[0])
def test_commands_say_that_they_take_long(command, monkeypatch, cli):
    """From their beginning on."""
    begun = []

    @contextmanager
    def note(silent: bool = False):
        begun.append(silent)
        yield

    monkeypatch.setattr("paradl.sweep.cli.commands.report_waiting", note)
    assert cli(*command.split())[0] in (0, 2)
    assert begun == [False]


def test_a_sweep_from_python_shows_its_progress(tmp_path, capsys, monkeypatch):
    """In a notebook a bar, without one and without a terminal nothing of a short sweep."""
    axes = {"model": "alexnet", "dataset": "imagenet-226", "system": "abci", "pe": 8, "batch": 32}
    paradl.run({"axes": axes | {"strategy": "data"}}, tmp_path / "a.zarr", progress=True)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("IPython.get_ipython", lambda: SimpleNamespace(kernel=None))
    paradl.run({"axes": axes | {"strategy": "data"}}, tmp_path / "b.zarr", progress=True)
    assert "sweep" in capsys.readouterr().err


def test_progress_that_is_none_is_refused_before_anything_is_made(tmp_path):
    with pytest.raises(InputError, match=r"^progress: expected True or False, got 'bar'"):
        paradl.run(SMALL, tmp_path / "a.zarr", progress=cast(Any, "bar"))
    assert not (tmp_path / "a.zarr").exists()
