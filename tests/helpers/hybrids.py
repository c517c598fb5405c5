"""Small questions about hybrids, and rows of their answers."""

from typing import Any

import paradl
from paradl.grids.convergence.entry import Convergence, Point

NAMES: Any = {"name": "mine", "model": "inception_v3", "dataset": "mine", "target": "all of it"}
MACHINE: Any = {"dataset": "imagenet-299", "system": "dgx1-v100"}
CONSTANT = Convergence(**NAMES, epochs_min=7)
INCEPTION = ((2048, 4.0), (4096, 7.0), (8192, 12.0), (16384, 23.0))


def tabulate(points: Any, **more: Any) -> Convergence:
    """Make a table of measured points; its law is not used."""
    listed = tuple(Point(global_batch=batch, epochs=epochs) for batch, epochs in points)
    return Convergence(**NAMES, epochs_min=1, critical_batch=1000, points=listed, **more)


def ask(law: Convergence, pe: Any, speedups: dict[int, float], **more: Any) -> dict[str, Any]:
    """Ask with given speed-ups; scaling efficiency is 1 by default."""
    options = {"batch": 64, "scaling_efficiency": 1.0} | more
    return paradl.hybrid("inception_v3", pe=pe, speedups=speedups, convergence=law, **options)


def pick_row(answer: dict[str, Any], strategy: str, pe: int) -> dict[str, Any]:
    row: dict[str, Any]
    [row] = [row for row in answer["rows"] if (row["strategy"], row["pe"]) == (strategy, pe)]
    return row


def pick_crossover(answer: dict[str, Any], against: str = "same", group: int = 2) -> dict[str, Any]:
    one: dict[str, Any]
    [one] = [c for c in answer["crossovers"] if (c["against"], c["group"]) == (against, group)]
    return one
