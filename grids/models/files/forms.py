"""Forms: the settings that a template, a word or a family takes, with their defaults.

    {stages: required, width: 64, inner: $(4 * width)}

`required` means no default; a default may be an expression of earlier settings. A list of one
mapping with a required key is the form of each item of a list.
"""

from collections.abc import Mapping
from typing import Any

from paradl.grids.models.files.expressions import fill_in
from paradl.grids.reading.errors import InputError, shorten, suggest_name
from paradl.grids.reading.yamlfile import Where

REQUIRED = "required"

Form = dict[str, Any]
Names = Mapping[str, object]


def go_below(where: Where, *keys: str | int) -> Where:
    """Return `where` for places below these keys."""
    return lambda path: where((*keys, *path))


def fill_settings(form: Form, given: object, names: Names, where: Where) -> dict[str, object]:
    """Return the given settings plus defaults; InputError for an unknown or missing setting.

    names: further names for expressions. where: turns a setting's key path into its place.
    """
    if not isinstance(given, Mapping):
        raise InputError(f"expected a mapping, got {shorten(given)}", where=where(()))
    refuse_unknown(given, form, where)
    filled: dict[str, object] = {}
    for key, default in form.items():
        filled[key] = _fill_one(key, default, given, {**names, **filled}, where)
    return filled


def _fill_one(
    key: str, form: Any, given: Mapping[str, object], names: Names, where: Where
) -> object:
    """Return one setting, given or by default."""
    if key in given:
        items = isinstance(form, list)
        return _fill_items(form, given[key], go_below(where, key)) if items else given[key]
    if is_required(form):
        raise InputError("this key is missing", where=where((key,)), page="wrong-key")
    return fill_in(form, names) if isinstance(form, str) else form


def _fill_items(form: list[Any], given: object, where: Where) -> object:
    """Return a list, whose items get defaults if the form describes them."""
    if not is_required(form):
        return given
    if not isinstance(given, list):
        raise InputError(f"expected a list, got {shorten(given)}", where=where(()))
    return [
        # Without names: defaults of an item follow from the item alone.
        fill_settings(form[0], item, {}, go_below(where, position))
        for position, item in enumerate(given)
    ]


def is_required(form: object) -> bool:
    """True if a setting has no default."""
    if isinstance(form, list) and len(form) == 1 and isinstance(form[0], dict):
        return REQUIRED in form[0].values()
    return form == REQUIRED


def refuse_unknown(given: Mapping[str, object], known: Mapping[str, object], where: Where) -> None:
    """Raise InputError for an unknown key."""
    for key in given:
        if key not in known:
            advice = suggest_name(key, known)
            raise InputError("unknown key", where=where((key,)), advice=advice, page="wrong-key")
