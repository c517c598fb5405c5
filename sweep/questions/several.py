"""Several values in the place of one."""

from collections.abc import Mapping


def has_several(value: object) -> bool:
    """Whether a value is several: a list, a range, an array, or a generator as specs have them."""
    return not isinstance(value, str | bytes | int | float | None) and (
        isinstance(value, Mapping) or hasattr(value, "__iter__")
    )
