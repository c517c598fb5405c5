"""How strategies look: the same colour, marker and dashes in every picture.

Hues are those of Okabe and Ito (Color Universal Design, 2008), one for each way to split a replica:
blue spatial, vermilion pipeline, purple channel, green filter, yellow placement; dark alone, bright
with data. Their lightness differs by at least 6.5 of L*, so that they survive grey print and stay
distinct under simulated protanopia, deuteranopia and tritanopia (Machado et al., 2009; the tests).
On a dark background lightness is mirrored (L* becomes 100 - 0.86 L*), and hues stay.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import cycle
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_hex, to_rgb
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from grids.entries.strategies import parse_strategy
from grids.reading.errors import InputError
from kernels.names.arrays import Floats
from sweep.plots.figures import wrap_name

Dash = str | tuple[int, tuple[float, ...]]


@dataclass(frozen=True)
class Look:
    """A colour, on a white and on a black background, with marker, dashes, hatch and name.

    Dashes mark a strategy alone, and solid lines its hybrid with data; a hatch is denser alone.
    """

    colour: str
    dark: str
    marker: str
    dash: Dash = "-"
    hatch: str = ""
    name: str = ""

    @property
    def line(self) -> dict[str, Any]:
        """Settings for a matplotlib line."""
        return {"color": self.colour, "marker": self.marker, "linestyle": self.dash}

    @property
    def area(self) -> dict[str, Any]:
        """Settings for an area, pale so that text on it is legible."""
        edge = mpl.rcParams["text.color"]
        return {"facecolor": mix(self.colour), "hatch": self.hatch, "edgecolor": edge}


# Okabe and Ito's, for compute and communication, or forward and backward.
BLUE, ORANGE = "#0072B2", "#E69F00"

DOTTED: Dash = (0, (1, 1.2))
DASHED: Dash = (0, (4, 1.5))
BROKEN: Dash = (0, (5, 1.2, 1, 1.2))

LOOKS = {
    "serial": Look("#C8C8C8", "#484848", "*", DOTTED),
    "data": Look("#000000", "#FFFFFF", "o"),
    "spatial": Look("#023661", "#AECAFF", "s", DASHED, "///"),
    "pipeline": Look("#753000", "#FFA26C", "v", DASHED, "\\\\\\"),
    "filter": Look("#07744E", "#1FAD78", "D", DASHED, "..."),
    "channel": Look("#922D6A", "#FF7BC5", "^", DASHED, "xxx"),
    "data+spatial": Look("#097FBD", "#028FD5", "s", hatch="/"),
    "data+pipeline": Look("#E56506", "#C55502", "v", hatch="\\"),
    "data+filter": Look("#19CC8C", "#016542", "D", hatch="."),
    "data+channel": Look("#E879C2", "#BA2191", "^", hatch="x"),
    "placement": Look("#2B2400", "#ECDBA8", "p", DASHED, "oo"),
    "data+placement": Look("#F0E442", "#3C3901", "p", hatch="o"),
}
# For labels that name no strategy, such as `2-way` of `paradl hybrid`.
UNKNOWN = Look("#6E6E6E", "#919191", "s")
# Further ways to split a replica, such as layouts of transformers, by their order in the cube.
FURTHER = (
    UNKNOWN,
    Look("#009AA8", "#038490", "D"),
    Look("#B8860B", "#986D03", "^"),
    Look("#5B3FA0", "#BD9AFE", "v"),
)
# Marker, dashes and further hatch of further settings of the same strategy; every other is paler.
VARIANTS: tuple[tuple[str, Dash, str], ...] = (
    ("P", DOTTED, "--"),
    ("X", BROKEN, "||"),
    ("<", DASHED, "++"),
    (">", DOTTED, "OO"),
    ("p", BROKEN, "**"),
    ("h", DASHED, "---"),
)


def mix(colour: str, share: float = 0.65) -> str:
    """Mix a colour with a share of the background's."""
    own, paper = np.array(to_rgb(colour)), np.array(to_rgb(mpl.rcParams["axes.facecolor"]))
    red, green, blue = (1 - share) * own + share * paper
    return to_hex((red, green, blue))


def is_dark() -> bool:
    """Return whether the current style draws on a dark background."""
    return sum(to_rgb(mpl.rcParams["axes.facecolor"])) < 1.5


def choose_looks(strategies: Sequence[str]) -> dict[str, Look]:
    """Choose the look of each strategy in the current style; its settings do not change the hue.

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
        look = replace(look, colour=look.dark) if is_dark() else look
        if number:
            marker, dash, hatch = VARIANTS[(number - 1) % len(VARIANTS)]
            colour = mix(look.colour, 0.4) if number % 2 else look.colour
            look = Look(colour, colour, marker, dash, look.hatch + hatch)
        looks[label] = replace(look, name=wrap_name(names[label]))
    return looks


def shorten_names(strategies: Sequence[str]) -> dict[str, str]:
    """Shorten labels by what is searched, such as `group=best`, unless two became the same."""
    short = {label: _drop_best(label) for label in strategies}
    counts = Counter(short.values())
    return {label: name if counts[name] == 1 else label for label, name in short.items()}


def _drop_best(label: str) -> str:
    """Return the label without settings that are searched, such as `group=best`."""
    base, _, settings = label.partition(":")
    kept = [setting for setting in settings.split(",") if setting and "=best" not in setting]
    return ":".join([base, *([",".join(kept)] if kept else [])])


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
        marks = look.line | {"linestyle": "", "markerfacecolor": mpl.rcParams["axes.facecolor"]}
        axes.plot(pe[hollow], values[hollow], **marks, **shared)
    return line


def make_hollow_key(meaning: str) -> Line2D:
    """Make the legend entry for hollow markers."""
    return Line2D([], [], color="grey", marker="o", mfc="none", linestyle="", label=meaning)
