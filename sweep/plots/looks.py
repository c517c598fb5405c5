"""How pictures look: sizes, fonts, and the colours, markers and dashes of strategies and parts.

The same in every picture and report.

Hues are those of Okabe and Ito (Color Universal Design, 2008), one for each way to split a replica:
blue spatial, vermilion pipeline, purple channel, green filter, yellow placement; dark alone, bright
with data. Their lightness differs by at least 6.5 of L*, so that they survive grey print and stay
distinct under simulated protanopia, deuteranopia and tritanopia (Machado et al., 2009; the tests).
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import wraps
from itertools import cycle
from typing import Any, Literal, TypedDict

import matplotlib as mpl
import matplotlib.style
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.typing import LineStyleType
from numpy.typing import NDArray

from paradl.grids.entries.strategies import parse_strategy
from paradl.grids.reading.errors import InputError
from paradl.kernels.names.arrays import Floats
from paradl.kernels.names.layout_terms import LAYOUT_TERMS
from paradl.kernels.names.terms import TERMS

Size = Literal["paper", "page", "slide"]

# A column of a two-column paper; the width of a page; a slide that the last row can read. Width and
# height [inch]; dots per inch of a PNG; text, title, lines and markers [pt].
SCALED = (
    *("figure.figsize", "figure.dpi", "font.size", "figure.titlesize"),
    *("lines.linewidth", "lines.markersize"),
)
SCALES: dict[str, dict[str, object]] = {
    "paper": dict(zip(SCALED, ((3.3, 2.5), 300, 6, 7, 1.0, 2.6), strict=True)),
    "page": dict(zip(SCALED, ((6.6, 4.2), 150, 8, 9, 1.4, 4.0), strict=True)),
    "slide": dict(zip(SCALED, ((10.0, 5.6), 150, 13, 15, 2.2, 7.0), strict=True)),
}
STYLE: dict[str, object] = {
    "figure.constrained_layout.use": True,
    "figure.labelsize": "medium",
    "axes.titlesize": "medium",
    "axes.labelpad": 2,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "grid.alpha": 0.25,
    "grid.linewidth": 0.5,
    "hatch.linewidth": 0.5,
    "legend.frameon": False,
    # A dollar in a name is no formula.
    "text.parse_math": False,
}


def use_style(size: Size) -> AbstractContextManager[None]:
    """Return a context that sets up matplotlib for a size. InputError: an unknown size."""
    if size not in SCALES:
        raise InputError.unknown("size", size, SCALES, where="size")
    return mpl.style.context(STYLE | SCALES[size])


def styled(draw: Callable[[Any], Figure]) -> Callable[..., Figure]:
    """Let a function that draws with the current style take a size."""

    @wraps(draw)
    def draw_styled(data: Any, size: Size = "page") -> Figure:
        with use_style(size):
            return draw(data)

    return draw_styled


class LineStyle(TypedDict):
    """Settings for a matplotlib line, or for markers alone."""

    color: str
    marker: str
    linestyle: LineStyleType


class AreaStyle(TypedDict):
    """Settings for a matplotlib area; the edge and text on it are in the ink that reads on it."""

    facecolor: str
    hatch: str
    edgecolor: str


@dataclass(frozen=True)
class Look:
    """A colour, with marker, dashes, hatch and name.

    Dashes mark a strategy alone, and solid lines its hybrid with data; a hatch is denser alone.
    """

    colour: str
    marker: str
    dash: LineStyleType = "-"
    hatch: str = ""
    name: str = ""

    @property
    def line(self) -> LineStyle:
        """Settings for a line with markers."""
        return {"color": self.colour, "marker": self.marker, "linestyle": self.dash}

    @property
    def marks(self) -> LineStyle:
        """Settings for markers alone."""
        return {"color": self.colour, "marker": self.marker, "linestyle": ""}

    @property
    def area(self) -> AreaStyle:
        """Settings for an area."""
        ink = choose_ink(self.colour)
        return {"facecolor": self.colour, "hatch": self.hatch, "edgecolor": ink}


# Okabe and Ito's, for compute and communication, or forward and backward passes.
BLUE, ORANGE = "#0072B2", "#E69F00"

DOTTED: LineStyleType = (0, (1, 1.2))
DASHED: LineStyleType = (0, (4, 1.5))
BROKEN: LineStyleType = (0, (5, 1.2, 1, 1.2))

LOOKS = {
    "serial": Look("#C8C8C8", "*", DOTTED),
    "data": Look("#000000", "o"),
    "spatial": Look("#023661", "s", DASHED, "///"),
    "pipeline": Look("#753000", "v", DASHED, "\\\\\\"),
    "filter": Look("#07744E", "D", DASHED, "..."),
    "channel": Look("#922D6A", "^", DASHED, "xxx"),
    "data+spatial": Look("#097FBD", "s", hatch="/"),
    "data+pipeline": Look("#E56506", "v", hatch="\\"),
    "data+filter": Look("#19CC8C", "D", hatch="."),
    "data+channel": Look("#E879C2", "^", hatch="x"),
    "placement": Look("#2B2400", "p", DASHED, "oo"),
    "data+placement": Look("#F0E442", "p", hatch="o"),
}
# For labels that name no strategy, such as `2-way` of `paradl hybrid`.
UNKNOWN = Look("#6E6E6E", "s")
# Further ways to split a replica, such as layouts of transformers, by their order in the cube.
FURTHER = (UNKNOWN, Look("#009AA8", "D"), Look("#B8860B", "^"), Look("#5B3FA0", "v"))
# Marker, dashes and further hatch of further settings of the same strategy; every other is paler.
VARIANTS: tuple[tuple[str, LineStyleType, str], ...] = (
    ("P", DOTTED, "--"),
    ("X", BROKEN, "||"),
    ("<", DASHED, "++"),
    (">", DOTTED, "OO"),
    ("p", BROKEN, "**"),
    ("h", DASHED, "---"),
)

# Parts of a bar: light and dark alternate, so that neighbours in a stack differ. Compute is blue
# and plain, communication orange and hatched.
BLUES = (BLUE, "#8CC4E6", "#00476F", "#5FA9D3", "#B9DDF1", "#2E8BC0", "#1A5F8A", "#DCEEF8")
ORANGES = (ORANGE, "#FBE0A8", "#A87300", "#F2C45A", "#FFF0D0", "#C98B00", "#7A5400", "#F7D086")
# Memory that grows with the batch is green and plain, the model's own purple and hatched.
GREENS = ("#009E73", "#B9E8DA", "#00573F", "#7FD1B9", "#3FB896")
PURPLES = ("#CC79A7", "#E6BBD3", "#8F4A73", "#F3DDE9", "#B05C8B")
HATCHES = ("//", "..", "\\\\", "xx", "--", "++", "oo", "||")
EDGE: Mapping[str, Any] = {"edgecolor": "black", "linewidth": 0.4}

PartLooks = Mapping[str, Mapping[str, Any]]


def _pair(names: Iterable[str], colours: Sequence[str], hatches: Sequence[str]) -> PartLooks:
    looks = zip(names, cycle(colours), cycle(hatches), strict=False)
    return {name: {"facecolor": colour, "hatch": hatch} for name, colour, hatch in looks}


def _choose_term_looks() -> PartLooks:
    """Choose the look of each term: of those of layouts, one that no other term beside it has."""
    looks: dict[str, Mapping[str, Any]] = {}
    for terms in (TERMS, LAYOUT_TERMS):
        taken = [looks[name]["facecolor"] for name in terms if name in looks]
        for part, colours, hatches in (
            ("compute", BLUES, ("",) * len(BLUES)),
            ("communication", ORANGES, HATCHES),
        ):
            free = [pair for pair in zip(colours, hatches, strict=True) if pair[0] not in taken]
            new = [name for name, term in terms.items() if term.part == part and name not in looks]
            looks |= _pair(new, *zip(*free, strict=True))
    return looks


TERM_LOOKS = _choose_term_looks()
MEMORY_LOOKS = {
    **_pair(("activations", "recomputed", "logits", "gathered", "embedding"), GREENS, [""]),
    # `parameters` are Table III's, `weights` the machine's.
    **_pair(("weights", "gradients", "states"), PURPLES, HATCHES),
    **_pair(("parameters",), PURPLES, HATCHES),
    "reserved": {"facecolor": "#FFFFFF", "hatch": ""},
}
MORE, LESS = "more is better", "less is better"
SLOPE_LOOKS: PartLooks = {MORE: {"facecolor": BLUE}, LESS: {"facecolor": ORANGE, "hatch": "//"}}
WORDS = {"forward_backward": "forward and backward", "pass_overhead": "reading weights"}


def name_part(name: str) -> str:
    """Name a term of time, or a part of memory, in words."""
    return WORDS.get(name, name.replace("_", " "))


def mix(colour: str, share: float) -> str:
    """Mix a colour with a share of white."""
    return to_hex(tuple((1 - share) * np.array(to_rgb(colour)) + share))


def choose_looks(strategies: Sequence[str]) -> dict[str, Look]:
    """Choose the look of each strategy; its settings do not change the hue.

    strategies: all of the cube's, in its order, so that all of its pictures agree.
    """
    looks: dict[str, Look] = {}
    seen: dict[str, int] = {}
    names = shorten_names(strategies)
    further = (base for base in map(_name_base, strategies) if base not in LOOKS)
    known = LOOKS | dict(zip(dict.fromkeys(further), cycle(FURTHER), strict=False))
    for label in strategies:
        base = _name_base(label)
        number = seen.get(base, 0)
        seen[base] = number + 1
        look = known[base]
        if number:
            marker, dash, hatch = VARIANTS[(number - 1) % len(VARIANTS)]
            colour = mix(look.colour, 0.4) if number % 2 else look.colour
            look = Look(colour, marker, dash, look.hatch + hatch)
        looks[label] = replace(look, name=wrap_name(names[label]))
    return looks


def shorten_names(strategies: Sequence[str]) -> dict[str, str]:
    """Shorten labels by what is searched, such as `group=best`, unless two became the same."""
    short = {}
    for label in strategies:
        base, _, settings = label.partition(":")
        kept = [setting for setting in settings.split(",") if setting and "=best" not in setting]
        short[label] = ":".join([base, *([",".join(kept)] if kept else [])])
    counts = Counter(short.values())
    return {label: name if counts[name] == 1 else label for label, name in short.items()}


LONGEST = 30  # letters in a line of a name: layouts would leave no room for bars


def wrap_name(name: str) -> str:
    """Break a long name of a strategy or layout between its settings."""
    lines = [""]
    for part in re.split(r"(?<=[: ])|(?<=,)(?=[a-z])", name):
        if lines[-1] and len(lines[-1]) + len(part) > LONGEST:
            lines.append("")
        lines[-1] += part
    return "\n".join(lines)


def _name_base(label: str) -> str:
    """Return the strategy without its settings, or an empty name if it is none."""
    try:
        return parse_strategy(label).base
    except InputError:
        return ""


def measure_lightness(colour: str) -> float:
    """Return the relative luminance of `#RRGGBB`, 0 to 1 (IEC 61966-2-1)."""
    parts = np.array(to_rgb(colour))
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return float(linear @ (0.2126, 0.7152, 0.0722))


def choose_ink(colour: str) -> str:
    """Return black or white, whichever reads better on a colour."""
    return "black" if measure_lightness(colour) > 0.18 else "white"


MOST_MARKED = 16  # points that all have a marker; more make a curve look like a caterpillar
APART = 0.1  # distance of the markers of longer curves, as a share of the axes' diagonal


def draw_curve(
    axes: Axes,
    look: Look,
    pe: Floats,
    values: Floats,
    hollow: NDArray[np.bool_],
    band: tuple[Floats, Floats] | None = None,
) -> Line2D:
    """Draw a curve. hollow: which points get a hollow marker. band: its lower and upper end."""
    if band is not None:
        axes.fill_between(pe, *band, color=look.colour, alpha=0.18, linewidth=0, zorder=1)
    marked: Any = None if len(pe) <= MOST_MARKED else APART
    shared: Any = {"zorder": 3, "clip_on": False, "markevery": marked}
    (line,) = axes.plot(pe, values, **look.line, **shared)
    if hollow.any():
        face = mpl.rcParams["axes.facecolor"]
        axes.plot(pe[hollow], values[hollow], **look.marks, markerfacecolor=face, **shared)
    return line


def make_hollow_key(meaning: str) -> Line2D:
    """Make the legend entry for hollow markers."""
    return Line2D([], [], color="grey", marker="o", mfc="none", linestyle="", label=meaning)
