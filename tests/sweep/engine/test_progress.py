"""The bar is for terminals: here is one that is none, and a pseudo-terminal."""

import os
import pty
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from threading import Thread

import pytest
from cubes import SMALL

from sweep.cube.plan import make_plan
from sweep.engine.progress import bar, cells, lines, repeat_lines, silent

DIMS = ("model", "dataset", "system", "strategy", "pe", "batch")
PLAN = make_plan(DIMS, (1, 1, 1, 2, 5, 3), 13, alone=2, shard_cells=7)


def test_blocks_count_their_cells():
    assert sum(cells(PLAN, block) for block in range(PLAN.blocks)) == PLAN.cells


@pytest.mark.parametrize("shown", [silent, bar, lines])
def test_progress_takes_every_block(shown, capsys):
    with shown(PLAN, 0) as advance:
        for block in range(PLAN.blocks):
            advance(block)
    assert capsys.readouterr().out == ""


@pytest.fixture
def on_terminal(paradl, monkeypatch) -> Callable[..., str]:
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
            code, out, _ = paradl(*arguments)
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
    assert "cells/s" in shown
    assert "done: 32 cells" in shown


def test_quiet_is_quiet(spec, tmp_path, on_terminal):
    assert on_terminal("sweep", spec, tmp_path / "cube.zarr", "--quiet") == ""


def test_no_bar_without_a_terminal(spec, tmp_path, paradl):
    code, out, err = paradl("sweep", spec, tmp_path / "cube.zarr")
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
