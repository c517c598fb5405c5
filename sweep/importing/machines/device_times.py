"""Times on this device, through JAX: products and convolutions by shape, memory, launches, layers.

A time is the median of repeated calls after a first one, which compiles; every call is waited for.
Of a network the sum of all layers becomes a profile in its file.
"""

import math
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import jax
import jax.numpy as jnp

from paradl.grids.entries.precision import PrecisionName
from paradl.grids.library import find
from paradl.grids.models.architecture import Architecture, Profile
from paradl.grids.models.kinds import KINDS
from paradl.grids.models.layers import LayerTable
from paradl.grids.reading.errors import InputError
from paradl.grids.reading.textfile import write_text
from paradl.grids.reading.yamlfile import validate, write_plain
from paradl.sweep.answers.mapping import Row

TYPES = {"fp32": "float32", "tf32": "float32", "bf16": "bfloat16", "amp": "float16"}
PATIENCE = 0.3  # [s] of repeated calls
MOST_BYTES = 2**32  # of one tensor that is timed
SIZES = (256, 512, 1024, 2048, 4096)
CHANNELS = (16, 64, 256)

Report = Callable[[str], None]


def _make_row(name: str, seconds: float, flops: float = 0.0, moved: float = 0.0) -> Row:
    """Return a measurement. flops, bytes moved: of a call; 0 where none count."""
    return {
        "measured": name,
        "seconds": seconds,
        "flops_per_second": flops / seconds if flops else None,
        "bytes_per_second": moved / seconds if moved else None,
    }


def describe_device() -> str:
    """Return the device on which JAX computes."""
    device = jax.devices()[0]
    return f"{device.platform}: {device.device_kind}"


def time_calls(function: Callable[..., Any], *arguments: Any) -> float:
    """Return the median seconds of a call of a function that is compiled first."""
    # Compiled as layers of a network are; a call by itself would time Python.
    compiled = jax.jit(function)
    jax.block_until_ready(compiled(*arguments))
    spent: list[float] = []
    while sum(spent) < PATIENCE or len(spent) < 3:
        start = time.perf_counter()
        jax.block_until_ready(compiled(*arguments))
        spent.append(time.perf_counter() - start)
    return median(spent)


def probe_device(precision: str, report: Report, budget: float = 120.0) -> list[Row]:
    """Return a row for each matrix product, convolution, copy and launch.

    budget [s]: products that would take more than half of it, by the one before, are left out.
    """
    kind = TYPES[precision]
    rows: list[Row] = []
    for n in SIZES:
        report(f"product of {n} x {n}")
        a = jnp.ones((n, n), kind)
        seconds = time_calls(jnp.matmul, a, a)
        rows.append(_make_row(f"product {n} x {n} x {n}", seconds, 2.0 * n**3))
        # The first call compiles, and three are timed; a product of twice the size takes 8 times.
        if 4 * 8 * seconds > budget / 2:
            break
    for channels in CHANNELS:
        report(f"convolution of {channels} channels")
        x, w = jnp.ones((8, channels, 32, 32), kind), jnp.ones((channels, channels, 3, 3), kind)
        seconds = time_calls(lambda x, w: jax.lax.conv(x, w, (1, 1), "SAME"), x, w)
        flops = 2.0 * 8 * 32 * 32 * 9 * channels**2
        rows.append(_make_row(f"convolution 3 x 3, {channels} channels", seconds, flops))
    report("memory")
    items = jnp.ones(2**25, "float32")  # more than caches hold
    seconds = time_calls(lambda x: x + 1, items)
    rows.append(_make_row("copy of 128 MiB", seconds, moved=8.0 * 2**25))
    report("launch")
    return [*rows, _make_row("launch", time_calls(lambda x: x + 1, jnp.ones(1)))]


def time_layers(
    table: LayerTable, batch: int, precision: str, report: Report
) -> list[tuple[str, float]]:
    """Return seconds of each layer of a network, forward and backward, for `batch` samples.

    Layers of equal shapes are timed once. InputError: a tensor that is larger than what is timed.
    """
    known: dict[tuple[object, ...], float] = {}
    times = []
    for row, name in enumerate(table.names):
        key = (table.kinds[row], *(float(c[row]) for c in (table.x, table.y, table.w, table.flops)))
        key += tuple(table.kernel[row]) + tuple(table.stride[row]) + (float(table.groups[row]),)
        # Networks repeat blocks, so most shapes occur several times.
        if key not in known:
            report(f"layer {row + 1} of {len(table)}, {name}")
            if 4 * batch * max(table.x[row], table.y[row]) > MOST_BYTES:
                raise InputError(
                    f"{name}: more than 4 GiB", where="--batch", advice="a smaller one"
                )
            known[key] = _time_layer(table, row, batch, TYPES[precision])
        times.append((name, known[key]))
    return times


def _time_layer(table: LayerTable, row: int, batch: int, kind: str) -> float:
    """Return seconds of one layer, with the gradients of its input and its weights."""
    layer = KINDS[table.kinds[row]]
    if layer.convolves and table.inputs[row]:
        function, shapes = _make_convolution(table, row, batch)
    elif layer.multiplies:
        # A product of as many operations as the layer's; those of all heads are timed as one.
        width, features = int(table.channels[row]), int(table.filters[row])
        rows = max(1, round(batch * table.flops[row] / (2 * width * features)))
        function, shapes = jnp.matmul, ((rows, width), (width, features))
    else:
        # As traffic: what comes in is read, and as much is written as goes out.
        items = int(batch * max(table.x[row], table.y[row]))
        function, shapes = lambda x, factor: jnp.maximum(x * factor, 0), ((items,), (1,))

    def learn(x: Any, w: Any) -> Any:
        if table.inputs[row] == (-1,):  # of the sample there is no gradient
            result, pull = jax.vjp(lambda w: function(x, w), w)
        else:
            result, pull = jax.vjp(function, x, w)
        return result, pull(result)

    return time_calls(learn, *(jnp.ones(shape, kind) for shape in shapes))


def _make_convolution(
    table: LayerTable, row: int, batch: int
) -> tuple[Callable[..., Any], tuple[tuple[int, ...], ...]]:
    before = [int(n) for n in table.extents_x[row]]
    after = [int(n) for n in table.extents_y[row]]
    channels, filters, groups = (
        int(column[row]) for column in (table.channels, table.filters, table.groups)
    )
    # The table has the span of a dilated kernel: its items follow from the weights.
    spans = [int(n) for n in table.kernel[row]]
    items = table.w[row] * groups / (channels * filters)
    share = (items / math.prod(spans)) ** (1 / max(1, sum(n > 1 for n in spans)))
    kernel = [max(1, round(n * share)) for n in spans]
    dilation = [max(1, (n - 1) // max(1, k - 1)) for n, k in zip(spans, kernel, strict=True)]
    if before[0] == after[0] == kernel[0] == 1:
        # Two dimensions: AlexNet's first layer takes XLA 27 s on a CPU as one of three.
        before, after, kernel, dilation = before[1:], after[1:], kernel[1:], dilation[1:]
    spread = KINDS[table.kinds[row]].spreads
    if spread:  # the gradient of a convolution from its output to its input
        before, after = after, before
    stride = [max(1, round(b / a)) for b, a in zip(before, after, strict=True)]
    padding = [
        _pad(b, a, s, d * (k - 1) + 1)
        for b, a, s, d, k in zip(before, after, stride, dilation, kernel, strict=True)
    ]
    if spread:
        channels, filters = filters, channels

    def convolve(x: Any, w: Any) -> Any:
        return jax.lax.conv_general_dilated(
            x, w, stride, padding, rhs_dilation=dilation, feature_group_count=groups
        )

    return convolve, ((batch, channels, *before), (filters, channels // groups, *kernel))


def _pad(before: int, after: int, stride: int, span: int) -> tuple[int, int]:
    """Return rows to add so that windows make `after` rows of `before`."""
    more = max(0, (after - 1) * stride + span - before)
    return more // 2, more - more // 2


def profile_model(
    reference: str,
    dataset: str,
    batch: int,
    precision: PrecisionName,
    device: str,
    report: Report,
) -> tuple[Architecture, list[dict[str, object]]]:
    """Time the layers of a network for a data set's samples.

    Returns the network with a further profile, and a row for each layer. device: its name.
    InputError: a bad name.
    """
    model, data = find("model", reference, Path()), find("dataset", dataset, Path())
    conditions = {"device": device, "shape": data.shape, "batch": batch, "precision": precision}
    source = f"measured: sum of its layers on {describe_device()}, by paradl probe model"
    # Before layers are timed for minutes; the seconds come last.
    profile = validate(Profile, {**conditions, "seconds": 1.0, "source": source}, "")
    times = time_layers(model.table(data), batch, precision, report)
    # Four digits: repeated runs differ by more.
    seconds = float(f"{sum(time for _, time in times) / batch:.4g}")
    timed = profile.model_copy(update={"seconds": seconds})
    profiled = model.model_copy(update={"profiles": (*model.profiles, timed)})
    return profiled, [{"layer": name, "seconds": time} for name, time in times]


def write_model(model: Architecture, path: Path) -> None:
    """Write a network's file."""
    write_text(write_plain(model.definition(), width=100), path)
