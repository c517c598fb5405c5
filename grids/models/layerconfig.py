"""ParaDL's layer configurations (.lc): which layers a strategy splits.

A line a layer, in the order of the model file: NAME|1, or INDEX NAME |1. The layers with 1 are
split, those with 0 run unsplit on every PE; '#' starts a comment.
"""

import re
from pathlib import Path

from grids.models.layers import LayerTable
from grids.reading.errors import InputError, shorten
from grids.reading.textfile import read_text

# Both of the authors' forms: "CONV1|1" (AlexNet, CosmoFlow) and "0 CONV_1 |1" (VGG16, ResNet-50).
LINE = re.compile(r"(?:(?P<index>[0-9]{1,9})\s+)?(?P<name>[^|\s]+)\s*\|\s*(?P<flag>[01])\s*\|?")


def read_layers(path: Path, table: LayerTable) -> tuple[bool, ...]:
    """The layers of `table` that the file splits, as flags."""
    lines = [
        (number, content)
        for number, line in enumerate(read_text(path).splitlines(), start=1)
        if (content := line.partition("#")[0].strip())
    ]
    if len(lines) != len(table):
        raise InputError(
            f"expected {len(table)} layers, as the model has, got {len(lines)}",
            where=str(path),
            advice="write one line a layer of the model",
        )
    return tuple(
        _read_flag(f"{path}:{number}", content, index, table.names[index])
        for index, (number, content) in enumerate(lines)
    )


def _read_flag(where: str, content: str, index: int, name: str) -> bool:
    """Whether the line splits its layer; InputError where the model has another one there."""
    match = LINE.fullmatch(content)
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
