"""Status: how much of a cube is done, and whether it is what was written."""

from dataclasses import asdict
from os import scandir
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sweep.cube.layout import SUMMARY
from sweep.cube.object_store import is_remote
from sweep.cube.store import Cube, open_cube
from sweep.engine.progress import Progress, silent


def read_status(url: str) -> dict[str, Any]:
    """The status of the cube at `url`: blocks, cells and bytes, and how many blocks are done."""
    cube = open_cube(url)
    done = cube.read_done()
    return _make_status(cube, int(done.sum()), _count_missing(cube, done))


def count_blocks(url: str) -> tuple[int, int]:
    """How many blocks of the cube at `url` are done, and how many there are."""
    cube = open_cube(url)
    return int(cube.read_done().sum()), cube.plan.blocks


def verify_status(url: str, progress: Progress = silent) -> dict[str, Any]:
    """The status after all that is done was read and checked, and what of it is damaged.

    Of damaged blocks the marks are cleared; `left` says why, where that could not be.
    """
    from sweep.engine.verify import verify

    verdict = verify(url, progress)
    damaged = [asdict(each) for each in verdict.damaged]
    return _make_status(open_cube(url), verdict.whole, 0) | {
        "damaged": damaged,
        "left": verdict.left,
    }


def _count_missing(cube: Cube, done: NDArray[np.bool_]) -> int:
    """How many summaries finished blocks lack, as a listing of a local folder tells.

    0 on an object store, where nothing is listed.
    """
    if is_remote(cube.url):
        return 0
    # One listing of one folder, and no request a block: of 1.5 million blocks `status` took 3.0 s
    # on a loaded machine (CHANGELOG, 0.2.0).
    with scandir(Path(cube.url, SUMMARY)) as files:
        present = sum(each.name[-1].isdigit() for each in files)  # neither metadata nor halves
    if present >= done.sum():
        return 0
    # Blocks of pairs that do not fit are done without a file: they are counted out.
    of_pairs = done.reshape(*cube.plan.grid[:2], -1).sum(axis=2)
    return int(sum(of_pairs[pair] for pair in cube.grid.fitting)) - present


def _make_status(cube: Cube, finished: int, missing: int) -> dict[str, Any]:
    plan = cube.plan
    return {
        "store": cube.url,
        "name": cube.grid.spec.name,
        "complete": finished == plan.blocks and not missing,
        "blocks": plan.blocks,
        "blocks_done": finished,
        "summaries_missing": missing,
        "cells": plan.cells,
        "bytes": plan.nbytes,
    }
