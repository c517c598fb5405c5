"""Place: where a store is, as its user named it."""

from pathlib import Path

from grids.errors import InputError


def expect_place(store: object) -> str:
    """The place of a store as text. InputError: it is none, such as None or an empty text."""
    if isinstance(store, str | Path) and str(store).strip():
        return str(store)
    raise InputError(
        f"expected a folder or an object-store URL, got {store!r}",
        where="store",
        advice="name one, such as cube.zarr",
    )
