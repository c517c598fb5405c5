"""Look-up of graphs by name or file, and users' own graphs in YAML or JSON:

    operators: {stem: {forward: 1 ms, backward: 2 ms, weights: 4 MB, kept: 8 MB}, ...}
    tensors: [{maker: stem, takers: [left, right], bytes: 8 MB}, ...]   # each once

Numbers without a unit are seconds and bytes; a time of more than a second needs its unit.

To add a format: a reader grids/graphs/NAME.py that ends in `link_operators` (it checks names,
duplicates and cycles), and its ending in `find_graph` here. Test: tests/grids/graphs/test_NAME.py,
a toy by hand.
"""

import os
from functools import cache
from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator, Field

from paradl.grids.entries.entry import Count, Entry, Name, Record, Texts, take_quantity
from paradl.grids.entries.names import CATALOGUE
from paradl.grids.entries.quantity import Scale
from paradl.grids.graphs.graph import Graph, NamedTensor, Operator, link_operators
from paradl.grids.reading.yamlfile import Document, load, validate

GRAPHS = CATALOGUE / "graphs"
# 25 without a unit is taken for milliseconds, and refused.
TIME = Scale("time of an operator", "s", 0, 1, "ms")
Seconds = Annotated[float, TIME, BeforeValidator(TIME.read), Field(ge=0.0)]
Bytes = Annotated[float, Field(ge=0.0), take_quantity("B")]


class PlainOperator(Record):
    """An operator's times and memory; its key is its name.

    forward, backward: seconds of a pass. weights: bytes. kept: bytes until the backward pass.
    """

    forward: Seconds
    backward: Seconds
    weights: Bytes = 0.0
    kept: Bytes = 0.0


class PlainTensor(Record):
    """A tensor between operators.

    maker: the operator it is of. takers: those that read it. bytes: its size.
    """

    maker: Name
    takers: Annotated[Texts, Field(min_length=1)]
    bytes: Bytes


class PlainGraph(Entry):
    """A graph as written in its file.

    batch: samples of its times. operators: by name. tensors: between them.
    """

    batch: Count | None = None
    operators: Annotated[dict[Name, PlainOperator], Field(min_length=1)]
    tensors: tuple[PlainTensor, ...] = ()


def link_plain(document: Document) -> Graph:
    """Return the graph that a document holds; InputError: what is wrong with it."""
    plain = validate(PlainGraph, document.data, document)
    return link_operators(
        plain.name,
        [Operator(name, **operator.model_dump()) for name, operator in plain.operators.items()],
        [
            NamedTensor(
                tensor.maker, tensor.takers, tensor.bytes, document.where(("tensors", position))
            )
            for position, tensor in enumerate(plain.tensors)
        ],
        where=str(document.path),
        batch=plain.batch,
        title=plain.title,
        source=plain.source,
    )


@cache
def list_graphs() -> tuple[str, ...]:
    """Names of the graphs in the catalogue."""
    return tuple(sorted(path.stem for path in GRAPHS.glob("*.yaml")))


def find_graph(reference: str, base: Path) -> Graph | None:
    """Return the graph of a name or a path relative to `base`; None if it may be a model instead.

    A graph ends in .json, .yaml or .yml. A YAML file without `operators`, and a config.json of
    Hugging Face, are left to the model reader. InputError: see `link_operators`.
    """
    if reference in list_graphs():
        return _read_catalogued(reference)
    path = base / os.path.expanduser(reference)
    if path.suffix not in (".json", ".yaml", ".yml"):
        return None
    document = load(path)
    # In JSON, what is no config.json is a graph; in YAML it may be a model.
    is_json, keys = path.suffix == ".json", document.data.keys()
    is_model = "model_type" in keys if is_json else "operators" not in keys
    return None if is_model else link_plain(document)


@cache
def _read_catalogued(name: str) -> Graph:
    return link_plain(load(GRAPHS / f"{name}.yaml"))
