"""One block of the cube: evaluate, write, mark. The task of every executor, in any process."""

from collections.abc import Callable, Iterator

import numpy as np

from grids.grid import LABELS, Grid
from grids.models.layers import Floats
from grids.strategies import Strategy
from sweep import variables
from sweep.compilation import keep_programs
from sweep.evaluate import evaluate, evaluate_and_summarise
from sweep.plan import Plan, Region
from sweep.remote import writing
from sweep.store import NOT_SERIAL, SERIAL, Cube, shared_cube
from sweep.variables import Arrays

# Runs blocks of a cube, and yields the number of each when it is done.
Execute = Callable[[Cube, list[int]], Iterator[int]]


def run_block(url: str, identity: str, block: int) -> int:
    """Compute one block of the cube at `url`; returns its number."""
    keep_programs()
    compute(shared_cube(url, identity), block)
    return block


def compute(cube: Cube, block: int) -> None:
    """Compute and write one block. A pair that cannot exist is only marked."""
    region = cube.plan.region(block)
    fits = cube.grid.table(region[0].start, region[1].start) is not None
    arrays, summary = block_arrays(cube.grid, cube.plan, region) if fits else ({}, {})
    with writing(cube.url):
        cube.write(block, arrays, summary)


def block_arrays(grid: Grid, plan: Plan, region: Region) -> tuple[Arrays, Arrays]:
    """All variables of a block whose samples fit the model, and their summary."""
    sizes = [part.stop - part.start for part in region]
    arrays = {name: np.empty(sizes, variables.dtype(name)) for name in grid.spec.outputs}
    lines = [1 if dim == "pe" else size for dim, size in zip(plan.dims, sizes, strict=True)]
    summary = variables.empty_summary(lines)
    axes = _part(grid, plan, region)
    serial = _serial(grid, axes, region)
    labelled = region[: len(LABELS)]
    for index in np.ndindex(*sizes[: len(LABELS)]):
        model, dataset, system, strategy = (
            part.start + i for part, i in zip(labelled, index, strict=True)
        )
        place = (model, dataset, system, strategy)
        found = evaluate_and_summarise(grid, place, axes, serial[0, 0, index[2]])
        assert found is not None  # all of a block shares one model and dataset, which fit
        outputs, summed = found
        for name, values in outputs.items():
            arrays[name][index] = values
        for name, values in summed.items():
            summary[name][(*index, 0)] = values
    if _first_along(plan, region, NOT_SERIAL):
        arrays[SERIAL] = serial
    return arrays, summary


def _part(grid: Grid, plan: Plan, region: Region) -> dict[str, Floats]:
    """The block's values of the numeric axes."""
    parts = dict(zip(plan.dims, region, strict=True))
    return {name: values[parts[name]] for name, values in grid.axes.items()}


def _first_along(plan: Plan, region: Region, dims: tuple[str, ...]) -> bool:
    """Whether of all blocks that differ only along `dims` this is the first."""
    return all(part.start == 0 for dim, part in zip(plan.dims, region, strict=True) if dim in dims)


def _serial(grid: Grid, axes: dict[str, Floats], region: Region) -> Floats:
    """Time of an epoch on one PE [model, dataset, system, batch ...] of a block."""
    one = axes | {"pe": np.ones(1)}
    model, dataset, systems, _ = region[: len(LABELS)]
    others = [values.size for name, values in axes.items() if name != "pe"]
    times = np.empty((systems.stop - systems.start, *others), variables.dtype(SERIAL))
    for n, system in enumerate(range(systems.start, systems.stop)):
        index = (model.start, dataset.start, system, 0)
        found = evaluate(grid, index, one, ("comp_time",), Strategy("serial"))
        assert found is not None
        times[n] = found["comp_time"][0]
    return times[None, None]
