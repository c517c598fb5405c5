"""Memory drawn: bars by part against the line of what a PE has.

Parts are greys and hatches, since colours are the strategies'.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from grids.reading.units import PREFIXES, format_quantity
from sweep.questions.pictures.memory import Bar, Memory
from sweep.show.plots.frames import BEYOND, SCALES, Frame, Size, make_frame
from sweep.show.plots.keys import Key, write_keys
from sweep.show.visible import escape_invisible

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EDGE: Mapping[str, Any] = {"edgecolor": "black", "linewidth": 0.5, "hatch_linewidth": 0.4}
LOOKS: Mapping[str, Mapping[str, Any]] = {
    "activations": {"facecolor": "#404040", **EDGE},
    "parameters": {"facecolor": "#8A8A8A", **EDGE},
    "weights": {"facecolor": "#8A8A8A", **EDGE},
    "gradients": {"facecolor": "#B8B8B8", "hatch": "/////", **EDGE},
    "optimizer": {"facecolor": "#DEDEDE", "hatch": ".....", **EDGE},
    "reserved": {"facecolor": "#FFFFFF", **EDGE},
}
ROW = 1.7  # [em] of a bar and the gap to the next
AROUND = 6  # [em] of title, capacity, ticks and label
FEWEST = 6  # rows: of fewer bars the names of parts need more room


def draw_memory(memory: Memory, size: Size = "page") -> "Figure":
    """The figure of some bars, the first at the top."""
    em = SCALES[size].em
    frame = make_frame(size, (max(len(memory.bars), FEWEST) * ROW + AROUND) * em)
    names = list(dict.fromkeys(name for bar in memory.bars for name in bar.parts))
    keys = [Key(name, LOOKS[name]) for name in names if any(_has(bar, name) for bar in memory.bars)]
    above = frame.write_title(f"memory of the fullest PE: {memory.place}")
    right = frame.measure_words([key.name for key in keys], frame.scale.small) + 2.6 * em
    _draw_bars(frame, memory)
    frame.settle(right, above + 1.2 * em, frame.measure_note(_write_note(memory)))
    _draw_capacity(frame, memory.bars[0].capacity, max(bar.total for bar in memory.bars))
    write_keys(frame, keys)
    frame.write_note(_write_note(memory))
    return frame.figure


def _has(bar: Bar, name: str) -> bool:
    return bar.parts.get(name, 0) > 0


def _write_note(memory: Memory) -> str:
    """Who has no bar, and why."""
    causes = dict.fromkeys(memory.forbidden.values())
    parts = [
        f"{', '.join(name for name, each in memory.forbidden.items() if each == cause)} ({cause})"
        for cause in causes
    ]
    told = [f"not drawn: {'; '.join(parts)}"] if parts else []
    beyond = [f"{BEYOND}: {', '.join(memory.beyond)}"] if memory.beyond else []
    return "; ".join([*told, *beyond])


def _choose_unit(memory: Memory) -> tuple[float, str]:
    """Bytes of the unit of the axis, and its prefix."""
    most = max(bar.total for bar in memory.bars)
    return next((each for each in PREFIXES if most >= each[0]), (1.0, ""))


def _draw_bars(frame: Frame, memory: Memory) -> None:
    """Draw the bars, what they add up to behind each, and the axes."""
    axes, (unit, prefix) = frame.axes, _choose_unit(memory)
    for number, bar in enumerate(memory.bars):
        left = 0.0
        for name, size in bar.parts.items():
            axes.barh(number, size / unit, 0.7, left / unit, **LOOKS[name])
            left += size
        axes.annotate(
            _format_total(bar),
            (bar.total / unit, number),
            (0.3 * frame.scale.small, 0),
            textcoords="offset points",
            va="center",
            fontsize=frame.scale.small,
            fontweight="normal" if bar.fits else "bold",
            # On the line of the capacity it has to be read, too.
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.4},
            zorder=4,
        )
    axes.set_yticks(range(len(memory.bars)), [escape_invisible(bar.name) for bar in memory.bars])
    for label in axes.get_yticklabels():
        label.set_parse_math(False)
    axes.set_ylim(len(memory.bars) - 0.4, -0.6)
    most = max(bar.total for bar in memory.bars)
    widest = frame.measure_words([_format_total(bar) for bar in memory.bars], frame.scale.small)
    # Room behind the longest bar for what it adds up to; the axes have about 0.55 of the figure.
    share = min(0.6, (widest + frame.scale.em) / (0.55 * frame.scale.width))
    axes.set_xlim(0, max(most / (1 - share), 1.05 * memory.bars[0].capacity) / unit)
    axes.set_xlabel(f"memory a PE [{prefix}B]", labelpad=1)


def _format_total(bar: Bar) -> str:
    """What a bar adds up to; of how much, where that is too much."""
    total, capacity = _format_bytes(bar.total), _format_bytes(bar.capacity)
    if bar.fits:
        return total
    number, _, unit = total.partition(" ")
    return f"{number if capacity.endswith(f' {unit}') else total} of {capacity}"


def _format_bytes(size: float) -> str:
    """Bytes in three digits."""
    return format_quantity(float(f"{size:.3g}"), "B")


def _draw_capacity(frame: Frame, capacity: float, most: float) -> None:
    """Draw the line of what a PE has, its size above the axes."""
    size, _ = next((each for each in PREFIXES if most >= each[0]), (1.0, ""))
    # A white line below it, so that it is seen on dark bars, too.
    for colour, dash in (("white", "-"), ("black", (0, (3, 1.5)))):
        frame.axes.axvline(
            capacity / size, color=colour, linestyle=dash, linewidth=frame.scale.line, zorder=3
        )
    frame.axes.annotate(
        f"capacity {_format_bytes(capacity)}",
        (capacity / size, 1),
        (0, 0.2 * frame.scale.small),
        xycoords=("data", "axes fraction"),
        textcoords="offset points",
        ha="center",
        va="bottom",
        fontsize=frame.scale.small,
    )
