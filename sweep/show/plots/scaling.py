"""Scaling drawn: a curve for each strategy to where it ends, its name at the right.

A cross ends a curve that a limit stops, the cause beside it, or below the picture where there is no
room.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from sweep.questions.pictures.scaling import Curve, Scaling
from sweep.show.plots.causes import Obstacles, write_cause
from sweep.show.plots.colours import Look, choose_looks
from sweep.show.plots.frames import (
    BEYOND,
    SCALES,
    Frame,
    Size,
    make_frame,
    scale_amounts,
    scale_counts,
    spread_heights,
)
from sweep.show.visible import escape_invisible

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from matplotlib.text import Text

UNITS = {
    "time": "time of an epoch [s]",
    "throughput": "samples a second",
    "efficiency": "parallel efficiency",
}
MOST_BANDS = 6  # more of them only hide each other
MARKS = 8  # of a curve, about: more of them are a caterpillar
SPACING = 1.1  # [em] between two names
KEY = 2.4  # [em] of a piece of the curve ahead of its name
FRAME = 6.5  # [em] above and below the axes: title, ticks, label


def draw_scaling(scaling: Scaling, size: Size = "page") -> "Figure":
    """The figure of some curves."""
    looks, em = choose_looks(scaling.known), SCALES[size].em
    names = [escape_invisible(curve.strategy) for curve in scaling.curves]
    frame = make_frame(size, max(SCALES[size].height, (len(names) * SPACING + FRAME) * em))
    above = frame.write_title(_write_title(scaling))
    right = frame.measure_words(names, frame.scale.small) + (KEY + 1.2) * em
    for curve in scaling.curves:
        _draw_curve(frame, curve, looks[curve.strategy], len(names) <= MOST_BANDS)
    _scale_axes(frame, scaling, right)
    stopped = [curve for curve in scaling.curves if is_stopped(curve)]
    # Causes without room go into the note, for which the axes then have to give way.
    for noted in ((), stopped):
        frame.settle(right, above, frame.measure_note(_write_note(scaling, noted)))
        texts = _write_causes(frame, scaling.curves, stopped)
        untold = [curve for curve in stopped if curve.strategy not in texts]
        if not untold:
            break
        if not noted:
            for text in texts.values():
                text.remove()
    _write_names(frame, scaling.curves, looks)
    frame.write_note(_write_note(scaling, untold))
    return frame.figure


def is_stopped(curve: Curve) -> bool:
    """Whether a limit ends the curve before the axis does; one PE is all that serial is."""
    return curve.cause is not None and curve.strategy != "serial"


def _write_causes(
    frame: Frame, curves: Sequence[Curve], stopped: Sequence[Curve]
) -> "dict[str, Text]":
    """The causes for which there is room, written, by strategy."""
    obstacles = Obstacles.of(frame, curves)
    texts = {curve.strategy: write_cause(frame, curve, obstacles) for curve in stopped}
    return {strategy: text for strategy, text in texts.items() if text is not None}


def _write_title(scaling: Scaling) -> str:
    banded = any(curve.low is not None for curve in scaling.curves)
    shown = len(scaling.curves) <= MOST_BANDS
    bands = "; bands: 80%" if banded and shown else ""
    return f"{scaling.place}{bands}"


def _draw_curve(frame: Frame, curve: Curve, look: Look, banded: bool) -> None:
    """Draw a curve through the points that exist, its band, a cross where it is stopped."""
    axes, scale = frame.axes, frame.scale
    if banded and curve.low is not None and curve.high is not None:
        axes.fill_between(
            curve.pe, curve.low, curve.high, color=look.colour, alpha=0.18, linewidth=0, zorder=1
        )
    axes.plot(
        curve.pe,
        curve.values,
        **look.line,
        linewidth=scale.line,
        markersize=scale.marker,
        markevery=choose_marks(curve.pe),
        label=escape_invisible(curve.strategy) or " ",
        zorder=3,
        clip_on=False,
    )
    if curve.beyond is not None and curve.beyond.any():
        axes.plot(
            curve.pe[curve.beyond],
            curve.values[curve.beyond],
            color=look.colour,
            marker=look.marker,
            markerfacecolor="white",
            linestyle="",
            markersize=scale.marker,
            markevery=choose_marks(curve.pe[curve.beyond]),
            zorder=3.5,
            clip_on=False,
        )
    if is_stopped(curve):
        axes.plot(
            curve.pe[-1],
            curve.values[-1],
            "x",
            color="black",
            markersize=1.5 * scale.marker,
            markeredgewidth=scale.line,
            zorder=4,
            clip_on=False,
        )


def choose_marks(counts: "np.ndarray[tuple[int], np.dtype[np.float64]]") -> list[int]:
    """The positions of PE counts with a marker: all of few, of many even steps of logarithms."""
    if len(counts) <= 2 * MARKS:
        return list(range(len(counts)))
    wished = np.geomspace(counts[0], counts[-1], MARKS)
    return sorted({int(np.abs(counts - each).argmin()) for each in wished})


def _scale_axes(frame: Frame, scaling: Scaling, right: float) -> None:
    """Scales, ticks and words of both axes."""
    curves, axes = scaling.curves, frame.axes
    axes.set_ylabel(UNITS[scaling.quantity], labelpad=2)
    if scaling.quantity == "efficiency":
        axes.set_ylim(0, 1.05 * max(1.0, *(_list_values(curves))))
    else:
        scale_amounts(axes, min(_list_values(curves)), max(_list_values(curves)))
    ends = [float(end) for curve in curves for end in (curve.pe[0], curve.pe[-1])]
    room = frame.scale.width - right - 4 * frame.scale.em
    scale_counts(frame, min(ends), max(ends), room)
    axes.grid(alpha=0.25, linewidth=0.5)


def _list_values(curves: Sequence[Curve]) -> list[float]:
    """All that is drawn: points, and the ends of bands."""
    bands = [curve.low for curve in curves] + [curve.high for curve in curves]
    drawn = bands if len(curves) <= MOST_BANDS else []
    values = [curve.values for curve in curves]
    return [float(value) for each in (*values, *drawn) if each is not None for value in each]


def _write_names(frame: Frame, curves: Sequence[Curve], looks: Mapping[str, Look]) -> None:
    """Write each curve's name at the right, as near to the height of its end as others allow."""
    from matplotlib.lines import Line2D

    em, figure = frame.scale.em, frame.figure
    width, height = figure.get_size_inches()
    _, low, right, high = frame.box
    ends = [frame.find_inches(curve.pe[-1], curve.values[-1])[1] for curve in curves]
    for curve, up in zip(curves, spread_heights(ends, SPACING * em, low, high), strict=True):
        look, y = looks[curve.strategy], up / height
        key = [(right + 0.5 * em) / width, (right + (0.5 + KEY) * em) / width]
        figure.add_artist(
            Line2D(
                [key[0], sum(key) / 2, key[1]],
                [y, y, y],
                **look.line,
                linewidth=frame.scale.line,
                markersize=frame.scale.marker,
                markevery=[1],
                transform=figure.transFigure,
            )
        )
        figure.text(
            key[1] + 0.3 * em / width,
            y,
            escape_invisible(curve.strategy),
            fontsize=frame.scale.small,
            va="center_baseline",
            parse_math=False,
        )


def _write_note(scaling: Scaling, untold: Sequence[Curve]) -> str:
    """What stops the curves at whose ends there is no room, and who has no curve, and why."""
    stopped = [(f"{each.strategy} at {each.pe[-1]:,.0f}", each.cause) for each in untold]
    parts = [
        *_join_by_cause([(name, cause) for name, cause in stopped if cause]),
        *(f"not drawn: {each}" for each in _join_by_cause(list(scaling.forbidden.items()))),
        *_tell_beyond(scaling.curves),
    ]
    return "; ".join(parts)


def _tell_beyond(curves: Sequence[Curve]) -> Iterator[str]:
    """From which PE count on curves are of more samples than there are, and drawn hollow."""
    beyond = [(each, each.pe[each.beyond]) for each in curves if each.beyond is not None]
    told = [f"{each.strategy} from {pe[0]:,.0f}" for each, pe in beyond if pe.size]
    if told:
        yield f"hollow, {BEYOND}: {', '.join(told)}"


def _join_by_cause(pairs: Sequence[tuple[str, str]]) -> Iterator[str]:
    """Names that share a cause, and the cause."""
    for cause in dict.fromkeys(cause for _, cause in pairs):
        yield f"{', '.join(name for name, each in pairs if each == cause)} ({cause})"
