"""Predict for many configurations at once: every combination of the values, as a Dataset."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from grids.grid import Grid
from grids.spec import validate_spec
from sweep.questions.cells import compute_cells
from sweep.questions.compared_systems import name_software
from sweep.questions.several import has_several

if TYPE_CHECKING:
    import xarray as xr


def predict_many(
    axes: Mapping[str, object],
    parameters: Mapping[str, object],
    settings: Mapping[str, object],
) -> "xr.Dataset":
    """The cube over all combinations of the axes, in memory; InputError as of `compute_cells`.

    Several systems have coordinates of their precision and software.

    parameters: one value each, or several, which make an axis. settings: other keys of a spec.
    """
    grid = make_grid(axes, parameters, settings)
    return name_software(compute_cells(grid), grid.systems)


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
