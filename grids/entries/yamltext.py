"""Entries as YAML text with comments, which reads back as the same entry."""

import textwrap
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from functools import partial
from typing import Any, get_args, get_origin

from pydantic.fields import FieldInfo

from paradl.grids.entries.entry import Entry, Record
from paradl.grids.entries.quantity import Scale
from paradl.grids.reading.units import PREFIXES
from paradl.grids.reading.yamlfile import write_flow

WIDTH = 100  # characters of a line of comment

Notes = Mapping[str, str]


def format_entry(
    entry: Entry, head: str, values: Mapping[str, Any] | None = None, notes: Notes | None = None
) -> str:
    """Write the entry as YAML, with an explanation above each key.

    Missing keys are comments with an example. The text is ASCII, for any terminal. head: the first
    comment. values: replaces the definition, such as with rounded values. notes: comments behind
    the items of its mappings, by name.
    """
    lines = _write_record(type(entry), values or entry.definition(), "", notes or {})
    return "\n".join([*_comment(head, ""), *lines]) + "\n"


def _comment(text: str, indent: str) -> list[str]:
    mark = f"{indent}# "
    return textwrap.wrap(text, WIDTH, initial_indent=mark, subsequent_indent=mark)


def _write_record(
    form: type[Record], values: Mapping[str, Any], indent: str, notes: Notes
) -> list[str]:
    lines: list[str] = []
    for key in _list_keys(form):
        field = form.model_fields[key]
        lines += [line for text in _explain_field(field) for line in _comment(text, indent)]
        if key in values:
            lines += [indent + line for line in _write_value(key, field, values[key], notes)]
        else:
            example = f" {field.examples[0]}" if field.examples else ""
            lines.append(f"{indent}# {key}:{example}")
    return lines


def _list_keys(form: type[Record]) -> list[str]:
    return sorted(form.model_fields, key=lambda key: key not in form.__annotations__)


def _explain_field(field: FieldInfo) -> list[str]:
    form = None if _fills_lines(field) else _find_part(field, _is_record)
    parts = {key: form.model_fields[key].description for key in _list_keys(form)} if form else {}
    explained = [f"  {key}: {text}" for key, text in parts.items() if text]
    return [*([field.description] if field.description else []), *explained]


def _write_value(key: str, field: FieldInfo, value: Any, notes: Notes) -> list[str]:
    """Return the lines of a key.

    Lists and mappings have a line per item, required records a line per key.
    """
    if _fills_lines(field):
        form = _find_part(field, _is_record)
        return [_add_note(f"{key}:", key, notes), *_write_record(form, value, "  ", notes)]
    if get_origin(field.annotation) in (dict, Mapping) and value:
        items = (f"  {write_flow(name)}: {write_flow(part)}" for name, part in value.items())
        return [f"{key}:", *map(partial(_add_note, notes=notes), items, value)]
    readable = _make_readable(field, value)
    if isinstance(readable, list) and readable:
        items = (f"  - {write_flow(item)}" for item in readable)
        return [f"{key}:", *(_add_note(item, f"{key}.{n}", notes) for n, item in enumerate(items))]
    return [_add_note(f"{key}: {write_flow(readable)}", key, notes)]


def _add_note(line: str, name: str, notes: Notes) -> str:
    return f"{line}  # {notes[name]}" if name in notes else line


def _fills_lines(field: FieldInfo) -> bool:
    return field.is_required() and _is_record(field.annotation)


def _make_readable(field: FieldInfo, value: Any) -> Any:
    """Return the value with units, in as many digits as it takes to read it back."""
    form = _find_part(field, _is_record)
    scale = _find_part(field, lambda part: isinstance(part, Scale))
    if isinstance(value, list):
        return [_make_readable(field, item) for item in value]
    if isinstance(value, Mapping) and form:
        known = [key for key in _list_keys(form) if key in value]
        return {key: _make_readable(form.model_fields[key], value[key]) for key in known}
    return write_exactly(value, scale.unit) if scale and isinstance(value, float) else value


def write_exactly(number: float, unit: str) -> str:
    """Format a quantity like `format_quantity`, but with all its digits."""
    size, prefix = next((step for step in PREFIXES if number >= step[0]), (1.0, ""))
    scaled = (Decimal(repr(number)) / Decimal(repr(size))).normalize()
    usual = number == 0 or size <= number < 1e6 * size
    return f"{scaled:f} {prefix}{unit}" if usual else f"{number!r} {unit}"


def _is_record(part: object) -> bool:
    return isinstance(part, type) and issubclass(part, Record)


def _find_part(field: FieldInfo, is_wanted: Callable[[object], bool]) -> Any:
    """Return the first matching part of a field's type; None if there is none."""
    parts = (field.annotation, *field.metadata)
    return next(
        (part for annotation in parts for part in _walk(annotation) if is_wanted(part)), None
    )


def _walk(annotation: object) -> Iterator[object]:
    yield annotation
    for part in get_args(annotation):
        yield from _walk(part)
