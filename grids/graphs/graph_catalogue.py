"""Look-up of graphs: by name in the catalogue, or in a user's file."""

import os
from functools import cache
from pathlib import Path

from grids.graphs.graph import Graph
from grids.graphs.graphfile import validate_plain
from grids.graphs.pipedream import read_profile
from grids.reading.yamlfile import load

CATALOGUE = Path(__file__).parents[1] / "catalogue" / "graphs"


@cache
def list_graphs() -> tuple[str, ...]:
    """Names of the graphs in the catalogue."""
    return tuple(sorted(path.stem for path in CATALOGUE.glob("*.txt")))


def find_graph(reference: str, base: Path) -> Graph | None:
    """Return the graph of a name or a path relative to `base`; None if it may be a model instead.

    A PipeDream profile ends in .txt; a user's graph in .json, .yaml or .yml. A YAML file without
    `operators` is left to the model reader. InputError: see the readers.
    """
    if reference in list_graphs():
        return _read_catalogued(reference)
    path = base / os.path.expanduser(reference)
    if path.suffix == ".txt":
        return read_profile(path)
    if path.suffix == ".json":
        return validate_plain(load(path))  # JSON is YAML, too
    if path.suffix in (".yaml", ".yml"):
        document = load(path)
        return validate_plain(document) if "operators" in document.data else None
    return None


@cache
def _read_catalogued(name: str) -> Graph:
    """Return a catalogued graph, read once per process."""
    return read_profile(CATALOGUE / f"{name}.txt")
