"""Options of the form NAME=VALUE: `--sel` and `--set`."""

from typing import TYPE_CHECKING

from grids.reading.errors import InputError, shorten
from sweep.show.visible import tell

if TYPE_CHECKING:
    from sweep.cells.selection import Selection


def parse_selection(sel: list[str] | None) -> dict[str, list[str]]:
    """The values of each axis; an option that is repeated adds values."""
    pairs = _split_pairs(sel, "--sel")
    axes = dict.fromkeys(axis for axis, _ in pairs)
    return {axis: [value for each, value in pairs if each == axis] for axis in axes}


def take_nearest(store: str, selection: "Selection") -> "Selection":
    """The selection with the nearest values of the store's axes; says on stderr which these are."""
    from sweep.cells.selection import find_nearest, write_value
    from sweep.cube.coordinates import list_columns, list_coordinates
    from sweep.cube.store import open_cube

    grid = open_cube(store).grid
    nearest = find_nearest(list_coordinates(grid), selection, list_columns(grid))
    for axis, values in nearest.items():
        texts = ", ".join(write_value(axis, each) for each in values)
        tell(f"paradl: the nearest {axis}: {texts}")
    return {**selection, **nearest}


def expect_values(store: str, selection: "Selection") -> None:
    """Refuse values that the store's axes lack, before a question's imports take their time."""
    from sweep.cells.selection import locate_values
    from sweep.cube.coordinates import list_columns, list_coordinates
    from sweep.cube.store import open_cube

    if selection:
        grid = open_cube(store).grid
        locate_values(list_coordinates(grid), selection, list_columns(grid))


def parse_settings(items: list[str] | None, option: str) -> dict[str, str]:
    """The value of each name, which may stand once."""
    pairs = _split_pairs(items, option)
    values = dict(pairs)
    if len(values) < len(pairs):
        raise InputError("expected each name once", where=option, advice="keep one value")
    return values


def _split_pairs(items: list[str] | None, option: str) -> list[tuple[str, str]]:
    """Names and values; a value may have an equals sign of its own, as data+filter:group=8 does."""
    pairs = []
    for item in items or []:
        name, equals, value = (part.strip() for part in item.partition("="))
        if not equals or not name or not value:
            raise InputError(f"expected name=value, got {shorten(item)}", where=option)
        pairs.append((name, value))
    return pairs
