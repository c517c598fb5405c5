"""Status: how much of a cube is done."""

from typing import Any

from sweep.store import open_cube


def status(url: str) -> dict[str, Any]:
    """Blocks and cells of the cube at `url`, all and done."""
    cube = open_cube(url)
    done = cube.done()
    plan = cube.plan
    finished = int(done.sum())
    return {
        "store": url,
        "name": cube.grid.spec.name,
        "complete": finished == plan.blocks,
        "blocks": plan.blocks,
        "blocks_done": finished,
        "cells": plan.cells,
        "bytes": plan.nbytes,
    }
