"""Breakdown drawn: what an iteration's time is made of over p, terms stacked.

Computing is blue and plain, communicating orange and hatched, as in the pictures of accuracy; of
neighbours in a stack one is darker.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from grids.reading.units import PREFIXES
from kernels.terms import list_terms
from sweep.questions.pictures.breakdown import Breakdown
from sweep.show.plots.frames import BEYOND, Frame, Size, make_frame, scale_counts
from sweep.show.plots.keys import Key, write_keys
from sweep.show.visible import escape_invisible

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BLUES = ("#0072B2", "#8CC4E6", "#00476F", "#5FA9D3", "#B9DDF1", "#2E8BC0", "#DCEEF8")
ORANGES = ("#E69F00", "#FBE0A8", "#A87300", "#F2C45A", "#FFF0D0", "#C98B00", "#7A5400")
HATCHES = ("//", "..", "\\\\", "xx", "--", "++", "oo")
EDGE: Mapping[str, Any] = {"edgecolor": "black", "linewidth": 0.4, "hatch_linewidth": 0.4}
LOOKS: Mapping[str, Mapping[str, Any]] = {
    name: {"facecolor": colour, **EDGE}
    for name, colour in zip(list_terms("compute"), BLUES, strict=True)
} | {
    name: {"facecolor": colour, "hatch": hatch, **EDGE}
    for name, colour, hatch in zip(list_terms("communication"), ORANGES, HATCHES, strict=True)
}
MOST_BARS = 14
LEAST = 0.002  # of the highest stack: what is thinner throughout is no more than a line


def draw_breakdown(breakdown: Breakdown, size: Size = "page") -> "Figure":
    """The figure of one strategy's terms: bars of few PE counts, areas over many."""
    frame = make_frame(size)
    shown, rest = _split_terms(breakdown)
    keys = [Key(name.replace("_", " "), LOOKS[name]) for name in shown]
    above = frame.write_title(f"{escape_invisible(breakdown.strategy)}: {breakdown.place}")
    right = frame.measure_words([key.name for key in keys], frame.scale.small)
    right += 2.6 * frame.scale.em
    unit = _choose_unit(frame, breakdown)
    stacks = {name: breakdown.terms[name] / unit for name in shown}
    if len(breakdown.pe) <= MOST_BARS:
        _draw_bars(frame, breakdown, stacks)
    else:
        _draw_areas(frame, breakdown, stacks, right)
    frame.axes.set_ylim(0, 1.03 * float(breakdown.total.max()) / unit)
    note = _write_note(breakdown, rest)
    frame.settle(right, above, frame.measure_note(note))
    tops = np.cumsum([stack[-1] for stack in stacks.values()])
    middles = tops - 0.5 * np.array([stack[-1] for stack in stacks.values()])
    heights = [frame.find_inches(float(breakdown.pe[-1]), float(each))[1] for each in middles]
    write_keys(frame, keys, heights)
    frame.write_note(note)
    return frame.figure


def _split_terms(breakdown: Breakdown) -> tuple[list[str], list[str]]:
    """The terms that can be seen, and the others."""
    least = LEAST * float(breakdown.total.max())
    shown = [name for name, seconds in breakdown.terms.items() if seconds.max() > least]
    return shown, [name for name in breakdown.terms if name not in shown]


def _choose_unit(frame: Frame, breakdown: Breakdown) -> float:
    """Seconds of the unit of the upright axis, which is named."""
    most = float(breakdown.total.max())
    size, prefix = next((each for each in PREFIXES if most >= each[0]), (1.0, ""))
    size, prefix = (size, prefix) if size <= 1 else (1.0, "")
    frame.axes.set_ylabel(f"time of an iteration [{prefix}s]", labelpad=2)
    return size


def _draw_bars(frame: Frame, breakdown: Breakdown, stacks: Mapping[str, Any]) -> None:
    """A stacked bar for each PE count, side by side."""
    below = np.zeros(len(breakdown.pe))
    for name, stack in stacks.items():
        frame.axes.bar(range(len(below)), stack, 0.75, below, **LOOKS[name])
        below = below + stack
    # Of names that have no room every second, third ... is left out.
    most = frame.scale.width * 0.6 / (3.4 * frame.scale.small / 72)
    step = -(-len(below) // max(int(most), 1))
    ticks = range(len(below) - 1, -1, -step)
    frame.axes.set_xticks(ticks, [f"{breakdown.pe[each]:,.0f}" for each in ticks])
    frame.axes.set_xlabel("PEs, p", labelpad=1)
    frame.axes.set_xlim(-0.6, len(below) - 0.4)


def _draw_areas(
    frame: Frame, breakdown: Breakdown, stacks: Mapping[str, Any], right: float
) -> None:
    """Stacked areas over a logarithmic axis."""
    below = np.zeros(len(breakdown.pe))
    for name, stack in stacks.items():
        frame.axes.fill_between(breakdown.pe, below, below + stack, **LOOKS[name])
        below = below + stack
    room = frame.scale.width - right - 4 * frame.scale.em
    scale_counts(frame, float(breakdown.pe[0]), float(breakdown.pe[-1]), room)
    frame.axes.set_xlim(breakdown.pe[0], breakdown.pe[-1])


def _tell_beyond(breakdown: Breakdown) -> list[str]:
    """From which PE count on an iteration is of more samples than there are."""
    if breakdown.beyond is None or not breakdown.beyond.any():
        return []
    return [f"from {breakdown.pe[breakdown.beyond][0]:,.0f} {BEYOND}"]


def _write_note(breakdown: Breakdown, rest: list[str]) -> str:
    """What ends the picture, and what is too little to be seen."""
    last = f"{breakdown.pe[-1]:,.0f}"
    parts = [
        *([f"ends at {last}: {breakdown.cause}"] if breakdown.cause else []),
        *_tell_beyond(breakdown),
        *([f"too little to be seen: {', '.join(rest).replace('_', ' ')}"] if rest else []),
    ]
    return "; ".join(parts)
