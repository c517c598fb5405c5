"""`ds.paradl.plot`: the pictures of a cube, or of any slice of one, as matplotlib figures."""

from typing import TYPE_CHECKING

from grids.reading.errors import InputError, shorten, suggest_name
from sweep.cells.selection import Selection
from sweep.cells.source import Source
from sweep.questions.pictures.scaling import Quantity
from sweep.show.plots.frames import SIZES, Size

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Plots:
    """Pictures of a Dataset, or of the store at a place; `figure.axes[0]` is where the data is.

    selection: values by axis, as `--sel` takes them. size: a paper's column, a page, a slide.
    InputError: an axis with several values where the picture has room for one.
    NothingFeasibleError: there is nothing to draw. RunError: matplotlib is not installed.
    """

    def __init__(self, source: Source) -> None:
        self._source = source

    def scaling(
        self,
        quantity: Quantity = "time",
        selection: Selection | None = None,
        size: Size = "page",
    ) -> "Figure":
        """Time [s an epoch], throughput [samples/s] or efficiency over p, a curve a strategy."""
        from sweep.questions.pictures.scaling import describe_scaling
        from sweep.show.plots.scaling import draw_scaling

        expect_size(size)
        return draw_scaling(describe_scaling(self._source, selection, quantity), size)

    def map(
        self,
        over: str | None = None,
        selection: Selection | None = None,
        size: Size = "page",
    ) -> "Figure":
        """The fastest strategy over p and another axis: batch, or any that was swept."""
        from sweep.questions.pictures.winners import describe_map
        from sweep.show.plots.winners import draw_map

        expect_size(size)
        return draw_map(describe_map(self._source, selection, over), size)

    def memory(self, selection: Selection | None = None, size: Size = "page") -> "Figure":
        """Memory of the fullest PE by part, of strategies or of PE counts, and the capacity."""
        from sweep.questions.pictures.memory import describe_memory
        from sweep.show.plots.memory import draw_memory

        expect_size(size)
        return draw_memory(describe_memory(self._source, selection), size)

    def breakdown(self, selection: Selection | None = None, size: Size = "page") -> "Figure":
        """The terms of an iteration's time [s] over p, stacked, of one strategy."""
        from sweep.questions.pictures.breakdown import describe_breakdown
        from sweep.show.plots.breakdown import draw_breakdown

        expect_size(size)
        return draw_breakdown(describe_breakdown(self._source, selection), size)


def expect_size(size: str) -> None:
    """InputError: no size that pictures have."""
    if size not in SIZES:
        raise InputError(
            f"unknown size {shorten(size)}", where="size", advice=suggest_name(str(size), SIZES)
        )
