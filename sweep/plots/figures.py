"""Figures: sizes for paper, page and slide; style, axes, title, note and legend.

matplotlib's constrained layout makes room for all of them, so that no text overlaps another.
"""

import re
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import matplotlib as mpl
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.container import Container
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator

from grids.models.layers import Floats
from grids.reading.errors import InputError, shorten, suggest_name
from sweep.show.visible import escape_invisible

Size = Literal["paper", "page", "slide"]
SIZES = get_args(Size)


@dataclass(frozen=True)
class FigureSize:
    """Width and height [inch]; text, lines and markers [pt]; dots per inch of a PNG."""

    width: float
    height: float
    small: float
    normal: float
    line: float
    marker: float
    dots: int = 150

    def measure_rows(self, rows: float) -> float:
        """Return the height [inch] of a figure whose axes hold `rows` lines of small text."""
        return (rows + ROWS_AROUND) * LINE * self.small / 72


# A column of a two-column paper; the width of a page; a slide that the last row can read.
SCALES: dict[str, FigureSize] = {
    "paper": FigureSize(3.3, 2.5, 6, 7, 1.0, 2.6, 300),
    "page": FigureSize(6.6, 4.2, 8, 9, 1.4, 4.0),
    "slide": FigureSize(10.0, 5.6, 13, 15, 2.2, 7.0),
}
MARGIN = 0.01  # left of title and note, as a share of the width
LINE = 1.35  # line spacing, in text sizes
ROWS_AROUND = 6  # lines above and below the axes: title, ticks, label, note


def use_style(size: Size) -> AbstractContextManager[None]:
    """Return a context that sets up matplotlib for a size. InputError: an unknown size."""
    if size not in SCALES:
        raise InputError(
            f"unknown size {shorten(size)}", where="size", advice=suggest_name(str(size), SIZES)
        )
    scale = SCALES[size]
    return mpl.rc_context(
        {
            "figure.dpi": scale.dots,
            "figure.constrained_layout.use": True,
            "figure.titlesize": scale.normal,
            "figure.labelsize": scale.small,
            "font.size": scale.small,
            "axes.titlesize": scale.normal,
            "axes.labelsize": scale.small,
            "axes.labelpad": 2,
            "axes.linewidth": 0.6,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "grid.alpha": 0.25,
            "grid.linewidth": 0.5,
            "hatch.linewidth": 0.5,
            "legend.fontsize": scale.small,
            "legend.frameon": False,
            "lines.linewidth": scale.line,
            "lines.markersize": scale.marker,
            # A dollar in a name is no formula.
            "text.parse_math": False,
        }
    )


def make_axes(
    size: Size, title: str, note: str = "", height: float = 0, width: float = 0
) -> tuple[Figure, Axes]:
    """Make a figure with a single axes, a title above and a note below, within `use_style`.

    height, width: of the figure [inch]; 0: as the size says.
    """
    scale = SCALES[size]
    figure = Figure(figsize=(width or scale.width, height or scale.height))
    # matplotlib measures wrapped text as a formula even if it draws it as plain text. So dollars
    # are escaped, and parse_math is on to undo the escapes.
    style: dict[str, Any] = {"x": MARGIN, "ha": "left", "wrap": True, "parse_math": True}
    figure.suptitle(_keep_together(title), **style)
    if note:
        figure.supxlabel(_keep_together(note), color="0.25", **style)
    axes = figure.add_subplot()
    set_tick_sizes(axes, size)
    return figure, axes


def set_tick_sizes(axes: Axes, size: Size) -> None:
    """Set the sizes of ticks."""
    # Ticks are created when drawn, which is after `use_style` has ended.
    small = SCALES[size].small
    axes.tick_params(labelsize=small, length=0.25 * small, width=0.5)


def _keep_together(text: str) -> str:
    """Make the text visible, and keep it from breaking around `=` and before units."""
    return re.sub(
        r" = |(?<=\d) (?=[kMGTPmun]?(?:B|s|FLOP))",
        lambda blanks: blanks[0].replace(" ", "\N{NO-BREAK SPACE}"),
        escape_invisible(text).replace("$", r"\$"),
    )


def add_legend(figure: Figure, handles: Sequence[Artist | Container]) -> None:
    """Draw the legend to the right of the axes."""
    figure.legend(handles=handles, loc="outside right center")


def scale_counts(axes: Axes, counts: Floats) -> None:
    """Scale the x axis for PE counts: base 2, with plain numbers at its ticks."""
    axes.set_xscale("log", base=2)
    low, high = float(np.min(counts)), float(np.max(counts))
    if np.floor(np.log2(high)) > np.ceil(np.log2(low)):
        axes.xaxis.set_major_locator(LogLocator(base=2))
    else:  # the range has fewer than two powers of two
        axes.set_xticks(sorted({low, high}))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("PEs, p")


def scale_amounts(axes: Axes, low: float, high: float) -> None:
    """Scale the y axis logarithmically, with plain numbers at its ticks."""
    axes.set_yscale("log")
    axes.set_ylim(low / 1.25, high * 1.25)
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if high < 100 * low else (1,)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: format_tick(value)))
    axes.yaxis.set_minor_formatter(NullFormatter())


def format_tick(value: float) -> str:
    """Write a tick's number, without an exponent where that is short."""
    return f"{value:,.0f}" if 1 <= value < 1e7 else f"{value:.3g}"


# matplotlib has others, which are neither lossless nor sharp at every size.
FORMATS = (".png", ".svg", ".pdf")


def expect_format(path: Path) -> None:
    """Check that the suffix names a format. InputError: it does not."""
    # Without a suffix, matplotlib would add one.
    if path.suffix.lower() not in FORMATS:
        got = f"got {path.suffix!r}" if path.suffix else "got none"
        raise InputError(
            f"expected a file that ends in {', '.join(FORMATS)}, {got}",
            where=str(path),
            advice=f"write it like {path.stem}.png",
        )


def save_figure(figure: Figure, path: Path) -> None:
    """Write the figure in the format of the suffix. InputError: it cannot be written."""
    expect_format(path)
    try:
        figure.savefig(path, dpi=figure.dpi)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise InputError(
            f"cannot write the picture: {reason}", where=str(path), advice="choose another path"
        ) from None
