"""How strategies look: the same colour, marker and dashes in every picture.

Hues are those of Okabe and Ito (Color Universal Design, 2008), one for each way to split a replica:
blue spatial, vermilion pipeline, purple channel, green filter, yellow placement; dark alone, bright
with data. Their lightness differs by at least 6.5 of L*, so that they survive grey print and stay
distinct under simulated protanopia, deuteranopia and tritanopia (Machado et al., 2009; the tests).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from grids.entries.strategies import parse_strategy
from grids.models.layers import Floats
from grids.reading.errors import InputError

Dash = str | tuple[int, tuple[float, ...]]


@dataclass(frozen=True)
class Look:
    """A colour, with marker, dashes and hatch to tell strategies apart where colours cannot."""

    colour: str
    marker: str
    dash: Dash = "-"
    hatch: str = ""

    @property
    def line(self) -> dict[str, Any]:
        """Settings for a matplotlib line."""
        return {"color": self.colour, "marker": self.marker, "linestyle": self.dash}


# Okabe and Ito's, for compute and communication, or forward and backward.
BLUE, ORANGE = "#0072B2", "#E69F00"

DOTTED: Dash = (0, (1, 1.2))
DASHED: Dash = (0, (4, 1.5))
BROKEN: Dash = (0, (5, 1.2, 1, 1.2))

LOOKS = {
    "serial": Look("#C8C8C8", "*", DOTTED),
    "data": Look("#000000", "o"),
    "spatial": Look("#023661", "s", DASHED),
    "pipeline": Look("#753000", "v", DASHED),
    "filter": Look("#07744E", "D", DASHED),
    "channel": Look("#922D6A", "^", DASHED),
    "data+spatial": Look("#097FBD", "s"),
    "data+pipeline": Look("#E56506", "v"),
    "data+filter": Look("#19CC8C", "D"),
    "data+channel": Look("#E879C2", "^"),
    "placement": Look("#2B2400", "p", DASHED),
    "data+placement": Look("#F0E442", "p"),
}
# For labels that name no strategy, such as `2-way` of `paradl hybrid`.
UNKNOWN = Look("#6E6E6E", "s")
# Further ways to split a replica, such as layouts of transformers, by their order in the cube.
FURTHER = (UNKNOWN, Look("#009AA8", "D"), Look("#B8860B", "^"), Look("#5B3FA0", "v"))
# Marker, dashes and hatch of further settings of the same strategy.
VARIANTS: tuple[tuple[str, Dash, str], ...] = (
    ("P", DOTTED, "//"),
    ("X", BROKEN, "\\\\"),
    ("<", DASHED, ".."),
    (">", DOTTED, "xx"),
    ("p", BROKEN, "--"),
    ("h", DASHED, "||"),
)


def choose_looks(strategies: Sequence[str]) -> dict[str, Look]:
    """Choose the look of each strategy; its settings do not change the colour.

    strategies: all of the cube's, in its order, so that all of its pictures agree.
    """
    looks: dict[str, Look] = {}
    seen: dict[str, int] = {}
    further = (base for base in map(_name_base, strategies) if base not in LOOKS)
    known = LOOKS | dict(zip(dict.fromkeys(further), cycle(FURTHER), strict=False))
    for label in strategies:
        base = _name_base(label)
        number = seen.get(base, 0)
        seen[base] = number + 1
        look = known[base]
        if number:
            look = Look(look.colour, *VARIANTS[(number - 1) % len(VARIANTS)])
        looks[label] = look
    return looks


def _name_base(label: str) -> str:
    """Return the strategy without its settings, or an empty name if it is none."""
    try:
        return parse_strategy(label).base
    except InputError:
        return ""


def measure_lightness(colour: str) -> float:
    """Return the relative luminance of `#RRGGBB`, 0 to 1 (IEC 61966-2-1)."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


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
    shared: dict[str, Any] = {"zorder": 3, "clip_on": False, "markevery": marked}
    (line,) = axes.plot(pe, values, **look.line, **shared)
    if hollow.any():
        marks = look.line | {"linestyle": "", "markerfacecolor": "white"}
        axes.plot(pe[hollow], values[hollow], **marks, **shared)
    return line


def make_hollow_key(meaning: str) -> Line2D:
    """Make the legend entry for hollow markers."""
    return Line2D([], [], color="grey", marker="o", mfc="white", linestyle="", label=meaning)
