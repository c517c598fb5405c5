"""Seconds of a published run on one PE by the scalar reference, for fits of a PE's priors."""

import math
from collections.abc import Mapping

from product_questions import make_row
from reference_parts import Machine, launch_excess, layer_pass, update_seconds

from benchmarks import priors

LAYOUTS = {"NCHW": 1.0, "NHWC": 0.0}  # share of the conversions that a row pays on tensor cores


def time_run(run: priors.Run, values: Mapping[str, float]) -> float:
    """Compute seconds of an iteration layer by layer. Chainer's has no update, and no Winograd."""
    table = priors.find_table(run.model, run.dataset)
    peaks, bandwidth = priors.DEVICES[run.device]
    is_plain, is_single = run.note.startswith("Chainer"), run.precision == "fp32"
    converted = 0.0 if is_single else LAYOUTS.get(run.note[:4], 0.25)
    machine = Machine(
        peak=peaks[run.precision],
        memory_bandwidth=bandwidth,
        memory_capacity=math.inf,
        pes_per_node=1,
        levels=[],
        a=priors.ITEM_BYTES[run.precision],
        efficiency=values[f"efficiency_conv2d.{run.precision}"],
        half_channels=values["half_channels"],
        tile_filters=128,
        kernel_overlap=0.0,
        window_fetch=values["window_fetch"],
        layout_passes=converted * values["layout_passes"],
        winograd=values["winograd"] if is_single and not is_plain else 1.0,
        elementwise_passes=values["elementwise_passes"],
    )
    layers = [make_row(table, n) for n in range(len(table))]
    passes = [layer_pass(layer, machine) for layer in layers]
    device = sum(run.samples * s + f for s, f in passes)
    host = len(layers) * (3e-4 if is_plain else values["layer_overhead"])
    updates = [] if is_plain else [update_seconds(layer, machine, "sgd") for layer in layers]
    return device + launch_excess(device, host) + sum(updates)
