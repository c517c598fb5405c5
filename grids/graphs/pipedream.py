"""PipeDream's profiles: operators that were measured one by one, and their graph.

The profiler of Narayanan et al., PipeDream, SOSP 2019 (github.com/msr-fiddle/pipedream) writes one
line per operator, with times in ms and sizes in bytes, and then one line per edge:

    node2 -- Conv2d(3, 64) -- forward_compute_time=1.5, backward_compute_time=3.0,
        activation_size=51380224.0, parameter_size=7168.0
    \tnode2 -- node3

Comment lines ("# batch: 128", "# source: ...", "# title: ...") are our addition.
"""

import math
import re
from collections.abc import Sequence
from pathlib import Path

from paradl.grids.graphs.graph import Graph, NamedTensor, Operator, link_operators
from paradl.grids.reading.errors import InputError, shorten
from paradl.grids.reading.textfile import read_text

FIELDS = ("forward_compute_time", "backward_compute_time", "activation_size", "parameter_size")
OPERATOR = re.compile(r"(?P<id>\S+) -- (?P<what>.*) -- (?P<fields>forward_compute_time=.*)")
EDGE = re.compile(r"\s+(?P<maker>\S+) -- (?P<taker>\S+)\s*")
NOTE = re.compile(r"#\s*(?P<key>batch|source|title):\s*(?P<value>.*\S)\s*")

MILLISECOND = 1e-3

# Nodes for the network's input: their time is data loading, which hosts do beside the step.
INPUT = "Input"
# Operators that return a view of an existing tensor.
VIEWS = ("View", "Size", "__getitem__")


def read_profile(path: Path) -> Graph:
    """Read the graph of a PipeDream profile; InputError: a line that does not belong in one.

    Input nodes are left out. An operator's output is kept for the backward pass, unless it works in
    place or makes a view: that memory is counted with the maker.
    """
    operators: dict[str, tuple[Operator, float]] = {}
    edges: list[tuple[str, str, str]] = []
    notes: dict[str, str] = {}
    inputs: set[str] = set()
    for number, line in enumerate(read_text(path).splitlines(), start=1):
        where = f"{path}:{number}"
        if note := NOTE.fullmatch(line):
            notes[note["key"]] = note["value"]
        elif match := OPERATOR.fullmatch(line):
            identity, what = match["id"], match["what"]
            if identity in operators or identity in inputs:
                raise InputError(f"a second operator {shorten(identity)}", where=where)
            if what.startswith(INPUT):
                inputs.add(identity)
            else:
                operators[identity] = _read_operator(identity, what, match["fields"], where)
        elif match := EDGE.fullmatch(line):
            edges.append((match["maker"], match["taker"], where))
        elif line.strip() and not line.startswith("#"):
            raise InputError(
                f"expected an operator or an edge of a PipeDream profile, got {shorten(line)}",
                where=where,
                advice="write 'node1 -- what -- forward_compute_time=..., ...' or a tab and "
                "'node1 -- node2'",
            )
    names = {identity: operator.name for identity, (operator, _) in operators.items()}
    sizes = {identity: size for identity, (_, size) in operators.items()}
    return link_operators(
        path.stem,
        [operator for operator, _ in operators.values()],
        _gather_tensors([edge for edge in edges if edge[0] not in inputs], names, sizes),
        where=str(path),
        batch=_read_batch(notes.get("batch"), str(path)),
        title=notes.get("title", ""),
        source=(notes["source"],) if "source" in notes else (),
    )


def _read_operator(identity: str, what: str, fields: str, where: str) -> tuple[Operator, float]:
    """Return the operator, and the bytes of its output."""
    # Lists such as [1.0; 2.0] contain no commas, so fields are split before `name=`.
    parts = re.split(r",\s*(?=\w+=)", fields)
    values = dict(part.split("=", 1) for part in parts if "=" in part)
    missing = [field for field in FIELDS if field not in values]
    if missing or len(values) > len(FIELDS):
        raise InputError(
            f"expected {', '.join(FIELDS)}, got {shorten(', '.join(values))}", where=where
        )
    forward, backward, size, weights = (_add_numbers(key, values[key], where) for key in FIELDS)
    # In place, or a view: the memory is the maker's.
    held = "inplace" in what or what.startswith(VIEWS)
    operator = Operator(
        # Without the layer's settings, which PyTorch writes in parentheses.
        f"{identity} {what.partition('(')[0].strip()}",
        forward=forward * MILLISECOND,
        backward=backward * MILLISECOND,
        weights=weights,
        kept=0.0 if held else size,
    )
    return operator, size


def _add_numbers(key: str, text: str, where: str) -> float:
    """Parse a number, or the sum of several: `[1.0; 2.0]` if an operator has several outputs."""
    try:
        numbers = [float(number) for number in text.strip("[]").split(";")]
    except ValueError:
        numbers = [math.nan]
    if not all(math.isfinite(number) and number >= 0 for number in numbers):
        raise InputError(f"{key}: expected a number, at least 0, got {shorten(text)}", where=where)
    return math.fsum(numbers)


def _read_batch(text: str | None, where: str) -> int | None:
    """Parse the samples of a step, if the file states them."""
    if text is None:
        return None
    # Python converts no more than 4,300 digits, and float64 counts exactly up to 15.
    if not re.fullmatch("[0-9]{1,15}", text) or not int(text):
        raise InputError(f"batch: expected a whole number, got {shorten(text)}", where=where)
    return int(text)


def _gather_tensors(
    edges: Sequence[tuple[str, str, str]], names: dict[str, str], sizes: dict[str, float]
) -> list[NamedTensor]:
    """Merge edges into one tensor per operator."""
    # A file has an edge per taker, but two takers on one device get the tensor in one message.
    takers: dict[str, list[str]] = {}
    places: dict[str, str] = {}
    for maker, taker, where in edges:
        for end in (maker, taker):
            if end not in names:
                raise InputError(
                    f"an edge of {shorten(end)}, which is no operator of the file", where=where
                )
        takers.setdefault(maker, []).append(names[taker])
        places.setdefault(maker, where)
    return [
        NamedTensor(names[maker], tuple(readers), sizes[maker], places[maker])
        for maker, readers in takers.items()
    ]
