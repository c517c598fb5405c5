"""Tables of rows: lists, columns, CSV files and products become columns of checked values."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from grids.axes import MOST_VALUES, expand_axis
from grids.entries.parameters import FREE, PARAMETERS
from grids.reading.csvfile import read_records
from grids.reading.errors import InputError, shorten
from grids.reading.yamlfile import Where
from grids.rows import CONDITIONS, FORMS, Rows, write_columns
from kernels.names.arrays import Floats

# A row's values as texts or numbers, and the place of each of its keys in messages.
Record = tuple[Callable[[str], str], Mapping[str, object]]


def read_rows(name: str, form: object, base: Path, where: Where) -> Rows:
    """The rows of an axis; files are relative to `base`, and places of keys are as `where` says.

    InputError: file, row and key of what is wrong.
    """
    place = ("axes", name)
    if isinstance(form, dict):
        return _read_mapping(name, form, base, where)
    assert isinstance(form, list)

    def locate(row: int, key: str) -> str:
        keypath = (*place, row, key) if key else (*place, row)
        return _join_place(where(keypath), name, f"row {row + 1}", key)

    records = ((partial(locate, n), row) for n, row in enumerate(form))
    return Rows(form, _read_records(records, where(place)))


def _read_mapping(name: str, form: Mapping[Any, Any], base: Path, where: Where) -> Rows:
    """The rows of columns, a file, or a product."""
    kinds = [kind for kind in FORMS if kind in form]
    unknown = next((key for key in form if key not in (*FORMS, "where")), None)
    if unknown is not None:
        raise InputError.unknown(
            "key", unknown, (*FORMS, "where"), where=f"{where(('axes', name, unknown))}: {name}"
        )
    if len(kinds) != 1 or ("where" in form and kinds != ["product"]):
        raise InputError(
            f"expected one of {', '.join(FORMS)}, and 'where' with a product alone, got "
            f"{shorten(form)}",
            where=f"{where(('axes', name))}: {name}",
            advice="write it like '{product: {group: [2, 4], segments: [4, 8]}, where: divides}'",
        )
    (kind,) = kinds
    if kind == "csv":
        return _read_file(form["csv"], base, f"{where(('axes', name, kind))}: {name}")

    def locate(key: str) -> str:
        place = ("axes", name, kind, key) if key else ("axes", name, kind)
        return _join_place(where(place), name, kind, key)

    if not isinstance(form[kind], dict) or not form[kind]:
        raise InputError(
            f"expected parameters with their values, got {shorten(form[kind])}", where=locate("")
        )
    for key in form[kind]:
        _expect_parameter(key, locate(""))
    if kind == "product":
        _expect_condition(form.get("where"), where(("axes", name, "where")), name)
        return Rows(form, _multiply(form[kind], locate))
    return Rows(form, _read_columns(form[kind], locate))


def _join_place(*parts: str) -> str:
    return ": ".join(filter(None, parts))


def _expect_parameter(name: object, where: str) -> None:
    """InputError: no parameter, or one that has an axis of its own in every cube."""
    if name in PARAMETERS and name not in FREE:
        raise InputError(
            f"{name!r} is an axis of every cube, and does not change together with others",
            where=where,
            advice=f"write it beside, as an axis of its own: '{name}: [...]'",
        )
    if name not in FREE:
        raise InputError.unknown("parameter", name, FREE, where=where)


def _expect_condition(condition: object, where: str, name: str) -> None:
    if condition is not None and condition not in CONDITIONS:
        raise InputError.unknown("condition", condition, CONDITIONS, where=f"{where}: {name}")


def _multiply(factors: Mapping[str, object], locate: Callable[[str], str]) -> dict[str, Floats]:
    """The columns of all combinations, the last factor's values changing fastest."""
    axes = {}
    for key, form in factors.items():
        try:
            axes[key] = expand_axis(form, PARAMETERS[key]).values
        except InputError as error:
            raise InputError(str(error), where=locate(key)) from None
    _expect_few(prod(values.size for values in axes.values()) * len(axes), locate(""))
    grids = np.meshgrid(*axes.values(), indexing="ij")
    return _sort_columns({key: grid.ravel() for key, grid in zip(axes, grids, strict=True)})


def _read_columns(columns: Mapping[str, object], locate: Callable[[str], str]) -> dict[str, Floats]:
    """Columns of one length."""
    lists: dict[str, list[object]] = {}
    for key, listed in columns.items():
        if not isinstance(listed, list | tuple) or not listed:
            raise InputError(f"expected a list of values, got {shorten(listed)}", where=locate(key))
        lists[key] = [*listed]
        first, size = next((name, len(values)) for name, values in lists.items())
        if len(listed) != size:
            raise InputError(
                f"expected {size} values, as many as {first!r} has, got {len(listed)}",
                where=locate(key),
                advice="a row takes one value of each column",
            )

    def place(row: int, key: str) -> str:
        return _join_place(locate(key), f"row {row + 1}")

    rows = zip(*lists.values(), strict=True)
    records = (
        (partial(place, n), dict(zip(lists, row, strict=True))) for n, row in enumerate(rows)
    )
    return _read_records(records, locate(""))


def _read_file(file: object, base: Path, where: str) -> Rows:
    """The rows of a CSV file, spelled out: a store must not depend on it."""
    if not isinstance(file, str):
        raise InputError(f"expected the name of a CSV file, got {shorten(file)}", where=where)
    try:
        columns = _read_records(_list_records(base / file), str(base / file))
    except InputError as error:
        raise InputError(str(error), where=where) from None
    return Rows(write_columns(columns), columns)


def _list_records(path: Path) -> Iterator[Record]:
    for place, fields in read_records(path, (), tuple(PARAMETERS)):
        yield partial(_join_place, place), fields


def _read_records(records: Iterable[Record], where: str) -> dict[str, Floats]:
    """The columns of rows that all have the same parameters, no row twice."""
    names: tuple[str, ...] = ()
    values: dict[tuple[float, ...], None] = {}
    for locate, row in records:
        if not isinstance(row, Mapping) or not row:
            raise InputError(f"expected parameters, got {shorten(row)}", where=locate(""))
        for key in row:
            _expect_parameter(key, locate(""))
        names = names or tuple(row)
        if {*row} != {*names}:
            other = next(iter({*row} ^ {*names}))
            raise InputError(
                f"{other!r} is {'missing here' if other in names else 'not in the rows before'}",
                where=locate(""),
                advice="give each row a value of each parameter",
            )
        read = tuple(PARAMETERS[key].read(row[key], locate(key)) for key in names)
        if read in values:
            raise InputError("this row stands twice", where=locate(""), advice="keep one")
        values[read] = None
        _expect_few(len(values) * len(names), where)
    if not values:
        raise InputError("expected at least one row, got none", where=where)
    table = np.array([*values], float)
    return _sort_columns(dict(zip(names, table.T, strict=True)))


def _expect_few(count: int, where: str) -> None:
    """The count of values, before arrays of that size are made."""
    if count > MOST_VALUES:
        raise InputError(f"expected at most {MOST_VALUES:,} values, got {count:,}", where=where)


def _sort_columns(columns: Mapping[str, Floats]) -> dict[str, Floats]:
    """The columns in the order of parameters, read-only: the grid and all of its blocks share."""
    ordered = {name: np.ascontiguousarray(columns[name]) for name in PARAMETERS if name in columns}
    for values in ordered.values():
        values.flags.writeable = False
    return ordered
