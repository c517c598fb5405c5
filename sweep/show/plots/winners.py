"""Map drawn: who is the fastest where, in the strategies' colours, crossovers as lines between."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from grids.entries.parameters import PARAMETERS
from grids.models.layers import Floats
from sweep.questions.pictures.cells import format_number
from sweep.questions.pictures.winners import NOBODY, Map
from sweep.show.plots.colours import choose_ink, choose_looks
from sweep.show.plots.frames import Frame, Size, make_frame, scale_counts
from sweep.show.plots.keys import Key, write_keys
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
    _fill(frame, shown, [looks[name].colour for name in shown.strategies], across, up)
    _scale_axes(frame, shown, across, up, right)
    note = _write_note(shown)
    frame.settle(right, above, frame.measure_note(note))
    frame.write_note(note)
    write_keys(frame, keys)
    for winner in winners:
        colour = looks[shown.strategies[winner]].colour
        _write_inside(frame, shown, winner, choose_ink(colour))
    return frame.figure


def _write_note(shown: Map) -> str:
    """That some columns are left out."""
    if shown.counts == len(shown.pe):
        return ""
    return f"of {shown.counts:,} PE counts, {len(shown.pe)}: those with the most candidates"


def _order_winners(shown: Map) -> list[int]:
    """Positions of the strategies that win anywhere, the most frequent first."""
    counts = np.bincount(shown.winners[shown.winners != NOBODY], minlength=len(shown.strategies))
    return [int(each) for each in np.argsort(-counts, kind="stable") if counts[each]]


def _find_edges(values: Floats) -> Floats:
    """The borders of cells about values: in the middle between two, on the scale of the axis."""
    scaled = np.log2(values) if (values > 0).all() else values
    middle = (scaled[1:] + scaled[:-1]) / 2
    ends = np.concatenate([[2 * scaled[0] - middle[0]], middle, [2 * scaled[-1] - middle[-1]]])
    return np.asarray(np.exp2(ends) if (values > 0).all() else ends)


def _fill(frame: Frame, shown: Map, colours: Sequence[str], across: Floats, up: Floats) -> None:
    """Fill the cells, and draw lines between different winners."""
    from matplotlib.collections import LineCollection
    from matplotlib.colors import BoundaryNorm, ListedColormap
    from matplotlib.patches import Rectangle

    axes = frame.axes
    corner, size = (across[0], up[0]), (across[-1] - across[0], up[-1] - up[0])
    axes.add_patch(Rectangle(corner, *size, **HATCH, zorder=0))
    axes.pcolormesh(
        across,
        up,
        np.ma.masked_equal(shown.winners, NOBODY),
        cmap=ListedColormap(list(colours)),
        norm=BoundaryNorm(np.arange(len(colours) + 1) - 0.5, len(colours)),
        zorder=1,
    )
    borders = [*_list_borders(shown.winners, across, up)]
    axes.add_collection(LineCollection(borders, colors="white", linewidths=frame.scale.line))


def _list_borders(
    winners: NDArray[np.int64], across: Floats, up: Floats
) -> Iterator[list[tuple[float, float]]]:
    """The crossovers: borders of cells between two different winners."""
    for row, column in np.argwhere(winners[:, 1:] != winners[:, :-1]):
        yield [(across[column + 1], up[row]), (across[column + 1], up[row + 1])]
    for row, column in np.argwhere(winners[1:] != winners[:-1]):
        yield [(across[column], up[row + 1]), (across[column + 1], up[row + 1])]


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


def _write_inside(frame: Frame, shown: Map, winner: int, ink: str) -> None:
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
    if not _is_within(frame, shown, winner, frame.find_box(text)):
        text.remove()


def _is_within(
    frame: Frame, shown: Map, winner: int, box: tuple[float, float, float, float]
) -> bool:
    """Whether all of a box [pixel] lies in a winner's cells."""
    left, low, right, high = box
    corners = np.array([(x, y) for x in np.linspace(left, right, 20) for y in (low, high)])
    points = frame.axes.transData.inverted().transform(corners)
    columns = np.searchsorted(_find_edges(shown.pe), points[:, 0]) - 1
    rows = np.searchsorted(_find_edges(shown.values), points[:, 1]) - 1
    height, width = shown.winners.shape
    inside = (columns >= 0) & (columns < width) & (rows >= 0) & (rows < height)
    return bool(inside.all() and (shown.winners[rows, columns] == winner).all())
