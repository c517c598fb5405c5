"""Predict for many configurations at once: every combination of the values, as a Dataset."""

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from grids.grid import Grid
from grids.reading.errors import InputError
from grids.spec import validate_spec
from sweep.engine.progress import silent
from sweep.engine.run import Where, open_dataset, sweep
from sweep.questions.several import has_several

if TYPE_CHECKING:
    import xarray as xr

# They come back in memory: 14 bytes each with the outputs that a spec has by itself.
MOST_CELLS = 10**8


def predict_many(
    axes: Mapping[str, object],
    parameters: Mapping[str, object],
    settings: Mapping[str, object],
) -> "xr.Dataset":
    """The cube over all combinations of the axes, in memory; InputError: more than 1e8 cells.

    parameters: one value each, or several, which make an axis. settings: other keys of a spec.
    """
    grid = make_grid(axes, parameters, settings)
    cells = 1
    for size in grid.shape:
        cells *= size
    if cells > MOST_CELLS:
        raise InputError(
            f"{cells:,} configurations are too many to answer in memory",
            advice="sweep them into a store: sweep.run(SPEC, STORE)",
        )
    with TemporaryDirectory(prefix="paradl-") as folder:
        url = str(Path(folder, "cube.zarr"))
        sweep(grid, url, False, Where(), silent)
        return open_dataset(url).load()


def make_grid(
    axes: Mapping[str, object],
    parameters: Mapping[str, object],
    settings: Mapping[str, object],
) -> Grid:
    """The design space of several values of anything."""
    swept = {name: each for name, each in parameters.items() if has_several(each)}
    fixed = {name: each for name, each in parameters.items() if name not in swept}
    plain: dict[str, Any] = {
        "axes": {name: _list_values(each) for name, each in {**axes, **swept}.items()},
        "parameters": fixed,
        **settings,
    }
    return Grid.from_spec(validate_spec(plain, ""))


def _list_values(value: Any) -> Any:
    """The values as a spec has them: plain lists, numbers and mappings."""
    if isinstance(value, Mapping) or not has_several(value):
        return value
    return value.tolist() if hasattr(value, "tolist") else list(value)
