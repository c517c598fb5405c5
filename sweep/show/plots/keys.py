"""Keys: patches with names in a column at the right of the axes, over no data."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sweep.show.plots.frames import Frame, spread_heights
from sweep.show.visible import escape_invisible

SPACING = 1.3  # [em]


@dataclass(frozen=True)
class Key:
    """A name, and what matplotlib's patches take to look like what it names."""

    name: str
    style: Mapping[str, Any]


def write_keys(frame: Frame, keys: Sequence[Key], heights: Sequence[float] = ()) -> None:
    """Write keys in a column beside the axes: at heights [inch], else from the top down."""
    from matplotlib.patches import Rectangle

    em, figure = frame.scale.em, frame.figure
    width, height = figure.get_size_inches()
    _, low, right, high = frame.box
    wished = heights or [high - SPACING * em * (number + 0.5) for number in range(len(keys))]
    for key, up in zip(keys, spread_heights(wished, SPACING * em, low, high), strict=True):
        corner = ((right + 0.5 * em) / width, (up - 0.4 * em) / height)
        box = Rectangle(
            corner, em / width, 0.8 * em / height, transform=figure.transFigure, **key.style
        )
        figure.add_artist(box)
        figure.text(
            (right + 1.9 * em) / width,
            up / height,
            escape_invisible(key.name),
            fontsize=frame.scale.small,
            va="center_baseline",
            parse_math=False,
        )
