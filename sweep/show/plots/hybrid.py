"""Speed-up of the whole training over PEs: data parallelism, hybrids, and where they cross.

After the figures of Pal et al., IEEE Micro 2019. Bands are 80 % intervals; batches beyond the
measured ones are hollow. Strategies look as in every picture (`sweep.show.plots.colours`).
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sweep.show.plots.colours import Look, choose_looks
from sweep.show.plots.figures import make_figure, save_figure
from sweep.show.visible import escape_lines

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Row = Mapping[str, Any]

WIDTH, HEIGHT = 6.0, 4.2  # [inch], 900 pixels wide
SMALL, NORMAL = 8, 9  # [pt]
MOST_TICKS = 15  # up to 16,384 PEs


def plot_hybrid(answer: Mapping[str, Any], path: Path) -> None:
    """Draw what `hybrid` answers into a file; its suffix chooses the format.

    RunError: matplotlib is not installed. InputError: a file that cannot be written.
    """
    figure = make_figure(WIDTH, HEIGHT)
    axes = figure.add_axes((0.09, 0.12, 0.89, 0.78))
    names = list(dict.fromkeys(row["strategy"] for row in answer["rows"]))
    looks = choose_looks(names)
    for name in names:
        rows = [row for row in answer["rows"] if row["strategy"] == name]
        _draw_line(axes, [row for row in rows if row["speedup"]], name, looks[name])
    for crossover in answer["crossovers"]:
        if crossover["against"] == "same" and crossover["pe"] is not None:
            name = crossover["strategy"]
            _mark_crossover(axes, crossover, names.index(name), looks[name].colour)
    _label_axes(axes, answer)
    save_figure(figure, path)


def _draw_line(axes: "Axes", rows: Sequence[Row], name: str, look: Look) -> None:
    """Draw speed-ups with their band; hollow where the batch was not measured."""
    colour, marker = look.colour, look.marker
    counts = [row["pe"] for row in rows]
    low, high = ([row[end] for row in rows] for end in ("p10", "p90"))
    axes.fill_between(counts, low, high, color=colour, alpha=0.13, linewidth=0)
    # An underscore ahead would keep a name out of the legend.
    label = escape_lines(name) or " "
    axes.plot(
        counts,
        [row["speedup"] for row in rows],
        color=colour,
        linestyle=look.dash,
        linewidth=1.4,
        label=label,
        zorder=3,
    )
    for row in rows:
        face = "white" if row["extrapolated"] else colour
        axes.plot(
            row["pe"], row["speedup"], marker, color=colour, markerfacecolor=face, ms=5, zorder=4
        )


def _mark_crossover(axes: "Axes", crossover: Row, number: int, colour: str) -> None:
    """Draw a line down from where the hybrid begins to win on as many PEs, with the count."""
    count, height = crossover["pe"], crossover["speedup"]
    axes.vlines(count, 0, height, color=colour, linestyle=":", linewidth=1.2, zorder=2)
    axes.annotate(
        f"wins from {count:,}",
        (count, 0),
        (3, 6 + 10 * (number - 1)),
        xycoords=("data", "axes fraction"),
        textcoords="offset points",
        color=colour,
        size=SMALL,
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.5},
    )


def _label_axes(axes: "Axes", answer: Mapping[str, Any]) -> None:
    """Scales, ticks at the counts that are told of, the title and the legend."""
    from matplotlib.lines import Line2D
    from matplotlib.ticker import NullLocator, StrMethodFormatter

    axes.set_xscale("log", base=2)
    axes.set_yscale("log", base=2)
    counts = _choose_ticks(sorted({row["pe"] for row in answer["rows"]}))
    axes.set_xticks(counts, [f"{count:,}" for count in counts])
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("PEs", fontsize=NORMAL, labelpad=1)
    axes.set_ylabel("speed-up to the target over one PE", fontsize=NORMAL, labelpad=2)
    axes.tick_params(labelsize=SMALL, length=3)
    axes.grid(alpha=0.25, linewidth=0.5)
    axes.spines[["top", "right"]].set_visible(False)
    # Names are no formulas, whatever dollars are in them.
    axes.set_title(_make_title(answer), fontsize=NORMAL, loc="left", parse_math=False)
    hollow = Line2D([], [], color="grey", marker="o", markerfacecolor="white", linestyle="")
    hollow.set_label("batch beyond the measured ones")
    handles = [*axes.get_legend_handles_labels()[0], hollow]
    axes.legend(handles=handles, fontsize=SMALL, frameon=False, loc="upper left")


def _choose_ticks(counts: Sequence[int]) -> list[int]:
    """All counts where there is room, or those at equal steps on the list."""
    step = -(-len(counts) // MOST_TICKS)
    return list(counts[::step])


def _make_title(answer: Mapping[str, Any]) -> str:
    """What was trained, where, and what the bands are."""
    where = f" on {answer['system']}" if answer["system"] else ""
    title = f"{answer['model']}, {answer['dataset']}{where}, b = {answer['batch']:,}; bands: 80%"
    return escape_lines(title)
