"""Breakdown: the terms of one strategy's iteration time, stacked over p."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import cycle
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import EngFormatter, FuncFormatter, MaxNLocator
from numpy.typing import NDArray

from grids.entries.strategies import parse_strategy
from grids.grid import LABELS
from grids.models.layers import Floats
from kernels.names.layout_terms import EVERY_TERM, LAYOUT_TERMS
from kernels.names.terms import TERMS, Term, list_terms
from kernels.oracle.answer import answer_case
from sweep.cells.selection import Selection
from sweep.cells.source import Source
from sweep.cube.derived_quantities import Paradl
from sweep.cube.variables import find_allowed
from sweep.plots.figures import Size, add_legend, make_axes, scale_counts, use_style
from sweep.plots.looks import BLUE, ORANGE
from sweep.plots.slices import (
    BEYOND,
    build_case,
    expect_any,
    find_beyond,
    name_reasons,
    name_stop,
    open_slice,
    read_slice,
    write_title,
)

if TYPE_CHECKING:
    import xarray as xr

SUMMED = (*list_terms("compute"), *list_terms("communication"))


@dataclass(frozen=True)
class Breakdown:
    """Seconds per iteration of each term [pe], at the allowed PE counts; terms of zero left out.

    beyond [pe]: where the global batch is larger than the data set. cause: the limit that forbids
    the next PE count; None: the axis ends.
    """

    title: str
    strategy: str
    pe: Floats
    terms: Mapping[str, Floats]
    beyond: NDArray[np.bool_]
    cause: str | None = None

    @property
    def total(self) -> Floats:
        """Seconds per iteration."""
        total: Floats = np.sum([*self.terms.values()], axis=0)
        return total


def describe_breakdown(source: Source, selection: Selection | None = None) -> Breakdown:
    """Read the terms of a slice with one strategy, or compute them if the cube lacks any.

    InputError: an axis other than pe has several values. NothingFeasibleError: no PE count.
    """
    cells = read_slice(open_slice(source, selection, SUMMED), ("pe",))
    limit = cells["limit"].values.reshape(-1)
    allowed = np.flatnonzero(find_allowed(limit))
    title, strategy = write_title(cells, shown=("pe", "strategy")), str(cells["strategy"].item())
    expect_any(allowed, name_reasons(limit))
    line = cells.isel(pe=allowed)
    terms = _read_terms(line) if _holds_terms(line) else _compute_terms(line)
    return Breakdown(
        title,
        strategy,
        line["pe"].values.astype(float),
        {name: seconds for name, seconds in terms.items() if (seconds > 0).any()},
        find_beyond(limit[allowed]),
        name_stop(limit, int(allowed[-1])),
    )


def _holds_terms(line: "xr.Dataset") -> bool:
    """Return whether the cube has all terms, and can count replicas and so iterations."""
    strategy = parse_strategy(str(line["strategy"].item()))
    counted = "replicas" in line or strategy.group != "best"
    return counted and not strategy.laid and all(name in line for name in SUMMED)


def _read_terms(line: "xr.Dataset") -> dict[str, Floats]:
    # Cubes store seconds per epoch.
    iterations = Paradl(line).iterations.broadcast_like(line["limit"]).values.reshape(-1)
    return {name: line[name].values.astype(float).reshape(-1) / iterations for name in SUMMED}


def _compute_terms(line: "xr.Dataset") -> dict[str, Floats]:
    answer = answer_case(build_case(Paradl(line).grid, line))
    shape = line["limit"].shape[len(LABELS) :]

    def spread(values: object) -> Floats:
        # The kernels leave out dimensions along which nothing varies.
        return np.broadcast_to(np.asarray(values, float), shape).reshape(-1)

    iterations = spread(answer.iterations)
    return {
        name: spread(seconds) / iterations
        for name, seconds in vars(answer.terms).items()
        if EVERY_TERM[name].part != "hidden"
    }


# Compute is blue and plain, communication orange and hatched, as in pictures of accuracy. Light and
# dark alternate, so that neighbours in a stack differ.
BLUES = (BLUE, "#8CC4E6", "#00476F", "#5FA9D3", "#B9DDF1", "#2E8BC0", "#DCEEF8", "#1A5F8A")
ORANGES = (ORANGE, "#FBE0A8", "#A87300", "#F2C45A", "#FFF0D0", "#C98B00", "#7A5400", "#F7D086")
HATCHES = ("//", "..", "\\\\", "xx", "--", "++", "oo", "||")


def _choose_looks(terms: Mapping[str, Term]) -> dict[str, dict[str, Any]]:
    """Choose the look of each term, of computing and of communicating in turn."""
    computing = (name for name, term in terms.items() if term.part == "compute")
    others = (name for name, term in terms.items() if term.part == "communication")
    oranges = zip(cycle(ORANGES), cycle(HATCHES), strict=False)
    return {
        name: {"facecolor": colour} for name, colour in zip(computing, cycle(BLUES), strict=False)
    } | {
        name: {"facecolor": colour, "hatch": hatch}
        for name, (colour, hatch) in zip(others, oranges, strict=False)
    }


Looks: TypeAlias = Mapping[str, Mapping[str, Any]]
LOOKS: Looks = _choose_looks(TERMS)
LAYOUT_LOOKS: Looks = _choose_looks(LAYOUT_TERMS)
EDGE: Mapping[str, Any] = {"edgecolor": "black", "linewidth": 0.4}
MOST_BARS = 14
LEAST = 0.002  # of the highest stack: a term that is always thinner would be only a line


def draw_breakdown(breakdown: Breakdown, size: Size = "page") -> Figure:
    """Draw one strategy's terms: bars for few PE counts, areas for many."""
    least = LEAST * float(breakdown.total.max())
    stacks = {name: times for name, times in breakdown.terms.items() if times.max() > least}
    with use_style(size):
        figure, axes = make_axes(
            size, f"{breakdown.strategy}: {breakdown.title}", _write_note(breakdown, stacks)
        )
        draw = _draw_bars if len(breakdown.pe) <= MOST_BARS else _draw_areas
        looks = LOOKS if {*breakdown.terms} <= {*LOOKS} else LAYOUT_LOOKS
        draw(axes, breakdown.pe, stacks, looks)
        axes.set_ylim(0, 1.03 * float(breakdown.total.max()))
        axes.set_ylabel("time of an iteration")
        axes.yaxis.set_major_formatter(EngFormatter("s"))
        # In the order of the stack, the last on top.
        names = reversed(list(stacks))
        keys = [Patch(label=name.replace("_", " "), **looks[name], **EDGE) for name in names]
        add_legend(figure, keys)
    return figure


def _draw_bars(axes: Axes, pe: Floats, stacks: Mapping[str, Floats], looks: Looks) -> None:
    """Draw one stacked bar per PE count."""
    # The last bar is at 0, which always gets a tick, so that its PE count is always named.
    positions, below = np.arange(1 - len(pe), 1), np.zeros(len(pe))
    for name, stack in stacks.items():
        axes.bar(positions, stack, 0.75, below, **looks[name], **EDGE)
        below = below + stack
    names = {float(at): f"{count:,.0f}" for at, count in zip(positions, pe, strict=True)}
    axes.xaxis.set_major_locator(MaxNLocator("auto", integer=True))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda at, _: names.get(at, "")))
    axes.set_xlim(-len(pe) + 0.4, 0.6)
    axes.set_xlabel("PEs, p")


def _draw_areas(axes: Axes, pe: Floats, stacks: Mapping[str, Floats], looks: Looks) -> None:
    below = np.zeros(len(pe))
    for name, stack in stacks.items():
        axes.fill_between(pe, below, below + stack, **looks[name], **EDGE)
        below = below + stack
    scale_counts(axes, pe)
    axes.set_xlim(pe[0], pe[-1])


def _write_note(breakdown: Breakdown, shown: Mapping[str, Floats]) -> str:
    rest = [name.replace("_", " ") for name in breakdown.terms if name not in shown]
    parts = [f"ends at {breakdown.pe[-1]:,.0f}: {breakdown.cause}"] if breakdown.cause else []
    if breakdown.beyond.any():
        parts.append(f"{BEYOND} from {breakdown.pe[breakdown.beyond][0]:,.0f}")
    if rest:
        parts.append(f"too small to see: {', '.join(rest)}")
    return "; ".join(parts)
