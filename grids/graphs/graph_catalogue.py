"""Finding graphs: by a catalogue name, or in a file of the user's."""

import os
from functools import cache
from pathlib import Path

from grids.graphs.graph import Graph
from grids.graphs.graphfile import read_plain, validate_plain
from grids.graphs.pipedream import read_profile
from grids.reading.yamlfile import load

CATALOGUE = Path(__file__).parents[1] / "catalogue" / "graphs"


@cache
def list_graphs() -> tuple[str, ...]:
    """The names of the catalogue's graphs."""
    return tuple(sorted(path.stem for path in CATALOGUE.glob("*.txt")))


def find_graph(reference: str, base: Path) -> Graph | None:
    """The graph of a name, or of a path relative to `base`; None where it may be a model's.

    A profile of PipeDream ends in .txt, a graph of the user's own in .json, .yaml or .yml; a YAML
    file without operators is left to who reads models. InputError: see the readers.
    """
    if reference in list_graphs():
        return _read_catalogued(reference)
    path = base / os.path.expanduser(reference)
    if path.suffix == ".txt":
        return read_profile(path)
    if path.suffix == ".json":
        return read_plain(path)
    if path.suffix in (".yaml", ".yml"):
        document = load(path)
        return validate_plain(document) if "operators" in document.data else None
    return None


@cache
def _read_catalogued(name: str) -> Graph:
    """The graph of a name, read once a process."""
    return read_profile(CATALOGUE / f"{name}.txt")
