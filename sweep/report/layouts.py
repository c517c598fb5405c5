"""Layouts of a report: the columns by which a page selects, names from them, and their space."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from paradl.grids.entries.parameters import PARAMETERS
from paradl.grids.grid import Grid
from paradl.grids.library import find
from paradl.grids.spec import validate_spec
from paradl.kernels.names.parallelisms import LAYOUT_PARTS, LAYOUT_SETTINGS
from paradl.kernels.work.layouts import COLUMNS
from paradl.sweep.cases.layout_words import write_layout
from paradl.sweep.cells.selection import locate_row
from paradl.sweep.report.names import ROWS_OF_LAYOUTS

if TYPE_CHECKING:
    import xarray as xr

    from paradl.sweep.answers.types.fitting import FitAnswer

Columns = Mapping[str, NDArray[np.int64]]

# The degree of data parallelism is what the others leave of the PEs, so nobody selects by it.
SETTINGS = tuple(name for name in COLUMNS if name != "data")


def read_columns(
    grid: Grid, place: Mapping[str, Any], cells: "xr.Dataset", dims: Sequence[str]
) -> Columns | None:
    """Read the columns of a place's layouts [dims]; None of a strategy without layouts.

    In one go for all cells: to find them one by one takes 2.5 ms each.
    """
    index = locate_row(grid, place)
    if not grid.find_blocks(index):
        return None
    axes = {
        axis: np.atleast_1d(cells[axis].values if axis in dims else place[axis]).astype(float)
        for axis in grid.axes
    }
    case = grid.case(index, axes)
    assert case is not None  # the place has cells
    wide = [axis for axis in grid.axes if axis in dims]
    sizes = [values.size for values in axes.values()]
    order = [wide.index(dim) for dim in dims]
    return {
        name: np.broadcast_to(case.blocks.columns[name], sizes)
        .reshape([axes[axis].size for axis in wide])
        .transpose(order)
        for name in COLUMNS
    }


def describe_layout(columns: Columns, at: tuple[int, ...]) -> dict[str, str]:
    """Return the name of a layout, and the words of its columns."""
    numbers = {name: int(values[at]) for name, values in columns.items()}
    words = {name: str(PARAMETERS[name].write(numbers[name])) for name in SETTINGS}
    return {"name": write_layout(numbers), **words}


def list_settings(points: Iterable[Mapping[str, Any]]) -> dict[str, list[str]]:
    """List the words of each column in which the layouts of points differ."""
    layouts = [point for point in points if SETTINGS[0] in point]
    words = {name: {point[name] for point in layouts} for name in SETTINGS}
    return {
        name: sorted(values, key=lambda word: (len(word), word))
        for name, values in words.items()
        if len(values) > 1
    }


def make_layout_grid(
    answer: "FitAnswer", model: str, system: str, calibration: str | None = None
) -> Grid:
    """Make the design space of the layouts that fit, of an answer of `fit` with its usual settings.

    model, system, calibration: as they were asked for. Times and memory are those of the answer, to
    a cube's precision.
    """
    layouts: list[dict[str, Any]] = [{**row} for row in answer["layouts"]]
    # A parallelism that no layout has is no part of the strategy, and so has no column.
    parts = [name for name in LAYOUT_PARTS if any(row[name] > 1 for row in layouts)]
    # Layouts state the ranks of ZeRO even where they are all.
    absent = {"shard"} if "expert" in parts else {"shard", "expert_tensor"}
    columns = (*parts, *(name for name in LAYOUT_SETTINGS if name not in absent))
    customary = getattr(find("model", model, Path()), "customary", None) or "pile"
    length = f":length={answer['length']}" if customary == "pile" else ""
    # Behind settings of the user's, a further one follows a comma.
    colon = "," if ":" in system else ":"
    precision = "" if "precision=" in system else f"{colon}precision={answer['precision']}"
    axes: dict[str, object] = {
        "model": model,
        "dataset": customary + length,
        "system": system + precision,
        "strategy": "+".join(["data", *parts]),
        "pe": answer["pe"],
        "batch": answer["global_batch"],
        ROWS_OF_LAYOUTS: [
            {name: PARAMETERS[name].read(row[name]) for name in columns} for row in layouts
        ],
    }
    spec: dict[str, object] = {
        "scaling": "strong",
        "calibration": calibration or "none",
        "axes": axes,
    }
    return Grid.from_spec(validate_spec(spec, ""), Path())
