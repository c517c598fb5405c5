"""Causes: what stops a curve, written where it ends, if there is room beside all curves."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sweep.questions.pictures.scaling import Curve
from sweep.show.plots.frames import Box, Frame

if TYPE_CHECKING:
    from matplotlib.text import Text

# Where a text may begin, from the end of its curve, the nearest first [em].
PLACES = (
    *((0.7, 0.0), (0.6, 0.8), (0.6, -0.8), (0.3, 1.3), (0.3, -1.3)),
    *((-0.7, 0.9), (-0.7, -0.9), (-0.3, 1.5), (-0.3, -1.5)),
)


@dataclass
class Obstacles:
    """What a text must not lie on: points of curves [point, 2], other texts; within `bounds`."""

    points: NDArray[np.float64]
    bounds: Box
    boxes: list[Box] = field(default_factory=list)

    @classmethod
    def of(cls, frame: Frame, curves: Sequence[Curve]) -> "Obstacles":
        """Those of curves as they are drawn in the frame."""
        points = np.concatenate([[*_trace(frame, curve)] for curve in curves])
        left, low, right, high = frame.axes.get_window_extent().extents
        return cls(points, (left, low, right, high))

    def admit(self, box: Box) -> bool:
        """Whether nothing is there."""
        left, low, right, high = box
        inside = (
            self.bounds[0] <= left
            and self.bounds[1] <= low
            and right <= self.bounds[2]
            and high <= self.bounds[3]
        )
        x, y = self.points.T
        hit = ((left <= x) & (x <= right) & (low <= y) & (y <= high)).any()
        return inside and not hit and not any(_overlap(box, other) for other in self.boxes)


def _trace(frame: Frame, curve: Curve) -> Iterator[NDArray[np.float64]]:
    """Points along a curve, a pixel or two apart."""
    ends = frame.axes.transData.transform(np.column_stack([curve.pe, curve.values]))
    yield from ends
    for start, end in pairwise(ends):
        steps = int(np.abs(end - start).max() / 2) + 1
        yield from start + (end - start) * np.linspace(0, 1, steps)[:, None]


def _overlap(box: Box, other: Box) -> bool:
    return box[0] <= other[2] and other[0] <= box[2] and box[1] <= other[3] and other[1] <= box[3]


def write_cause(frame: Frame, curve: Curve, obstacles: Obstacles) -> "Text | None":
    """What stops a curve, written beside its end; None: there is no room."""
    size = frame.scale.small * 0.9
    em = size * 1.25
    for across, up in PLACES:
        text = frame.axes.annotate(
            curve.cause or "",
            (curve.pe[-1], curve.values[-1]),
            (across * em, up * em),
            textcoords="offset points",
            ha="left" if across > 0 else "right",
            va="center",
            fontsize=size,
            color="0.2",
            zorder=5,
        )
        left, low, right, high = frame.find_box(text)
        # Markers are wider than the curves that they are on.
        pad = 0.5 * frame.scale.marker * frame.figure.dpi / 72
        if obstacles.admit((left, low - pad, right + pad, high + pad)):
            obstacles.boxes.append((left, low, right, high))
            return text
        text.remove()
    return None
