"""`ds.paradl.plot`: pictures of a cube, or of any slice of one, as matplotlib figures."""

from matplotlib.figure import Figure

from paradl.sweep.cells.selection import Selection
from paradl.sweep.cells.source import Source
from paradl.sweep.plots.bars import draw_bars
from paradl.sweep.plots.front import Against, describe_front, draw_front
from paradl.sweep.plots.looks import Size
from paradl.sweep.plots.scaling import Quantity, describe_scaling, draw_scaling
from paradl.sweep.plots.stacks import describe_breakdown, describe_memory, describe_tornado
from paradl.sweep.plots.winners import describe_map, draw_map


class Plots:
    """Pictures of a Dataset, a store or a design space; `figure.axes[0]` has the data.

    selection: values by axis, as in `--sel`. size: a paper's column, a page, a slide. InputError:
    an axis has several values where the picture shows one. NothingFeasibleError: nothing to draw.
    """

    def __init__(self, source: Source) -> None:
        self._source = source

    def scaling(
        self, quantity: Quantity = "time", selection: Selection | None = None, size: Size = "page"
    ) -> Figure:
        """Draw time [s per epoch], throughput [samples/s] or efficiency over p, by strategy."""
        return draw_scaling(describe_scaling(self._source, selection, quantity), size)

    def map(
        self, over: str | None = None, selection: Selection | None = None, size: Size = "page"
    ) -> Figure:
        """Draw the fastest strategy over p and another swept axis, by default the batch."""
        return draw_map(describe_map(self._source, selection, over), size)

    def memory(self, selection: Selection | None = None, size: Size = "page") -> Figure:
        """Draw the memory of the fullest PE by part, for strategies, PE counts or layouts."""
        return draw_bars(describe_memory(self._source, selection), size)

    def breakdown(self, selection: Selection | None = None, size: Size = "page") -> Figure:
        """Draw the stacked terms of an iteration's time [s] over p, for one strategy."""
        return draw_bars(describe_breakdown(self._source, selection), size)

    def pareto(
        self, against: Against = "pe-hours", selection: Selection | None = None, size: Size = "page"
    ) -> Figure:
        """Draw the front of time [s per epoch] against PE-hours or memory, and its knee."""
        return draw_front(describe_front(self._source, selection, against), size)

    def sensitivity(self, selection: Selection | None = None, size: Size = "page") -> Figure:
        """Draw the elasticities of one configuration's time as a tornado."""
        return draw_bars(describe_tornado(self._source, selection), size)
