"""The laws of epochs that a cube's spec names."""

from collections.abc import Mapping

from grids.convergence.entry import Convergence
from grids.convergences import Pair
from grids.grid import Grid
from grids.reading.errors import InputError


def expect_laws(grid: Grid, where: str = "") -> Mapping[Pair, Convergence]:
    """The law of each model and data set that has one. InputError, naming `where`: none has."""
    if not grid.convergences:
        raise InputError(
            "this cube has no epochs to a target",
            where=where,
            advice="sweep with 'convergence: auto', or with your own epochs",
        )
    return grid.convergences
