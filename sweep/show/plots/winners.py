"""Map drawn: who is the fastest where, in the strategies' colours, crossovers as lines between."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from grids.entries.parameters import PARAMETERS
from grids.models.layers import Floats
from sweep.questions.pictures.cells import format_number
from sweep.questions.pictures.winners import NOBODY, Map
from sweep.show.plots.colours import choose_ink, choose_looks
from sweep.show.plots.frames import BEYOND, Frame, Size, make_frame, scale_counts
from sweep.show.plots.keys import Key, write_keys
from sweep.show.plots.regions import Regions, add_ends, list_regions
from sweep.show.visible import escape_invisible

if TYPE_CHECKING:
    from matplotlib.figure import Figure

HATCH: Mapping[str, Any] = {
    "facecolor": "white",
    "edgecolor": "0.6",
    "hatch": "////",
    "hatch_linewidth": 0.6,
    "linewidth": 0,
}
INFEASIBLE = "nothing feasible"
MOST_TICKS = 10
GAP = 3  # pixels between a name and the border of its region


def draw_map(shown: Map, size: Size = "page") -> "Figure":
    """The figure of a map."""
    looks = choose_looks(shown.known)
    winners = _order_winners(shown)
    keys = [
        Key(shown.strategies[each], {"facecolor": looks[shown.strategies[each]].colour})
        for each in winners
    ]
    if (shown.winners == NOBODY).any():
        keys.append(Key(INFEASIBLE, HATCH))
    frame = make_frame(size)
    above = frame.write_title(f"fastest strategy: {shown.place}")
    right = frame.measure_words([each.name for each in keys], frame.scale.small)
    right += 2.6 * frame.scale.em
    across, up = _find_edges(shown.pe), _find_edges(shown.values)
    regions = _find_regions(shown)
    _fill(frame, regions, [looks[name].colour for name in shown.strategies], across, up)
    _scale_axes(frame, shown, across, up, right)
    _mark_beyond(frame, shown)
    note = _write_note(shown)
    frame.settle(right, above, frame.measure_note(note))
    frame.write_note(note)
    write_keys(frame, keys)
    for winner in winners:
        colour = looks[shown.strategies[winner]].colour
        _write_inside(frame, shown, regions, winner, choose_ink(colour))
    return frame.figure


def _write_note(shown: Map) -> str:
    """That some columns are left out, and where global batches are larger than the data set."""
    parts = []
    if shown.counts != len(shown.pe):
        parts.append(
            f"{len(shown.pe)} of {shown.counts:,} PE counts shown, those with the most candidates"
        )
    if shown.beyond is not None and shown.beyond.any():
        parts.append(f"dotted: {BEYOND}")
    return "; ".join(parts)


def _mark_beyond(frame: Frame, shown: Map) -> None:
    """Put a dot at each value where the winner's global batch is larger than the data set."""
    if shown.beyond is None:
        return
    rows, columns = np.nonzero(shown.beyond)
    frame.axes.plot(
        shown.pe[columns],
        shown.values[rows],
        "o",
        color="white",
        markeredgecolor="black",
        markeredgewidth=0.4,
        markersize=0.75 * frame.scale.marker,
        zorder=3,
    )


def _order_winners(shown: Map) -> list[int]:
    """Positions of the strategies that win anywhere, the most frequent first."""
    counts = np.bincount(shown.winners[shown.winners != NOBODY], minlength=len(shown.strategies))
    return [int(each) for each in np.argsort(-counts, kind="stable") if counts[each]]


def _find_edges(values: Floats) -> Floats:
    """Where cells about values begin and end: half a step beyond the last, on the axis' scale."""
    scale, back = _choose_scale(values)
    return np.asarray(back(add_ends(scale(values))[[0, -1]]))


def _choose_scale(values: Floats) -> tuple[Any, Any]:
    """The scale of an axis as a function, and its inverse."""
    return (np.log2, np.exp2) if (values > 0).all() else (np.asarray, np.asarray)


def _find_regions(shown: Map) -> Regions:
    """The regions of a map, borders straight on the scales of its axes."""
    (x, of_x), (y, of_y) = _choose_scale(shown.pe), _choose_scale(shown.values)
    across, up = (scale(each) for scale, each in ((x, shown.across), (y, shown.up)))
    regions = list_regions(shown.winners, x(shown.pe), y(shown.values), across, up, NOBODY)
    polygons, borders = (
        [[(float(of_x(a)), float(of_y(b))) for a, b in each] for each in lines]
        for lines in (regions.polygons, regions.borders)
    )
    return Regions(polygons, regions.winners, borders)


def _fill(
    frame: Frame, regions: Regions, colours: Sequence[str], across: Floats, up: Floats
) -> None:
    """Fill the regions, and draw lines between different winners."""
    from matplotlib.collections import LineCollection, PolyCollection
    from matplotlib.patches import Rectangle

    axes = frame.axes
    corner, size = (across[0], up[0]), (across[-1] - across[0], up[-1] - up[0])
    axes.add_patch(Rectangle(corner, *size, **HATCH, zorder=0))
    won = [n for n, winner in enumerate(regions.winners) if winner != NOBODY]
    filled = [colours[regions.winners[n]] for n in won]
    axes.add_collection(
        # Edges of their own colour: without them seams show between polygons.
        PolyCollection(
            [regions.polygons[n] for n in won],
            facecolors=filled,
            edgecolors=filled,
            linewidths=0.5,
            antialiaseds=False,
            zorder=1,
        )
    )
    axes.add_collection(
        LineCollection(
            regions.borders,
            colors="white",
            linewidths=frame.scale.line,
            capstyle="round",
            zorder=2,
        )
    )


def _scale_axes(frame: Frame, shown: Map, across: Floats, up: Floats, right: float) -> None:
    """Scales, ticks at values that there are, words with units."""
    from matplotlib.ticker import NullLocator

    axes, em = frame.axes, frame.scale.em
    scale_counts(frame, shown.pe[0], shown.pe[-1], frame.scale.width - right - 5 * em)
    if (shown.values > 0).all():
        axes.set_yscale("log", base=2)
    ticks = shown.values[:: -(-len(shown.values) // MOST_TICKS)]
    axes.set_yticks(ticks, [format_number(shown.axis, each) for each in ticks])
    axes.yaxis.set_minor_locator(NullLocator())
    axes.set_ylabel(_name_axis(shown.axis), labelpad=2)
    axes.set_xlim(across[0], across[-1])
    axes.set_ylim(up[0], up[-1])


def _name_axis(axis: str) -> str:
    """An axis in words; units stand at its ticks."""
    meaning = {"batch": "samples a replica, b"}.get(axis, axis.replace("_", " "))
    return meaning if axis in PARAMETERS else axis


def _write_inside(frame: Frame, shown: Map, regions: Regions, winner: int, ink: str) -> None:
    """Write a winner's name into its region, where that is wide enough."""
    from scipy.ndimage import distance_transform_edt

    region = np.pad(shown.winners == winner, 1)
    depth: Any = distance_transform_edt(region)[1:-1, 1:-1]
    deepest = np.argwhere(depth == depth.max())
    centre = np.median(np.argwhere(shown.winners == winner), axis=0)
    row, column = deepest[np.abs(deepest - centre).sum(axis=1).argmin()]
    text = frame.axes.text(
        shown.pe[column],
        shown.values[row],
        escape_invisible(shown.strategies[winner]),
        color=ink,
        fontsize=frame.scale.small,
        ha="center",
        va="center",
        parse_math=False,
        zorder=4,
    )
    if not _is_within(frame, regions, winner, frame.find_box(text)):
        text.remove()


def _is_within(
    frame: Frame, regions: Regions, winner: int, box: tuple[float, float, float, float]
) -> bool:
    """Whether all of a box [pixel] lies in a winner's region."""
    from matplotlib.path import Path

    left, low, right, high = box
    left, right = left - GAP, right + GAP
    corners = np.array([(x, y) for x in np.linspace(left, right, 20) for y in (low, high)])
    inside = np.zeros(len(corners), bool)
    for polygon, owner in zip(regions.polygons, regions.winners, strict=True):
        if owner == winner:
            drawn = Path(frame.axes.transData.transform(polygon))
            # Points on a side are of one of the polygons that share it.
            inside |= drawn.contains_points(corners, radius=0.5)
            inside |= drawn.contains_points(corners, radius=-0.5)
    return bool(inside.all())
