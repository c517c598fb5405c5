"""Timeline: what each stage of a pipeline, or each device of a placement, does in an iteration."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, takewhile
from typing import Any, NamedTuple, NoReturn

import matplotlib as mpl
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from paradl.grids.entries.strategies import Strategy
from paradl.grids.reading.errors import InputError, format_count
from paradl.grids.reading.units import format_quantity
from paradl.kernels.machine.rates import BACKWARD as BACKWARD_SHARE
from paradl.kernels.work.schedules import SCHEDULES
from paradl.sweep.cases.degrees import find_layout, list_degrees
from paradl.sweep.cases.layout_cells import LayoutCell
from paradl.sweep.cells.selection import Selection, locate_row
from paradl.sweep.cells.source import Source
from paradl.sweep.cube.derived_quantities import Paradl
from paradl.sweep.plots.breakdown import describe_breakdown
from paradl.sweep.plots.figures import add_legend, make_axes, scale_unit
from paradl.sweep.plots.looks import MESSAGE, PASS_LOOKS, Size, mix, styled
from paradl.sweep.plots.passes import BACKWARD, FORWARD, REST, PipelineRun, list_passes
from paradl.sweep.plots.slices import open_slice, read_row, read_slice, write_title
from paradl.sweep.show.columns import format_percent

MOST_PASSES = 4096  # of micro-batches through chunks, in all stages
LANE = 2.2  # height in lines of text
BAR = 0.7  # of a lane
MOST_LINES = 400  # messages; more lines would hide the operators


class TimeSpan(NamedTuple):
    """What a lane does from start to end [s]. shade: 0 to 1, of how pale it is; text: inside."""

    lane: int
    kind: str
    start: float
    end: float
    shade: float = 0.0
    text: str = ""


@dataclass(frozen=True)
class Timeline:
    """Spans of lanes until `end` [s]; messages: their start and end, each a time and a lane."""

    title: str
    lanes: Sequence[str]
    spans: Sequence[TimeSpan]
    end: float
    note: str = ""
    messages: Sequence[tuple[tuple[float, int], tuple[float, int]]] = ()


def describe_timeline(source: Source, selection: Selection | None = None) -> Timeline:
    """Compute when each stage of one pipeline runs its passes, as long as the predicted ones.

    InputError: an axis has several values, or the strategy has no pipeline, or one that is not
    drawn. NothingFeasibleError: the cell is forbidden.
    """
    cells = read_slice(open_slice(source, selection), ())
    grid = Paradl(cells).grid
    row = read_row(grid, cells)
    strategy = grid.strategy(locate_row(grid, row))
    terms = {
        name: float(seconds[0])
        for name, seconds in describe_breakdown(source, selection).terms.items()
    }
    layout = find_layout(grid, row)
    pipeline, busy = _find_pipeline(strategy, list_degrees(grid, row), layout, terms)
    title = f"{strategy.label}: {write_title(cells, shown=('strategy',))}"
    if layout:
        place = write_title(cells, shown=("strategy", *grid.rows))
        title = f"{strategy.base}: {place}, {layout.words}"
    passes = [*list_passes(pipeline)]
    chunks = max(pipeline.chunks - 1, 1)
    spans = [
        TimeSpan(
            turn.stage,
            turn.kind,
            turn.start,
            turn.end,
            shade=0.5 * turn.chunk / chunks,
            text=str(turn.micro_batch + 1),
        )
        for turn in passes
    ]
    end, total = max(turn.end for turn in passes), sum(terms.values())
    # The passes are what one looks at, so they have at least a quarter of the picture.
    until = min(max(end, total), 4 * end)
    rest = [TimeSpan(stage, REST, end, until) for stage in range(pipeline.stages) if total > end]
    cut = f"; {REST}: until {format_quantity(total, 's')}" if total > until else ""
    idle = 1 - busy / end
    return Timeline(
        f"an iteration of {format_quantity(total, 's')}, {title}",
        [f"stage {stage}" for stage in range(pipeline.stages)],
        [*spans, *rest],
        until,
        f"{pipeline.schedule}, {format_count(pipeline.micro_batches, 'micro-batch')}: stages wait "
        f"{format_percent(idle)} of the passes"
        + "; pale: later chunks" * (pipeline.chunks > 1)
        + cut,
    )


def _find_pipeline(
    strategy: Strategy,
    degrees: Mapping[str, Any],
    layout: LayoutCell | None,
    terms: Mapping[str, float],
) -> tuple[PipelineRun, float]:
    """Find a cell's pipeline, and the seconds in which its slowest stage is busy."""
    sizes = degrees.get("degrees") or dict.fromkeys(strategy.parts, degrees["group_size"])
    stages, number, chunks, follow = sizes.get("pipeline", 1), degrees["segment_count"] or 1, 1, 0
    schedule = strategy.schedule
    if strategy.chunks > 1:
        chunks, follow = strategy.chunks, stages
    if layout:
        chunks, follow = int(layout.layout.chunks[0]), int(layout.layout.passes[0])
    # The terms before the bubble are those of a stage's passes.
    busy = sum(terms[name] for name in takewhile(lambda name: name != "pipeline_bubble", terms))
    again = terms.get("recomputation", 0.0)
    most = MOST_PASSES // (stages * chunks)
    if stages == 1:
        _refuse(f"{strategy.label} has one stage here", "choose a pipeline of several PEs")
    if SCHEDULES[schedule].is_folded:
        _refuse(f"schedule {schedule} is not drawn", "choose gpipe, 1f1b or zb1p")
    if number > most:
        _refuse(f"{number:,} micro-batches are too many to draw", f"choose at most {most:,}")
    # The backward pass has twice the work, and computes again what was not kept.
    forward = (busy - again) / (1 + BACKWARD_SHARE) / number
    backward = busy / number - forward
    return PipelineRun(schedule, stages, number, forward, backward, chunks, follow), busy


def _refuse(reason: str, advice: str) -> NoReturn:
    raise InputError(reason, where="selection", advice=advice)


@styled
def draw_timeline(timeline: Timeline) -> Figure:
    """Draw a lane for each stage or device, the first on top."""
    rows = LANE * len(timeline.lanes)
    figure, axes = make_axes(timeline.title, timeline.note, rows, exactly=True)
    axes.set(xlim=(0, timeline.end), ylim=(len(timeline.lanes) - 0.5, -0.5))
    axes.set_yticks(range(len(timeline.lanes)), timeline.lanes)
    scale_unit(axes.xaxis, "time since the iteration began", timeline.end, "s")
    kinds = {span.kind for span in timeline.spans}
    keys: list[Artist] = [
        Patch(label=kind, **look) for kind, look in PASS_LOOKS.items() if kind in kinds
    ]
    for span, group in groupby(sorted(timeline.spans, key=_look), _look):
        lane, kind, shade = span
        look = PASS_LOOKS[kind] | {"facecolor": mix(PASS_LOOKS[kind]["facecolor"], shade)}
        bars = [(one.start, one.end - one.start) for one in group]
        axes.broken_barh(bars, (lane - BAR / 2, BAR), linewidth=0.2, edgecolor="white", **look)
    if 0 < len(timeline.messages) <= MOST_LINES:
        keys.append(_draw_messages(axes, timeline))
    axes.spines["left"].set_visible(False)
    axes.tick_params(axis="y", length=0)
    add_legend(figure, keys)
    _write_texts(figure, axes, timeline.spans)
    return figure


def _look(span: TimeSpan) -> tuple[int, str, float]:
    return span.lane, span.kind, span.shade


def _draw_messages(axes: Axes, timeline: Timeline) -> Line2D:
    """Draw a line per message, from the edge of a lane to that of another; return their key."""
    lines = []
    for (sent, sender), (come, receiver) in timeline.messages:
        side = BAR / 2 if receiver > sender else -BAR / 2
        lines.append([(sent, sender + side), (come, receiver - side)])
    axes.add_collection(LineCollection(lines, colors=MESSAGE, linewidths=0.7, zorder=3))
    return Line2D([], [], color=MESSAGE, linewidth=0.7, label="messages")


def _write_texts(figure: Figure, axes: Axes, spans: Sequence[TimeSpan]) -> None:
    """Write texts into spans, if all have room for theirs."""
    figure.draw_without_rendering()  # makes the layout
    written = [span for span in spans if span.text]
    small = mpl.rcParams["font.size"] * figure.dpi / 72
    per_second = axes.get_window_extent().width / axes.get_xlim()[1]
    if all((one.end - one.start) * per_second > 0.8 * small * len(one.text) for one in written):
        for one in written:
            middle = (one.start + one.end) / 2, one.lane
            axes.text(*middle, one.text, ha="center", va="center", color="black", size="x-small")


def draw_placement(answer: Mapping[str, Any], size: Size = "page", dark: bool = False) -> Figure:
    """Draw the answer of `place`."""
    proof = "proven" if answer["proven"] else f"gap {format_percent(answer['gap'])}"
    lanes = {pe: device for device, pe in enumerate(answer["pes"])}
    spans = [
        TimeSpan(
            row["device"], kind, row[f"{kind}_start"], row[f"{kind}_end"], shade=0.4 * (number % 2)
        )
        for number, row in enumerate(answer["operators"])
        for kind in (FORWARD, BACKWARD)
        if row[f"{kind}_end"] > row[f"{kind}_start"]
    ]
    messages = [
        ((row["sent"], lanes[row["from"]]), (row["come"], lanes[row["to"]]))
        for row in answer["messages"]
    ]
    timeline = Timeline(
        f"{answer['graph']} on {answer['system']}: a step of {1e3 * answer['step_time']:.4g} ms, "
        f"{answer['speedup']:.3f} times as fast as one device ({proof})",
        [f"PE {pe}" for pe in answer["pes"]],
        spans,
        answer["step_time"],
        "two shades of a colour separate operators",
        messages,
    )
    return draw_timeline(timeline, size, dark)
