"""Predicted next to measured iterations, as stacked bars of compute and communication.

After figure 1 of Kahira et al., HPDC 2021: a panel for each model and strategy, a pair of bars for
each run over p, the accuracy of its total above. Colours are those of Okabe and Ito, which the
colour-blind tell apart; predictions are pale and hatched, too.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sweep.show.plots.figures import make_figure, save_figure
from sweep.show.visible import escape_lines

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Row = Mapping[str, Any]

# Okabe and Ito, Color Universal Design, 2008: blue, orange; and a grey.
COMPUTE, COMMUNICATION, WHOLE = "#0072B2", "#E69F00", "#8C8C8C"
MEASURED: dict[str, Any] = {"edgecolor": "white", "linewidth": 0.5}
PREDICTED: dict[str, Any] = {**MEASURED, "alpha": 0.5, "hatch": "/////"}

# A slot is the room of one run. Sizes [inch].
SLOT = 0.5
SLOTS_A_LINE = 25
LEFT, RIGHT, ABOVE, BELOW = 0.55, 0.1, 0.5, 0.45  # around a panel: its labels
HEIGHT = 1.7  # of a panel without its labels
LEGEND = 0.45
BAR = 0.4  # [slot]
SMALL, NORMAL = 7, 8  # [pt]


@dataclass(frozen=True)
class Panel:
    """The runs of one model and strategy, p ascending."""

    title: str
    rows: tuple[Row, ...]

    @property
    def slots(self) -> int:
        """Room of the bars, or of the title if that needs more."""
        return max(len(self.rows), 3)

    @property
    def width(self) -> float:
        return LEFT + SLOT * self.slots + RIGHT


def plot_accuracy(rows: Sequence[Row], path: Path) -> None:
    """Draw the rows of a comparison into a file; its suffix chooses the format.

    RunError: matplotlib is not installed. InputError: a file that cannot be written.
    """
    lines = tuple(_arrange_lines(make_panels(rows)))
    width = max(sum(panel.width for panel in line) for line in lines)
    height = LEGEND + len(lines) * (ABOVE + HEIGHT + BELOW)
    figure = make_figure(width, height)
    for number, line in enumerate(lines):
        _draw_line(figure, line, height - LEGEND - number * (ABOVE + HEIGHT + BELOW))
    _draw_legend(figure, rows)
    save_figure(figure, path)


def make_panels(rows: Sequence[Row]) -> tuple[Panel, ...]:
    """Rows by model, data set, strategy and batch; models in the order of their appearance."""
    models = list(dict.fromkeys(row["model"] for row in rows))
    runs: dict[str, list[Row]] = {}
    for row in sorted(rows, key=lambda row: (models.index(row["model"]), row["dataset"])):
        runs.setdefault(_make_title(row), []).append(row)
    return tuple(
        Panel(title, tuple(sorted(rows, key=lambda row: row["p"]))) for title, rows in runs.items()
    )


def _make_title(row: Row) -> str:
    """What a panel's runs share; one PE is what data parallelism begins with."""
    strategy = "data" if row["strategy"] == "serial" else row["strategy"]
    return f"{row['model']}, {row['dataset']}\n{strategy}, b = {row['samples_per_replica']:,}"


def _arrange_lines(all_panels: Sequence[Panel]) -> Iterator[tuple[Panel, ...]]:
    """Lines of as many panels side by side as fit."""
    line: list[Panel] = []
    for panel in all_panels:
        if line and sum(each.slots for each in (*line, panel)) > SLOTS_A_LINE:
            yield tuple(line)
            line = []
        line.append(panel)
    yield tuple(line)


def _draw_line(figure: "Figure", line: Sequence[Panel], top: float) -> None:
    """Draw panels side by side, their labels [inch] below `top`."""
    width, height = figure.get_size_inches()
    left = 0.0
    for panel in line:
        corner = ((left + LEFT) / width, (top - ABOVE - HEIGHT) / height)
        size = (SLOT * len(panel.rows) / width, HEIGHT / height)
        _draw_panel(figure.add_axes((*corner, *size)), panel)
        left += panel.width


def _draw_panel(axes: "Axes", panel: Panel) -> None:
    """Draw a pair of bars for each run, its accuracy above."""
    tops = [_draw_pair(axes, slot, row) for slot, row in enumerate(panel.rows)]
    for slot, (row, top) in enumerate(zip(panel.rows, tops, strict=True)):
        axes.annotate(
            _format_accuracy(row),
            (slot, top),
            (0, 3),
            textcoords="offset points",
            ha="center",
            size=SMALL,
        )
    # Names are no formulas, whatever dollars are in them.
    axes.set_title(escape_lines(panel.title), fontsize=NORMAL, loc="left", parse_math=False)
    axes.set_xlim(-0.55, len(panel.rows) - 0.45)
    # Room for the accuracy above the highest bar.
    axes.set_ylim(0, 1.15 * max(tops))
    axes.set_xticks(range(len(panel.rows)), [f"{row['p']}" for row in panel.rows])
    axes.set_xlabel("p", fontsize=NORMAL, labelpad=1)
    axes.set_ylabel("s per iteration", fontsize=SMALL, labelpad=2)
    axes.tick_params(labelsize=SMALL, length=2)
    axes.spines[["top", "right"]].set_visible(False)


def _draw_pair(axes: "Axes", slot: int, row: Row) -> float:
    """Draw the two bars of a run; returns the height of the higher one."""
    predicted = _draw_stack(axes, slot - BAR / 2, row, "predicted", PREDICTED)
    measured = _draw_stack(axes, slot + BAR / 2, row, "measured", MEASURED)
    if row["p10"] is None or row["p90"] is None:
        return max(predicted, measured)
    ends = [[max(0.0, predicted - row["p10"])], [max(0.0, row["p90"] - predicted)]]
    axes.errorbar(slot - BAR / 2, predicted, ends, color="black", capsize=2, linewidth=0.8)
    return float(max(predicted, measured, row["p90"]))


def _draw_stack(axes: "Axes", x: float, row: Row, name: str, style: Mapping[str, Any]) -> float:
    """Draw compute and communication upon it, or the total where they are not known.

    Returns the height.
    """
    total, comp, comm = (row[f"{name}_{part}"] for part in ("total", "comp", "comm"))
    if total is None:
        return 0.0
    if comp is None or comm is None:
        axes.bar(x, total, BAR, color=WHOLE, **style)
        return float(total)
    axes.bar(x, comp, BAR, color=COMPUTE, **style)
    axes.bar(x, comm, BAR, bottom=comp, color=COMMUNICATION, **style)
    return float(comp + comm)


def _format_accuracy(row: Row) -> str:
    return "-" if row["accuracy_total"] is None else f"{row['accuracy_total']:.0%}"


def _draw_legend(figure: "Figure", rows: Sequence[Row]) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles: list[Any] = [
        Patch(facecolor=COMPUTE, label="compute, predicted", **PREDICTED),
        Patch(facecolor=COMMUNICATION, label="communication, predicted", **PREDICTED),
        Patch(facecolor=COMPUTE, label="compute, measured", **MEASURED),
        Patch(facecolor=COMMUNICATION, label="communication, measured", **MEASURED),
    ]
    if any(row["measured_comp"] is None or row["measured_comm"] is None for row in rows):
        handles.append(Patch(facecolor=WHOLE, label="measured in total only", **MEASURED))
    if any(row["p10"] is not None for row in rows):
        handles.append(Line2D([], [], color="black", marker="|", label="80% interval"))
    handles.append(Line2D([], [], linestyle="", label="above each pair: accuracy of the total"))
    figure.legend(handles=handles, loc="upper center", ncols=4, fontsize=NORMAL, frameon=False)
