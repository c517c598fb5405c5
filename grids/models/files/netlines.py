"""Lines of the ParaDL authors' files: networks (.net) and the layers to split (.lc).

    NAME|x|w|y|seconds          a layer of a network (grids/models/files/netfile.py)
    NAME|1, INDEX NAME |1       a layer that a strategy splits; 0: every PE runs it whole

Lines of a .lc file are in the order of the network's layers. '#' starts a comment.
"""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from grids.entries.entry import MOST_NAME
from grids.entries.quantity import SECONDS
from grids.models.kinds import KIND_OF_PREFIX, LayerKind, Sizes
from grids.reading.errors import InputError, shorten, suggest_name
from grids.reading.textfile import read_text

HEADERS = ("Dataset", "Input", "Model")
FIELDS = 5  # NAME|x|w|y|seconds

# At most nine digits: a larger extent is a typo.
SIZES = re.compile(r" *[0-9]{1,9} *(?:x *[0-9]{1,9} *)*")

# The authors write "CONV1|1" (AlexNet, CosmoFlow) and "0 CONV_1 |1" (VGG16, ResNet-50).
SPLIT = re.compile(r"(?:(?P<index>[0-9]{1,9})\s+)?(?P<name>[^|\s]+)\s*\|\s*(?P<flag>[01])\s*\|?")


@dataclass(frozen=True)
class LayerLine:
    """A parsed line of a layer."""

    where: str
    name: str
    kind: LayerKind
    x: Sizes
    w: Sizes
    y: Sizes
    seconds: float

    @property
    def weights(self) -> int:
        """|w|, the product of the line's sizes."""
        return math.prod(self.w)

    @property
    def kernel(self) -> Sizes:
        """K of sliding layers; for others, 1 per dimension."""
        return self.w[2:] if self.kind.windowed else tuple(1 for _ in self.w[2:])


def list_lines(text: str, where: str) -> Iterator[tuple[str, str]]:
    """Yield non-empty lines without comments, each with its place."""
    for number, line in enumerate(text.splitlines(), start=1):
        content = line.partition("#")[0].strip()  # comments also follow fields: "|0# FC|0"
        if content:
            yield f"{where}:{number}", content


def split_fields(line: str) -> list[str]:
    """Split a line of a .net file into its fields."""
    # Anything beyond the last field stays in one piece: a line may have a million bars.
    return [field.strip() for field in line.split("|", FIELDS)]


def read_header(rows: list[tuple[str, list[str]]], where: str) -> tuple[str, int, Sizes]:
    """Return the data set's name (may be empty), its number of samples, and a sample's shape."""
    header: dict[str, tuple[str, list[str]]] = {}
    for at, (word, *fields) in rows:
        if word in header:
            raise InputError(f"repeated line {word!r}", where=at, advice="keep one")
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
    # Names may contain bars. "Model" is ignored: the label is the file's name.
    _, names = header.get("Dataset", (where, []))
    return "|".join(names), samples, tuple(shape)


def read_line(where: str, fields: list[str], rank: int) -> LayerLine:
    """Parse the fields of a layer; `rank` is the number of spatial dimensions."""
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
        # Poolings have 0x0xK, and a ReLU has zero extents.
        w=_read_sizes(where, "w", w, least=0, count=2 + rank),
        y=_read_sizes(where, "y", y, least=1, count=1 + rank),
        seconds=_read_seconds(where, seconds),
    )


def _read_kind(where: str, name: str) -> LayerKind:
    """Return the kind whose prefix the name begins with."""
    upper = name.upper()
    # No prefix is the beginning of another, so at most one matches.
    kinds = (kind for prefix, kind in KIND_OF_PREFIX.items() if upper.startswith(prefix))
    kind = next(kinds, None)
    if kind is None or len(name) > MOST_NAME:
        raise InputError(
            f"unknown kind of layer {shorten(name)}",
            where=where,
            advice=f"start the name with its kind; {suggest_name(upper, KIND_OF_PREFIX)}",
        )
    return kind


def _read_sizes(where: str, what: str, text: str, *, least: int, count: int | None = None) -> Sizes:
    """Parse sizes such as `3x226x226`: `count` numbers, none below `least`."""
    sizes = tuple(int(part) for part in text.split("x")) if SIZES.fullmatch(text) else ()
    if not sizes or min(sizes) < least or count not in (None, len(sizes)):
        numbers = "whole numbers" if count is None else f"{count} whole numbers"
        raise InputError(
            f"{what}: expected {numbers} joined by 'x', got {shorten(text)}", where=where
        )
    return sizes


def _read_seconds(where: str, text: str) -> float:
    """Parse seconds per sample; 0 means not measured."""
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    # NaN, inf and 1e308 fail the comparison.
    if not (seconds == 0 or SECONDS.low <= seconds <= SECONDS.high):
        raise InputError(f"expected seconds per sample, got {shorten(text)}", where=where)
    return seconds


def read_layers(path: Path, names: Sequence[str]) -> tuple[bool, ...]:
    """Read from a .lc file which layers are split; names: the network's layers."""
    lines = list(list_lines(read_text(path), str(path)))
    if len(lines) != len(names):
        raise InputError(
            f"expected {len(names)} layers, one per layer of the model, got {len(lines)}",
            where=str(path),
            advice="write one line per layer of the model",
        )
    return tuple(
        _read_flag(where, content, index, names[index])
        for index, (where, content) in enumerate(lines)
    )


def _read_flag(where: str, content: str, index: int, name: str) -> bool:
    """Return whether the line splits its layer; InputError if it names another layer."""
    match = SPLIT.fullmatch(content)
    if match is None:
        raise InputError(
            f"expected NAME|1 or NAME|0, got {shorten(content)}",
            where=where,
            advice="1 splits the layer",
        )
    # Indices count from 0, unlike lines. Names repeat (RELU), so a missing line shows at the next.
    if match["name"].casefold() != name.casefold() or int(match["index"] or index) != index:
        raise InputError(
            f"expected layer {index}, {shorten(name)}, got {shorten(content)}",
            where=where,
            advice="list the layers in the order of the model",
        )
    return match["flag"] == "1"
