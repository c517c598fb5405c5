"""Labels: what slopes in twelve inputs cost beside the values alone, and rows a second of a stream.

One run times both in turn; the goal of slopes is 6 times the values for each of four targets.
"""

from functools import partial
from typing import Any

import jax

from benchmarks.effort import Effort
from benchmarks.report import Report, Row, at_most
from benchmarks.timing import Action, interleaved
from kernels.compiled import put_on_device
from kernels.labels import label_points
from sweep.samples.draw import draw_slices
from sweep.samples.space import Space, read_space
from sweep.samples.stream import batches
from sweep.samples.tables import make_tables

POINTS = 4096
STREAMED = 65_536
INPUTS = (
    *("intra_bandwidth", "intra_latency", "overlap", "bucket", "jitter", "rail", "flow"),
    *("startup", "phi"),
)
SPACE: dict[str, Any] = {
    "axes": {
        "model": ["resnet50", "vgg16"],
        "dataset": "imagenet",
        "system": ["dgx1-v100", "dgx-a100"],
        "strategy": ["data", "data+filter:group=4", "data+pipeline:group=4"],
        "pe": {"pow2": [1, 1024]},
        "batch": {"loguniform": [8, 256]},
        "inter_bandwidth": {"loguniform": [1e9, 1e11]},
        "inter_latency": {"loguniform": [1e-6, 1e-4]},
    }
}


def measure(effort: Effort) -> Report:
    """Points a second with and without slopes, of each strategy; a stream's rows a second."""
    rows = []
    space = read_space(SPACE, INPUTS)
    for strategy, name in enumerate(space.grid.labels["strategy"]):
        rows += _compare(space, strategy, name, effort)
    stream = batches(SPACE, STREAMED)
    kinds = len(space.problems) * len(space.grid.strategies)
    for _ in range(kinds):  # all of them prepared, as far as chance has it
        next(stream)
    timing = interleaved(
        {"stream": lambda: jax.block_until_ready(next(stream))}, effort.short_rounds
    )
    rows.append(Row("a stream without slopes", STREAMED / timing["stream"].median, "rows/s"))
    return Report("labels", "times of values alone that slopes of four targets take", tuple(rows))


def _compare(space: Space, strategy: int, name: str, effort: Effort) -> list[Row]:
    tables = make_tables(space, space.problems[0], 0)
    draw = draw_slices(space, tables, space.problems[0], 0, 0, POINTS)
    asked = put_on_device((tables.points[strategy], draw.rows, dict(draw.values)))
    ways: dict[str, dict[str, Any]] = {
        "values": {},
        "slopes": {"parameters": space.inputs},
        "slopes and kinks": {"parameters": space.inputs, "marked": True},
    }
    actions: dict[str, Action] = {
        way: partial(_answer, asked, options) for way, options in ways.items()
    }
    timings = interleaved(actions, effort.short_rounds)
    return [
        Row(
            f"{name}: {way}, {len(space.inputs)} inputs",
            POINTS / timing.median,
            "rows/s",
            timing.median / timings["values"].median,
            "values",
            # Of four targets, six times the values each.
            goals=(at_most(timing.median / timings["values"].median, 24, ""),),
        )
        for way, timing in timings.items()
    ]


def _answer(asked: Any, options: dict[str, Any]) -> None:
    jax.block_until_ready(label_points(*asked, **options))
