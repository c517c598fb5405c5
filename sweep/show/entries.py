"""Entries of the catalogue as text: a line each, or as a file that reads back as the entry."""

import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, get_args

import yaml
from pydantic.fields import FieldInfo

from grids.entries.entry import Entry, Record
from grids.entries.quantity import Scale
from grids.reading.plainyaml import FLOAT
from grids.reading.units import PREFIXES, format_quantity
from sweep.show.tables import Format, Row, show

WIDTH = 100  # characters of a line of comment
HEAD = "# In brackets: the unit of a bare number. Others are written, such as 12.5 GB/s or 40 us."
UNCUT = 10**9  # of a line with a value: a reader joins no lines


def show_entries(rows: Sequence[Row], form: Format) -> None:
    """Print entries; people see no sources, which would make every table too wide to read."""
    if form == "json":
        show(rows, form)
        return
    # Programs get them: CSV has room.
    hidden = {"source"} if form == "table" else set()
    show([_lay_out_entry(row, hidden) for row in rows], form)


def _lay_out_entry(row: Row, hidden: set[str]) -> dict[str, Any]:
    """A line without the keys in `hidden`, a system's levels each in a line of its own."""
    columns = {key: value for key, value in row.items() if key not in hidden}
    if "levels" in columns:
        columns["levels"] = tuple(map(_format_level, columns["levels"]))
    return columns


def _format_level(level: Row) -> str:
    latency, bandwidth = (
        format_quantity(level["latency"], "s"),
        format_quantity(level["bandwidth"], "B/s"),
    )
    share = level["oversubscription"]
    narrower = "" if share == 1 else f", {share:g}:1"
    return f"{level['name']}, {level['pes']} PEs: {latency}, {bandwidth}{narrower}"


def format_file(entry: Entry) -> str:
    """The entry as YAML that reads back as the same entry, an explanation above each key.

    Keys that the entry does not have stand in comments, with an example. ASCII alone: it may be
    shown on a terminal.
    """
    return "\n".join([HEAD, *_write_record(type(entry), entry.definition(), "")]) + "\n"


def _write_record(form: type[Record], values: Mapping[str, Any], indent: str) -> list[str]:
    """The lines of a record's keys, its own before those that it inherits."""
    lines: list[str] = []
    mark = f"{indent}# "
    for key in _list_keys(form):
        field = form.model_fields[key]
        for text in _explain_field(field):
            lines += textwrap.wrap(text, WIDTH, initial_indent=mark, subsequent_indent=mark)
        if key in values:
            lines += [indent + line for line in _write_value(key, field, values[key])]
        else:
            example = f" {field.examples[0]}" if field.examples else ""
            lines.append(f"{mark}{key}:{example}")
    return lines


def _list_keys(form: type[Record]) -> list[str]:
    return sorted(form.model_fields, key=lambda key: key not in form.__annotations__)


def _explain_field(field: FieldInfo) -> list[str]:
    """What a key means; of a record on one line, what its parts mean, too."""
    form = None if _fills_lines(field) else _find_part(field, _is_record)
    parts = {key: form.model_fields[key].description for key in _list_keys(form)} if form else {}
    told = [f"  {key}: {text}" for key, text in parts.items() if text]
    return [*([field.description] if field.description else []), *told]


def _write_value(key: str, field: FieldInfo, value: Any) -> list[str]:
    """The lines of one key: of a list a line an item, of a record that has to be there a key."""
    if _fills_lines(field):
        form = _find_part(field, _is_record)
        return [f"{key}:", *_write_record(form, value, "  ")]
    readable = _make_readable(field, value)
    if isinstance(readable, list) and readable:
        return [f"{key}:", *(f"  - {_write_flow(each)}" for each in readable)]
    return [f"{key}: {_write_flow(readable)}"]


def _fills_lines(field: FieldInfo) -> bool:
    """Whether a key's value is a record with each part in a line of its own."""
    return field.is_required() and _is_record(field.annotation)


class _Dumper(yaml.SafeDumper):
    """Quotes what our reader, unlike YAML 1.1, would take for a number."""


_Dumper.add_implicit_resolver("tag:yaml.org,2002:float", FLOAT, list("-+.0123456789"))


def _write_flow(value: object) -> str:
    """A value as YAML on one line."""
    # A list around it: alone, a plain value would be followed by the mark of a document's end.
    text: str = yaml.dump(
        [value], None, _Dumper, default_flow_style=True, width=UNCUT, sort_keys=False
    )
    return text.strip()[1:-1]


def _make_readable(field: FieldInfo, value: Any) -> Any:
    """The value with units on quantities, in as many digits as it takes to read it back."""
    form, scale = _find_part(field, _is_record), _find_part(field, _is_scale)
    if isinstance(value, list):
        return [_make_readable(field, each) for each in value]
    if isinstance(value, Mapping):
        known = [key for key in _list_keys(form) if key in value]
        return {key: _make_readable(form.model_fields[key], value[key]) for key in known}
    return _write_exactly(value, scale.unit) if scale and isinstance(value, float) else value


def _write_exactly(number: float, unit: str) -> str:
    """A quantity as `format_quantity` writes it, but with all of its digits."""
    size, prefix = next((each for each in PREFIXES if number >= each[0]), (1.0, ""))
    scaled = (Decimal(repr(number)) / Decimal(repr(size))).normalize()
    usual = number == 0 or size <= number < 1e6 * size
    return f"{scaled:f} {prefix}{unit}" if usual else f"{number!r} {unit}"


def _is_record(part: object) -> bool:
    return isinstance(part, type) and issubclass(part, Record)


def _is_scale(part: object) -> bool:
    return isinstance(part, Scale)


def _find_part(field: FieldInfo, is_wanted: Callable[[object], bool]) -> Any:
    """The first part of a field's type that is wanted, None where there is none."""
    parts = (field.annotation, *field.metadata)
    return next((part for each in parts for part in _walk(each) if is_wanted(part)), None)


def _walk(annotation: object) -> Iterator[object]:
    """A type and what it is made of, such as `tuple[Level, ...] | None`."""
    yield annotation
    for part in get_args(annotation):
        yield from _walk(part)
