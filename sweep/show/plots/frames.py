"""Frames: the sizes people see pictures at, axes with room for their labels, and what p looks like.

Nothing overlaps data: names stand outside, in room that is measured, not guessed.
"""

import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from sweep.show.plots.figures import make_figure
from sweep.show.visible import escape_invisible

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.text import Text

Box = tuple[float, float, float, float]
Size = Literal["paper", "page", "slide"]
SIZES = get_args(Size)


# What a note says of a global batch that is larger than the data set.
BEYOND = "the global batch is larger than the data set"


@dataclass(frozen=True)
class Scale:
    """Inches and points of a size. dots: an inch, of PNG."""

    width: float
    height: float
    small: float
    normal: float
    line: float
    marker: float
    dots: int = 150

    @property
    def em(self) -> float:
        """Inches of a line of small text."""
        return self.small * 1.25 / 72


# A column of a two-column paper; the width of a page; a slide, seen from the last row.
SCALES: dict[Size, Scale] = {
    "paper": Scale(3.3, 2.5, 6, 7, 1.0, 2.6, 300),
    "page": Scale(6.6, 4.2, 8, 9, 1.4, 4.0),
    "slide": Scale(10.0, 5.6, 13, 15, 2.2, 7.0),
}
GAP = 0.5  # [em] between a curve's end and its name


@dataclass
class Frame:
    """A figure with one pair of axes, whose margins [inch] are settled as labels are known."""

    figure: "Figure"
    axes: "Axes"
    scale: Scale

    def settle(self, right: float, above: float, below: float) -> None:
        """Give the axes what is left of the figure [inch]; their own labels are measured."""
        width, height = self.figure.get_size_inches()
        pad = 0.35 * self.scale.em
        # Twice: how many ticks there are depends on the room, and how wide they are on the ticks.
        for _ in range(2):
            renderer, box = _find_renderer(self.figure), self.axes.get_window_extent()
            beside = self.axes.yaxis.get_tightbbox(renderer)
            under = self.axes.xaxis.get_tightbbox(renderer)
            assert beside is not None, "drawn"
            assert under is not None, "drawn"
            left = (box.x0 - beside.x0) / self.figure.dpi + pad
            bottom = below + (box.y0 - under.y0) / self.figure.dpi + pad
            size = (width - left - right, height - bottom - above)
            self.axes.set_position(
                (left / width, bottom / height, size[0] / width, size[1] / height)
            )

    @property
    def box(self) -> Box:
        """Left, lower, right and upper end of the axes [inch]."""
        box, dots = self.axes.get_window_extent(), float(self.figure.dpi)
        return box.x0 / dots, box.y0 / dots, box.x1 / dots, box.y1 / dots

    def find_inches(self, x: float, y: float) -> tuple[float, float]:
        """Where a point of the data lies in the figure [inch]."""
        across, up = self.axes.transData.transform((x, y)) / self.figure.dpi
        return float(across), float(up)

    def find_box(self, text: "Text") -> Box:
        """Left, lower, right and upper end of a text [pixel]."""
        box = text.get_window_extent(_find_renderer(self.figure))
        return box.x0, box.y0, box.x1, box.y1

    def measure(self, text: "Text") -> tuple[float, float]:
        """Width and height of a text [inch]."""
        left, low, right, high = self.find_box(text)
        return (right - left) / self.figure.dpi, (high - low) / self.figure.dpi

    def measure_words(self, words: Sequence[str], size: float) -> float:
        """Width of the longest [inch]."""
        texts = [self.figure.text(0, 0, each, fontsize=size, parse_math=False) for each in words]
        widths = [self.measure(each)[0] for each in texts]
        for each in texts:
            each.remove()
        return max(widths, default=0.0)

    def write_title(self, title: str) -> float:
        """Write what all is about into the upper left corner; returns its height [inch]."""
        return self._write_lines(title, self.scale.normal, top=True)

    def write_note(self, note: str) -> None:
        """Write what is not drawn into the lower left corner."""
        if note:
            self._write_lines(note, self.scale.small, top=False)

    def measure_note(self, note: str) -> float:
        """The height that a note takes [inch]."""
        if not note:
            return 0.0
        height = self._write_lines(note, self.scale.small, top=False)
        self.figure.texts[-1].remove()
        return height

    def _write_lines(self, text: str, size: float, top: bool) -> float:
        """Write lines as wide as the figure at its top or bottom; returns their height [inch]."""
        width, height = self.figure.get_size_inches()
        pad = 0.35 * self.scale.em
        letters = int((width - 2 * pad) / (0.54 * size / 72))
        # Names are no formulas, whatever dollars are in them.
        drawn = self.figure.text(
            pad / width,
            1 - pad / height if top else pad / height,
            "\n".join(textwrap.wrap(_keep_together(escape_invisible(text)), letters)),
            fontsize=size,
            va="top" if top else "bottom",
            linespacing=1.15,
            color="black" if top else "0.25",
            parse_math=False,
        )
        return self.measure(drawn)[1] + 2 * pad


def make_frame(size: Size, height: float | None = None) -> Frame:
    """Empty axes of a size, or of another height [inch]. RunError: matplotlib is not installed."""
    scale = SCALES[size]
    figure = make_figure(scale.width, height or scale.height, scale.dots)
    axes = figure.add_axes((0.1, 0.1, 0.8, 0.8))
    axes.tick_params(labelsize=scale.small, length=0.25 * scale.small, width=0.5)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[:].set_linewidth(0.6)
    axes.xaxis.label.set_fontsize(scale.small)
    axes.yaxis.label.set_fontsize(scale.small)
    return Frame(figure, axes, scale)


def _keep_together(text: str) -> str:
    """The text, which breaks neither at an equals sign nor ahead of a unit."""
    return re.sub(r" = |(?<=\d) (?=[kMGTPmun]?(?:B|s|FLOP))", _glue, text)


def _glue(blanks: "re.Match[str]") -> str:
    return blanks[0].replace(" ", "\N{NO-BREAK SPACE}")


def _find_renderer(figure: "Figure") -> Any:
    """What texts are measured by, whatever they are saved as."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    canvas: Any = FigureCanvasAgg(figure)  # its own types say nothing of renderers
    return canvas.get_renderer()


def scale_counts(frame: Frame, low: float, high: float, room: float) -> None:
    """The axis of PE counts: to base 2, ticks in plain numbers, as many as have room [inch]."""
    from matplotlib.ticker import NullLocator

    axes = frame.axes
    axes.set_xscale("log", base=2)
    ticks = choose_ticks(low, high, int(room / (3.4 * frame.scale.small / 72)))
    axes.set_xticks(ticks, [f"{tick:,.0f}" for tick in ticks])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("PEs, p", labelpad=1)


def choose_ticks(low: float, high: float, most: int) -> list[float]:
    """Powers of two from `low` to `high` in equal steps, at most so many; one at least."""
    first, last = int(np.ceil(np.log2(low) - 1e-9)), int(np.floor(np.log2(high) + 1e-9))
    if last < first:
        return [low]
    step = next(
        step for step in range(1, last - first + 2) if (last - first) // step + 1 <= max(most, 2)
    )
    # The last one always: it is how far the picture goes.
    return [2.0**power for power in range(last, first - 1, -step)][::-1]


def scale_amounts(axes: "Axes", low: float, high: float) -> None:
    """The upright axis on a logarithmic scale, with plain numbers at its ticks."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axes.set_yscale("log")
    axes.set_ylim(low / 1.25, high * 1.25)
    decades = np.log10(high / low)
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if decades < 2 else (1,)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: format_tick(value)))
    axes.yaxis.set_minor_formatter(NullFormatter())


def format_tick(value: float) -> str:
    """A tick's number without an exponent, as long as that is short."""
    return f"{value:,.0f}" if 1 <= value < 1e7 else f"{value:.3g}"


def spread_heights(wished: Sequence[float], step: float, low: float, high: float) -> list[float]:
    """Heights as near to the wished ones as they can, `step` apart, between `low` and `high`.

    In the same order. Where there is no room for all, they go beyond `low`.
    """
    order = np.argsort(wished, kind="stable")
    heights = np.asarray(wished, float)[order]
    # Pooled like an isotonic regression: of what collides, the middle stays in the middle.
    shifted = heights - step * np.arange(len(heights))
    blocks: list[list[float]] = []
    for value in shifted:
        blocks.append([value])
        while len(blocks) > 1 and np.mean(blocks[-2]) >= np.mean(blocks[-1]):
            blocks[-2:] = [blocks[-2] + blocks[-1]]
    pooled = np.concatenate([np.full(len(block), np.mean(block)) for block in blocks])
    pooled = np.minimum(np.maximum(pooled, low), high - step * (len(heights) - 1))
    placed = np.empty(len(heights))
    placed[order] = pooled + step * np.arange(len(heights))
    return [float(each) for each in placed]
