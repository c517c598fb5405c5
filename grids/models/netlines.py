"""Lines of ParaDL's files: headers and layers of networks (.net), and which layers are split (.lc).

    NAME|x|w|y|seconds          a layer of a network (grids/models/netfile.py)
    NAME|1, INDEX NAME |1       a layer that a strategy splits; 0: every PE runs it whole

The lines of a .lc file stand in the order of the network's layers. '#' starts a comment.
"""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from grids.entries.entry import MOST_NAME
from grids.entries.parameters import SECONDS
from grids.models.kinds import KIND_OF_PREFIX, LayerKind, Sizes
from grids.reading.errors import InputError, shorten, suggest_name
from grids.reading.textfile import read_text

HEADERS = ("Dataset", "Input", "Model")
FIELDS = 5  # NAME|x|w|y|seconds

# Nine digits a size: an extent beyond that is a slip of the pen, not a tensor.
SIZES = re.compile(r" *[0-9]{1,9} *(?:x *[0-9]{1,9} *)*")

# Both of the authors' forms: "CONV1|1" (AlexNet, CosmoFlow) and "0 CONV_1 |1" (VGG16, ResNet-50).
SPLIT = re.compile(r"(?:(?P<index>[0-9]{1,9})\s+)?(?P<name>[^|\s]+)\s*\|\s*(?P<flag>[01])\s*\|?")


@dataclass(frozen=True)
class LayerLine:
    """A line of a layer, read but not yet judged."""

    where: str
    name: str
    kind: LayerKind
    x: Sizes
    w: Sizes
    y: Sizes
    seconds: float

    @property
    def weights(self) -> int:
        """|w|, as the line has them."""
        return math.prod(self.w)

    @property
    def kernel(self) -> Sizes:
        """K, of what slides over the input; of anything else, 1 a dimension."""
        return self.w[2:] if self.kind.windowed else tuple(1 for _ in self.w[2:])


def list_lines(text: str, where: str) -> Iterator[tuple[str, str]]:
    """The lines that are not empty, without comments, with their places."""
    for number, line in enumerate(text.splitlines(), start=1):
        content = line.partition("#")[0].strip()  # also behind fields: "|0# Fully connected|0"
        if content:
            yield f"{where}:{number}", content


def split_fields(line: str) -> list[str]:
    """The fields of a line of a .net file."""
    # The rest behind the fields stays in one piece: it may be a million bars.
    return [field.strip() for field in line.split("|", FIELDS)]


def read_header(rows: list[tuple[str, list[str]]], where: str) -> tuple[str, int, Sizes]:
    """The data set's name, or none, its number of samples, and the shape of one."""
    header: dict[str, tuple[str, list[str]]] = {}
    for at, (word, *fields) in rows:
        if word in header:
            raise InputError(f"the line {word!r} stands twice", where=at, advice="keep one")
        if word in HEADERS:
            header[word] = (at, fields)
    if "Input" not in header:
        raise InputError(
            "no 'Input' line", where=where, advice="write one like Input|1280000x3x226x226"
        )
    at, fields = header["Input"]
    samples, *shape = _read_sizes(at, "Input", "|".join(fields), least=1)
    if len(shape) not in (3, 4):
        raise InputError(
            f"expected samples x C x 2 or 3 extents, got {shorten('|'.join(fields))}", where=at
        )
    # A name may have bars of its own. "Model" is not read: the file's name is the label.
    _, names = header.get("Dataset", (where, []))
    return "|".join(names), samples, tuple(shape)


def read_line(where: str, fields: list[str], rank: int) -> LayerLine:
    """The layer that the fields describe; `rank` is the number of its spatial dimensions."""
    if len(fields) < FIELDS or any(field.strip("| ") for field in fields[FIELDS:]):
        raise InputError(
            f"expected NAME|x|w|y|seconds, got {shorten('|'.join(fields))}",
            where=where,
            advice="separate five fields by '|'",
        )
    name, x, w, y, seconds = fields[:FIELDS]
    return LayerLine(
        where=where,
        name=name,
        kind=_read_kind(where, name),
        x=_read_sizes(where, "x", x, least=1, count=1 + rank),
        # Poolings have 0x0xK, and a ReLU CxF with extents of 0.
        w=_read_sizes(where, "w", w, least=0, count=2 + rank),
        y=_read_sizes(where, "y", y, least=1, count=1 + rank),
        seconds=_read_seconds(where, seconds),
    )


def _read_kind(where: str, name: str) -> LayerKind:
    """The kind with which a layer's name begins."""
    upper = name.upper()
    # No prefix begins another one: the first is the only one.
    kinds = (kind for prefix, kind in KIND_OF_PREFIX.items() if upper.startswith(prefix))
    kind = next(kinds, None)
    if kind is None or len(name) > MOST_NAME:
        raise InputError(
            f"unknown kind of layer {shorten(name)}",
            where=where,
            advice=f"a name begins with its kind; {suggest_name(upper, KIND_OF_PREFIX)}",
        )
    return kind


def _read_sizes(where: str, what: str, text: str, *, least: int, count: int | None = None) -> Sizes:
    """The sizes of `3x226x226`, `count` of them, none below `least`."""
    sizes = tuple(int(part) for part in text.split("x")) if SIZES.fullmatch(text) else ()
    if not sizes or min(sizes) < least or count not in (None, len(sizes)):
        numbers = "whole numbers" if count is None else f"{count} whole numbers"
        raise InputError(
            f"{what}: expected {numbers} joined by 'x', got {shorten(text)}", where=where
        )
    return sizes


def _read_seconds(where: str, text: str) -> float:
    """Seconds a sample; 0 where they were not measured."""
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    # NaN lies within no bounds, nor do inf and 1e308.
    if not (seconds == 0 or SECONDS.low <= seconds <= SECONDS.high):
        raise InputError(f"expected seconds a sample, got {shorten(text)}", where=where)
    return seconds


def read_layers(path: Path, names: Sequence[str]) -> tuple[bool, ...]:
    """The layers that a .lc file splits, as flags; names: of the network's layers."""
    lines = list(list_lines(read_text(path), str(path)))
    if len(lines) != len(names):
        raise InputError(
            f"expected {len(names)} layers, as the model has, got {len(lines)}",
            where=str(path),
            advice="write one line a layer of the model",
        )
    return tuple(
        _read_flag(where, content, index, names[index])
        for index, (where, content) in enumerate(lines)
    )


def _read_flag(where: str, content: str, index: int, name: str) -> bool:
    """True if the line splits its layer; InputError where the model has another one there."""
    match = SPLIT.fullmatch(content)
    if match is None:
        raise InputError(
            f"expected NAME|1 or NAME|0, got {shorten(content)}",
            where=where,
            advice="1 splits the layer",
        )
    # Counted from 0, unlike lines. Names repeat (RELU), so that a lost line shows in the next name.
    if match["name"].casefold() != name.casefold() or int(match["index"] or index) != index:
        raise InputError(
            f"expected layer {index}, {shorten(name)}, got {shorten(content)}",
            where=where,
            advice="list the layers in the order of the model",
        )
    return match["flag"] == "1"
