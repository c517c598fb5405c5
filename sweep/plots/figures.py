"""Figures: axes, title, note and legend.

matplotlib's constrained layout makes room for all of them, so that no text overlaps another.
"""

import re
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.style
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, FuncFormatter, LogLocator, NullFormatter, NullLocator

from paradl.grids.reading.textfile import PICTURES, expect_ending, write_whole
from paradl.grids.reading.units import PREFIXES
from paradl.kernels.names.arrays import Floats
from paradl.sweep.text.visible import escape_invisible

NARROW = 5  # [inch] A legend beside the axes of a narrower figure would leave them no room.
MARGIN = 0.01  # left of title and note, as a share of the width
LINE = 1.35  # line spacing, in text sizes
ROWS_AROUND = 6  # lines above and below the axes: title, ticks, label, note


class Picture(Figure):
    """A figure that a notebook shows by itself: without pyplot, which alone registers figures."""

    def _repr_png_(self) -> bytes:
        content = BytesIO()
        self.savefig(content, format="png", dpi=self.dpi)
        return content.getvalue()


def make_axes(
    title: str, note: str = "", rows: float = 0, exactly: bool = False
) -> tuple[Picture, Axes]:
    """Make a figure of the current style with an axes, a title above and a note below.

    rows: lines of text that the axes or a legend beside them hold, for which it is as high.
    exactly: no higher than rows, even if the size is.
    """
    figure = make_figure(title, note, rows, exactly)
    axes = figure.add_subplot()
    set_tick_sizes(axes)
    return figure, axes


def make_figure(title: str, note: str = "", rows: float = 0, exactly: bool = False) -> Picture:
    """Make a figure without axes; arguments as of `make_axes`."""
    width, height = mpl.rcParams["figure.figsize"]
    needed = (rows + ROWS_AROUND) * LINE * mpl.rcParams["font.size"] / 72
    figure = Picture(figsize=(width, needed if exactly else max(height, needed)))
    # matplotlib measures wrapped text as a formula even if it draws it as plain text. So dollars
    # are escaped, and parse_math is on to undo the escapes.
    style: Any = {"x": MARGIN, "ha": "left", "wrap": True, "parse_math": True}
    # The legend takes the place of the note in a narrow figure.
    lines = [title] if width > NARROW or not note else [title, note]
    figure.suptitle("\n".join(map(_keep_together, lines)), **style)
    if note and width > NARROW:
        figure.supxlabel(_keep_together(note), alpha=0.75, **style)
    return figure


def set_tick_sizes(axes: Axes) -> None:
    """Set the sizes and colours of ticks, which are made when drawn, after the style has ended."""
    small, colour = mpl.rcParams["font.size"], mpl.rcParams["text.color"]
    axes.tick_params(labelsize=small, length=0.25 * small, width=0.5, colors=colour)


def _keep_together(text: str) -> str:
    """Make the text visible; let it break between settings, not around `=` and before units."""
    return re.sub(
        r" = |(?<=\d) (?=[kMGTPmun]?(?:B|s|FLOP))",
        lambda blanks: blanks[0].replace(" ", "\N{NO-BREAK SPACE}"),
        re.sub(r",(?=[a-z])", ", ", escape_invisible(text)).replace("$", r"\$"),
    )


def add_legend(figure: Figure, handles: Sequence[Artist]) -> None:
    """Draw the legend to the right of the axes, or below those of a narrow figure."""
    width, height = figure.get_size_inches()
    if width > NARROW:
        figure.legend(handles=handles, loc="outside right center")
        return
    legend = figure.legend(handles=handles, loc="outside lower center", ncols=2)
    figure.set_size_inches(width, height + legend.get_window_extent().height / figure.dpi)


MOST_TICKS = 7  # of an axis of PE counts


def scale_counts(axes: Axes, counts: Floats, most: int = MOST_TICKS) -> None:
    """Scale the x axis for PE counts: base 2, with plain numbers at no more than `most` ticks."""
    axes.set_xscale("log", base=2)
    low, high = float(np.min(counts)), float(np.max(counts))
    first, last = int(np.ceil(np.log2(low))), int(np.floor(np.log2(high)))
    step = -(-(last - first + 1) // most)
    # Less than two powers of two: the ends.
    ticks = [2.0**power for power in range(first, last + 1) if power % step == 0]
    axes.set_xticks(ticks if last > first else sorted({low, high}))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("PEs, p")


def scale_amounts(axes: Axes, low: float, high: float) -> None:
    """Scale the y axis logarithmically, with plain numbers at its ticks."""
    axes.set_yscale("log")
    axes.set_ylim(low / 1.25, high * 1.25)
    set_ticks(axes.yaxis, low, high)


def set_ticks(axis: Axis, low: float, high: float, unit: str = "") -> None:
    """Set plain numbers at the ticks of a logarithmic axis; with a unit, prefixes."""
    axis.set_major_locator(LogLocator(subs=(1, 2, 5) if high < 100 * low else (1,)))
    plain = FuncFormatter(lambda value, _: format_tick(value))
    axis.set_major_formatter(EngFormatter(unit) if unit else plain)
    axis.set_minor_formatter(NullFormatter())


def scale_unit(axis: Axis, label: str, high: float, unit: str) -> None:
    """Label an axis, with its unit in the prefix that suits its highest value."""
    size, prefix = next(step for step in PREFIXES if high >= step[0] or step is PREFIXES[-1])
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value / size:,.6g}"))
    axis.set_label_text(f"{label} [{prefix}{unit}]")


def format_tick(value: float) -> str:
    """Write a tick's number, without an exponent where that is short."""
    return f"{value:,.7g}" if 1 <= value < 1e7 else f"{value:.3g}"


def save_figure(figure: Figure, path: Path) -> None:
    """Write the figure at once in the format of the suffix. InputError: it cannot be written."""
    # Without a suffix, matplotlib would add one.
    expect_ending(path, PICTURES)
    write_whole(lambda part: figure.savefig(part, dpi=figure.dpi), path)
