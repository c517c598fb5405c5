"""Status: how much of a cube is done, and whether it is what was written."""

from dataclasses import asdict
from typing import Any

from sweep.progress import Progress, silent
from sweep.store import Cube, open_cube


def status(url: str) -> dict[str, Any]:
    """Blocks and cells of the cube at `url`, all and done."""
    cube = open_cube(url)
    return _status(cube, int(cube.done().sum()))


def verified(url: str, progress: Progress = silent) -> dict[str, Any]:
    """The same, of all that is done read and checked; and what of it is damaged, file by file.

    Of damaged blocks the marks are cleared; `left` says why, where that could not be.
    """
    from sweep.verify import verify

    verdict = verify(url, progress)
    damaged = [asdict(each) for each in verdict.damaged]
    return _status(open_cube(url), verdict.whole) | {"damaged": damaged, "left": verdict.left}


def _status(cube: Cube, finished: int) -> dict[str, Any]:
    plan = cube.plan
    return {
        "store": cube.url,
        "name": cube.grid.spec.name,
        "complete": finished == plan.blocks,
        "blocks": plan.blocks,
        "blocks_done": finished,
        "cells": plan.cells,
        "bytes": plan.nbytes,
    }
