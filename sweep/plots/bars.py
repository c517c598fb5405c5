"""Stacked bars, one below the other, with their totals on the right; how their parts look."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import cycle
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from kernels.names.arrays import Floats
from kernels.names.layout_terms import LAYOUT_TERMS
from kernels.names.terms import TERMS, Term
from sweep.plots.figures import make_figure, scale_unit, set_tick_sizes, wrap_name

MOST_BARS = 20
LEAST = 0.002  # of the longest bar: a part that is always thinner would be only a line
BAR = 1.3  # height of a bar with its gap, in lines of text
FEWEST = 5  # bars; the figure is not lower for fewer

# Light and dark alternate, so that neighbours in a stack differ. Compute is blue and plain,
# communication orange and hatched, as forward and backward are in timelines.
BLUES = ("#0072B2", "#8CC4E6", "#00476F", "#5FA9D3", "#B9DDF1", "#2E8BC0", "#DCEEF8", "#1A5F8A")
ORANGES = ("#E69F00", "#FBE0A8", "#A87300", "#F2C45A", "#FFF0D0", "#C98B00", "#7A5400", "#F7D086")
# Memory that grows with the batch is green and plain, the model's own purple and hatched.
GREENS = ("#009E73", "#B9E8DA", "#00573F", "#7FD1B9", "#3FB896")
PURPLES = ("#CC79A7", "#E6BBD3", "#8F4A73", "#F3DDE9", "#B05C8B")
HATCHES = ("//", "..", "\\\\", "xx", "--", "++", "oo", "||")

Looks = Mapping[str, Mapping[str, Any]]


def _pair(names: Iterable[str], colours: Sequence[str], hatches: Sequence[str]) -> Looks:
    looks = zip(names, cycle(colours), cycle(hatches), strict=False)
    return {name: {"facecolor": colour, "hatch": hatch} for name, colour, hatch in looks}


def _choose_term_looks(terms: Mapping[str, Term]) -> Looks:
    """Choose the look of each term, of compute and of communication in turn."""
    compute, communication = (
        [name for name, term in terms.items() if term.part == part]
        for part in ("compute", "communication")
    )
    return {**_pair(compute, BLUES, [""]), **_pair(communication, ORANGES, HATCHES)}


TERM_LOOKS = _choose_term_looks(TERMS)
LAYOUT_LOOKS = _choose_term_looks(LAYOUT_TERMS)
MEMORY_LOOKS = {
    **_pair(("activations", "recomputed", "logits", "gathered", "embedding"), GREENS, [""]),
    # `parameters` are Table III's, `weights` the machine's; `states` those of layouts.
    **_pair(("weights", "gradients", "optimizer", "states"), PURPLES, HATCHES),
    **_pair(["parameters"], PURPLES, HATCHES),
    "reserved": {"facecolor": "#FFFFFF", "hatch": ""},
}
EDGE: Mapping[str, Any] = {"edgecolor": "black", "linewidth": 0.4}
WORDS = {"forward_backward": "forward and backward", "pass_overhead": "reading weights"}


def name_part(name: str) -> str:
    """Name a term of time, or a part of memory, in words."""
    return WORDS.get(name, name.replace("_", " "))


def split_parts(parts: Mapping[str, Floats]) -> tuple[dict[str, Floats], list[str]]:
    """Return the parts that can be seen, and the words of those that are too thin."""
    least = LEAST * float(np.sum([*parts.values()], axis=0).max())
    seen = {name: sizes for name, sizes in parts.items() if sizes.max() > least}
    return seen, [name_part(name) for name in parts if name not in seen and parts[name].any()]


def make_keys(parts: Iterable[str], looks: Looks) -> list[Patch]:
    """Make the legend's entries of parts."""
    return [Patch(label=name_part(name), **looks[name], **EDGE) for name in parts]


def draw_bars(
    title: str,
    note: str,
    names: Sequence[str],
    parts: Mapping[str, Floats],
    looks: Looks,
    quantity: tuple[str, str],
) -> tuple[Figure, Axes]:
    """Draw a stacked bar for each name, the first on top. quantity: what they measure, its unit."""
    rows, lines = np.arange(len(names)), [*map(wrap_name, names)]
    height = sum(max(BAR, 1.1 * (1 + line.count("\n"))) for line in lines)
    figure = make_figure(title, note, max(height, BAR * FEWEST, len(parts) + 2), exactly=True)
    axes, left = figure.add_subplot(), np.zeros(len(names))
    set_tick_sizes(axes)
    for name, sizes in parts.items():
        axes.barh(rows, sizes, 0.7, left, **looks[name], **EDGE)
        left = left + sizes
    axes.set_yticks(rows, lines)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.use_sticky_edges = False  # room beyond bars on both sides of zero
    if left.min() >= 0:
        axes.set_xlim(left=0)
    label, unit = quantity
    if unit:
        scale_unit(axes.xaxis, label, float(max(left)), unit)
    else:
        axes.set_xlabel(label)
    axes.xaxis.set_major_locator(
        MaxNLocator(4, steps=(1, 2, 5, 10))
    )  # names and totals leave less room than it assumes
    return figure, axes


def write_totals(axes: Axes, totals: Sequence[str], bold: Iterable[int] = ()) -> None:
    """Write a text to the right of each bar, some of them in bold."""
    right = axes.secondary_yaxis("right")
    right.set_yticks(range(len(totals)), list(totals))
    right.spines[:].set_visible(False)
    small, colour = mpl.rcParams["font.size"], mpl.rcParams["text.color"]
    right.tick_params(length=0, labelsize=small, labelcolor=colour)
    for row in bold:
        right.get_yticklabels()[row].set_fontweight("bold")
