"""Predicted and measured iterations side by side, as stacked bars of compute and communication.

After figure 1 of Kahira et al., HPDC 2021: one panel per model and strategy with a pair of bars per
run, over p, and the accuracy of the total above each pair. Predictions are pale and hatched.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from sweep.plots.figures import set_tick_sizes, use_style
from sweep.plots.looks import BLUE, ORANGE
from sweep.show.visible import escape_lines

Row = Mapping[str, Any]

COMPUTE, COMMUNICATION, WHOLE = BLUE, ORANGE, "#8C8C8C"
MEASURED: dict[str, Any] = {"edgecolor": "white", "linewidth": 0.5}
PREDICTED: dict[str, Any] = {**MEASURED, "alpha": 0.5, "hatch": "/////"}

# Sizes [inch]; a slot is the width of one run's pair of bars.
SLOT = 0.5
SLOTS_PER_LINE = 25
LEAST_SLOTS = 3  # of a panel, so that its title fits
HEIGHT, LEGEND = 2.5, 0.55
LEAST_WIDTH = 7.0  # the legend needs it
BAR = 0.4  # [slot]


@dataclass(frozen=True)
class Panel:
    """The runs of one model and strategy, p ascending."""

    title: str
    rows: tuple[Row, ...]

    @property
    def slots(self) -> int:
        """Slots of the bars, or of the title if it needs more."""
        return max(len(self.rows), LEAST_SLOTS)


def draw_accuracy(rows: Sequence[Row]) -> Figure:
    """Draw the rows of a comparison, in lines of panels."""
    lines = tuple(_arrange_lines(make_panels(rows)))
    slots = max(sum(panel.slots for panel in line) for line in lines)
    size = max(LEAST_WIDTH, 1.25 * SLOT * slots), LEGEND + HEIGHT * len(lines)
    with use_style("page"):
        figure = Figure(figsize=size)
        _draw_legend(figure, rows)
        parts = figure.subfigures(len(lines), squeeze=False)[:, 0]
        for part, line in zip(parts, lines, strict=True):
            _draw_line(part, line, slots)
    return figure


def make_panels(rows: Sequence[Row]) -> tuple[Panel, ...]:
    """Group rows by model, data set, strategy and batch; models keep the order of the rows."""
    models = list(dict.fromkeys(row["model"] for row in rows))
    runs: dict[str, list[Row]] = {}
    for row in sorted(rows, key=lambda row: (models.index(row["model"]), row["dataset"])):
        runs.setdefault(_make_title(row), []).append(row)
    return tuple(
        Panel(title, tuple(sorted(rows, key=lambda row: row["p"]))) for title, rows in runs.items()
    )


def _make_title(row: Row) -> str:
    # A serial run is the first point of data parallelism.
    strategy = "data" if row["strategy"] == "serial" else row["strategy"]
    return f"{row['model']}, {row['dataset']}\n{strategy}, b = {row['samples_per_replica']:,}"


def _arrange_lines(panels: Sequence[Panel]) -> Iterator[tuple[Panel, ...]]:
    line: list[Panel] = []
    for panel in panels:
        if line and sum(member.slots for member in (*line, panel)) > SLOTS_PER_LINE:
            yield tuple(line)
            line = []
        line.append(panel)
    yield tuple(line)


def _draw_line(part: SubFigure, line: Sequence[Panel], slots: int) -> None:
    """Draw panels side by side; a shorter line ends in empty slots."""
    ratios = [panel.slots for panel in line]
    rest = slots - sum(ratios)
    columns = part.add_gridspec(1, len(line) + 1, width_ratios=[*ratios, max(rest, 0.01)])
    for number, panel in enumerate(line):
        _draw_panel(part.add_subplot(columns[number]), panel)


def _draw_panel(axes: Axes, panel: Panel) -> None:
    tops = [_draw_pair(axes, slot, row) for slot, row in enumerate(panel.rows)]
    for slot, (row, top) in enumerate(zip(panel.rows, tops, strict=True)):
        offset: Any = {"xytext": (0, 3), "textcoords": "offset points"}
        axes.annotate(_format_accuracy(row), (slot, top), ha="center", **offset)
    axes.set_title(escape_lines(panel.title), loc="left")
    axes.set_xlim(-0.55, panel.slots - 0.45)
    # Room for the accuracy above the highest bar.
    axes.set_ylim(0, 1.15 * max(tops))
    axes.set_xticks(range(len(panel.rows)), [f"{row['p']}" for row in panel.rows])
    axes.spines["bottom"].set_bounds(-0.55, len(panel.rows) - 0.45)
    axes.set_xlabel("p", loc="left")
    axes.set_ylabel("s per iteration")
    set_tick_sizes(axes, "page")


def _draw_pair(axes: Axes, slot: int, row: Row) -> float:
    """Draw the two bars of a run; return the height of the higher one."""
    predicted = _draw_stack(axes, slot - BAR / 2, row, "predicted", PREDICTED)
    measured = _draw_stack(axes, slot + BAR / 2, row, "measured", MEASURED)
    if row["p10"] is None or row["p90"] is None:
        return max(predicted, measured)
    ends = [[max(0.0, predicted - row["p10"])], [max(0.0, row["p90"] - predicted)]]
    axes.errorbar(slot - BAR / 2, predicted, ends, color="black", capsize=2, linewidth=0.8)
    return float(max(predicted, measured, row["p90"]))


def _draw_stack(axes: Axes, x: float, row: Row, name: str, style: Mapping[str, Any]) -> float:
    """Stack communication on compute, or draw the total if they are unknown; return the height."""
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


def _draw_legend(figure: Figure, rows: Sequence[Row]) -> None:
    keys: list[Artist] = [
        Patch(facecolor=COMPUTE, label="compute, predicted", **PREDICTED),
        Patch(facecolor=COMMUNICATION, label="communication, predicted", **PREDICTED),
        Patch(facecolor=COMPUTE, label="compute, measured", **MEASURED),
        Patch(facecolor=COMMUNICATION, label="communication, measured", **MEASURED),
    ]
    if any(row["measured_comp"] is None or row["measured_comm"] is None for row in rows):
        keys.append(Patch(facecolor=WHOLE, label="measured in total only", **MEASURED))
    if any(row["p10"] is not None for row in rows):
        keys.append(Line2D([], [], color="black", marker="|", label="80 % interval"))
    keys.append(Line2D([], [], linestyle="", label="above each pair: accuracy of the total"))
    figure.legend(handles=keys, loc="outside upper left", ncols=3)
