"""Start of a sweep: an empty store, a cube to resume, or one to extend."""

from typing import TYPE_CHECKING

from paradl.grids.grid import Grid
from paradl.grids.reading.errors import InputError
from paradl.sweep.cube.difference import describe_difference, describe_other_changes
from paradl.sweep.cube.extension import Extension, plan_extension
from paradl.sweep.cube.plan import Plan, plan_cube
from paradl.sweep.cube.provenance import check_code
from paradl.sweep.cube.root import Mode, is_unfinished, open_group
from paradl.sweep.cube.store import Cube, read_cube

if TYPE_CHECKING:
    import zarr


def find_start(
    url: str, grid: Grid, mode: Mode, overwrite: bool, extend: bool
) -> tuple[Cube | None, Extension | None]:
    """The cube that a sweep resumes or extends, and its extension; None where there is none.

    InputError: no sweep of the grid can be written at `url`.
    """
    if overwrite and extend:
        raise InputError(
            "expected one of the two, got both",
            where="overwrite, extend",
            advice="extend keeps what is stored, overwrite starts anew",
        )
    # To write ("r+") the caller holds the store: opened so, Zarr makes a folder that is not there.
    group = open_group(url, mode, overwrite)
    if extend:
        cube = _read_finished(url, group)
        return cube, _find_growth(cube, grid, url)
    cube = None if overwrite else _read_finished(url, group)
    if cube is not None:
        _check_same(cube, grid)
    return cube, None


def choose_plan(grid: Grid, cube: Cube | None, extension: Extension | None) -> Plan:
    """Return the plan of a sweep; a cube keeps its own, which an extension may have cut finer."""
    if extension is not None:
        return extension.plan
    return plan_cube(grid) if cube is None else cube.plan


def _read_finished(url: str, group: "zarr.Group | None") -> Cube | None:
    """The cube of a group, None where its making was cut short."""
    return None if group is None or is_unfinished(group) else read_cube(url, group)


def _find_growth(cube: Cube | None, grid: Grid, url: str) -> Extension | None:
    """The extension of a cube to the grid, None where there is nothing to add."""
    if cube is None:
        raise InputError(
            "no cube here to extend", where=url, advice="leave extend=True out to make one"
        )
    extension = plan_extension(cube, grid)
    if not extension.added:
        return None
    expect_same_code(cube)
    return extension


def _check_same(cube: Cube, grid: Grid) -> None:
    """Refuse a store of other cells."""
    differs = describe_difference(cube.grid, grid)
    if differs:
        only_more = not describe_other_changes(cube.grid, grid)
        raise InputError(
            f"the store holds another sweep: {differs}",
            where=cube.url,
            advice=("give extend=True to add them, " if only_more else "")
            + "sweep into another store, or give overwrite=True",
            page="another-sweep",
        )


def expect_same_code(cube: Cube) -> None:
    """Refuse to mix the answers of two versions in one cube: they may differ in their last bits."""
    differs = check_code(cube.versions)
    if differs:
        raise InputError(
            f"the store was started by other code: {differs}",
            where=cube.url,
            advice="finish it with the same versions, or give overwrite=True",
            page="other-code",
        )
