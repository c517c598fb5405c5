"""Measure the cost of slopes in twelve inputs relative to values alone, and a stream's rows/s.

The goal for slopes is 6 times the values for each of four targets. A stream is compared with
writing the bytes of its features to memory.
"""

from functools import partial
from typing import Any

import jax
import numpy as np

from benchmarks.effort import Effort
from benchmarks.report import Report, Row, at_most
from benchmarks.timing import Action, interleaved
from kernels.blocks.labels import label_points
from kernels.compiled import put_on_device
from sweep.samples.draw import draw_slices, make_tables
from sweep.samples.space import SampleSpace, read_space
from sweep.samples.stream import batches

POINTS = 4096
# A stream evaluates the rows of eight such batches at a time.
STREAMED, BATCHES = 65_536, 8
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
    """Measure points per second with and without slopes by strategy, and a stream's rows/s."""
    rows = []
    space = read_space(SPACE, INPUTS)
    for strategy, name in enumerate(space.grid.labels["strategy"]):
        rows += _compare(space, strategy, name, effort)
    rows += _stream(effort)
    return Report("labels", "times of values alone that slopes of four targets take", tuple(rows))


def _stream(effort: Effort) -> list[Row]:
    stream = batches(SPACE, STREAMED)
    features = np.empty((STREAMED, len(stream.features)), np.float32)
    for _ in range(3 * BATCHES):  # prepares most kinds
        next(stream)

    def draw() -> None:
        for _ in range(BATCHES):
            jax.block_until_ready(next(stream))

    def fill() -> None:
        for _ in range(BATCHES):
            features.fill(1.0)

    actions: dict[str, Action] = {"a stream without slopes": draw, "filling memory": fill}
    timings = interleaved(actions, effort.short_rounds)
    filling = timings["filling memory"].median
    return [
        Row(
            name,
            BATCHES * STREAMED / timing.median,
            "rows/s",
            timing.median / filling,
            "filling memory",
        )
        for name, timing in timings.items()
    ]


def _compare(space: SampleSpace, strategy: int, name: str, effort: Effort) -> list[Row]:
    tables = make_tables(space, space.problems[0], 0)
    draw = draw_slices(space, tables, space.problems[0], 0, 0, POINTS)
    points = put_on_device((tables.points[strategy], draw.rows, dict(draw.values)))
    ways: dict[str, dict[str, Any]] = {
        "values": {},
        "slopes": {"parameters": space.inputs},
        "slopes and kinks": {"parameters": space.inputs, "marked": True},
    }
    actions: dict[str, Action] = {
        way: partial(_answer, points, options) for way, options in ways.items()
    }
    timings = interleaved(actions, effort.short_rounds)
    return [
        Row(
            f"{name}: {way}, {len(space.inputs)} inputs",
            POINTS / timing.median,
            "rows/s",
            timing.median / timings["values"].median,
            "values",
            # Four targets, six times the values each.
            goals=(at_most(timing.median / timings["values"].median, 24, ""),),
        )
        for way, timing in timings.items()
    ]


def _answer(points: Any, options: dict[str, Any]) -> None:
    jax.block_until_ready(label_points(*points, **options))
