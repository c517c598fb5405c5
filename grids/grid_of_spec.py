"""The design space of a spec, be it a file or a mapping."""

from collections.abc import Mapping
from pathlib import Path

from grids.grid import Grid
from grids.reading.errors import InputError, shorten
from grids.spec import read_spec, validate_spec

Source = str | Path | Mapping[str, object]


def read_grid(spec: Source) -> Grid:
    """The design space of a spec file or mapping."""
    if isinstance(spec, Mapping):
        return Grid.from_spec(validate_spec(dict(spec), "spec"))
    if not isinstance(spec, str | Path):
        raise InputError(f"expected a YAML file or a mapping, got {shorten(spec)}", where="spec")
    path = Path(spec)
    checked, document = read_spec(path)
    return Grid.from_spec(checked, path.parent, document.where)
