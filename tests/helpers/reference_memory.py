"""The machine oracle's memory of a PE, bytes, in plain float64 Python: the second opinion.

From docs/machine.md, section Memory, alone.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

from reference_parts import Layer, Machine, Run, Values, own_part, stages

SAMPLED = ("others", "received", "peak")
BOUNDLESS = 2.0**60  # samples


def checkpointed_runs(count: int) -> list[range]:
    """R = round(sqrt(G)) runs of ceil(G/R) layers, the last with what is left."""
    length = math.ceil(count / round(math.sqrt(count)))
    return [range(start, min(start + length, count)) for start in range(0, count, length)]


def kept_bytes(layer: Layer, machine: Machine) -> float:
    """What the backward pass reads, bytes a sample."""
    return layer.kept_items * machine.a + layer.kept_bytes


def peak_bytes(layers: Sequence[Layer], machine: Machine) -> float:
    """The most that is there in one pass, bytes a sample: all kept so far, and two gradients.

    And what the backward pass of that layer computes again.
    """
    most = kept = 0.0
    for layer in layers:
        kept += kept_bytes(layer, machine)
        again = layer.again_items * machine.a + layer.again_bytes
        most = max(most, kept + (layer.x + layer.y) * machine.a + again)
    return most


def segments_memory(
    parts: Sequence[Sequence[Layer]], machine: Machine, run: Run, number: int
) -> Values:
    """A stage of several, bytes a sample: a part of it goes backward for one segment, others wait.

    By 1F1B stage i of q holds q - i segments, if there are so many, by ZB1P each of them q. Of v
    parts a stage runs 2 (q - 1 - i) + (v - 1) q forward passes before its first backward one.
    """
    inputs = [part[0].x * machine.a for part in parts]
    samples = inputs.pop(0) if number == 0 else 0.0
    held_at_most: float = {"1f1b": run.p2 - number, "zb1p": run.p2}.get(run.schedule, run.segments)
    if run.chunks > 1:
        before = 2 * (run.p2 - 1 - number) + (run.chunks - 1) * run.p2
        held_at_most = (before + 1) / run.chunks
    flying = min(held_at_most, run.segments)
    if run.recompute:
        kept = samples
    else:
        kept = sum(kept_bytes(layer, machine) for part in parts for layer in part)
    return {
        "others": kept * (flying - 1 / run.chunks) / run.segments,
        "received": sum(inputs) * flying / run.segments,
        "peak": max(peak_bytes(part, machine) for part in parts) / run.segments,
    }


def network_memory(held: Sequence[Layer], machine: Machine, run: Run) -> Values:
    """All layers on a PE, bytes a sample: at once, or from checkpoint to checkpoint if less."""
    peak = peak_bytes(held, machine)
    whole = {"others": 0.0, "received": 0.0, "peak": peak}
    if not run.recompute:
        return whole
    runs = checkpointed_runs(len(held))
    checkpoints = sum(held[part.start].x * machine.a for part in runs)
    one = max(peak_bytes(held[part.start : part.stop], machine) for part in runs)
    return whole | {"others": checkpoints, "peak": one} if checkpoints + one < peak else whole


def received_bytes(layers: Sequence[Layer], machine: Machine, run: Run, device: int) -> float:
    """What comes to a device of a placed group from others, bytes a sample, each tensor once."""
    read = {n for i, own in enumerate(run.devices) if own == device for n in layers[i].inputs}
    return machine.a * sum(layers[n].y for n in read if run.devices[n] != device)


def device_memory(
    layers: Sequence[Layer], machine: Machine, run: Run, stage: Sequence[int]
) -> Values:
    """A device of a placed group: its own layers as they stand, and what it gets of others.

    One segment goes backward, the others wait, and all are received.
    """
    kept = sum(kept_bytes(layers[i], machine) for i in stage)
    peak = peak_bytes([layers[i] for i in stage], machine)
    return {
        "others": kept * (1 - 1 / run.segments),
        "received": received_bytes(layers, machine, run, run.devices[stage[0]]),
        "peak": peak / run.segments,
    }


def stage_memory(
    layers: Sequence[Layer], machine: Machine, run: Run, stage: Sequence[int]
) -> Values:
    """The parts of a stage's PE: SAMPLED ones in bytes a sample, and the states of its layers."""
    parts = [own_part(layers[i], run) for i in stage]
    # Filter and channel groups divide weights alone: gathered outputs are whole.
    held = parts if run.group == "spatial" else [layers[i] for i in stage]
    if run.piped:
        number = [other[0] for other in stages(layers, run)].index(stage[0])
        starts, bounds = {0, *run.ends}, [*stage, -1]
        cuts = [n for n, i in enumerate(bounds) if i in starts or i == -1]
        chunks = [held[cuts[n] : cuts[n + 1]] for n in range(len(cuts) - 1)]
        sampled = segments_memory(chunks, machine, run, number)
    elif run.placed:
        sampled = device_memory(layers, machine, run, stage)
    else:
        sampled = network_memory(held, machine, run)
    states = machine.state_bytes[run.optimizer]
    if run.zero:
        held_weights = sum(layer.w + layer.bias for layer in parts)
        everywhere = [own_part(layer, run) for layer in layers]
        largest = sorted(machine.a * (layer.w + layer.bias) for layer in everywhere)[-2:]
        gathered = sum(largest) if run.zero == 3 and run.sharers > 1 else 0.0
        return sampled | {"states": sharded_bytes(machine, run) * held_weights + gathered}
    return sampled | {"states": sum(layer_states(layer, machine, states) for layer in parts)}


def sharded_bytes(machine: Machine, run: Run) -> float:
    """Of a weight: copies and moments from stage 1 on shared, its gradient from 2, itself at 3."""
    copies = machine.state_bytes[run.optimizer] - machine.a - machine.g
    sizes = {1: copies, 2: machine.g, 3: machine.a}
    return sum(size / (run.sharers if run.zero >= stage else 1) for stage, size in sizes.items())


def row_states(layers: Sequence[Layer], machine: Machine, run: Run, stage: Sequence[int]) -> float:
    """Of the rows that b samples look up, or of all rows where these are fewer."""
    tables = [part for i in stage if (part := own_part(layers[i], run)).looked_up]
    looked_up = run.b * sum(layer.looked_up for layer in tables)
    others = sum(max(0.0, layer.w + layer.bias - layer.drawn) for layer in tables)
    return (machine.state_bytes[run.optimizer] - machine.weight_bytes) * min(looked_up, others)


def layer_states(layer: Layer, machine: Machine, states: float) -> float:
    """Whatever the batch: of a sparse table all weights, and the states of the drawn rows."""
    held = layer.w + layer.bias
    if not layer.looked_up:
        return states * held
    return machine.weight_bytes * held + (states - machine.weight_bytes) * layer.drawn


def memory(layers: Sequence[Layer], machine: Machine, run: Run) -> Values:
    """The parts of the fullest PE with b samples, and their total."""
    pes = []
    for stage in stages(layers, run):
        held = stage_memory(layers, machine, run, stage)
        held |= {name: run.b * held[name] for name in SAMPLED}
        held["rows"] = row_states(layers, machine, run, stage)
        held["reserved"] = machine.reserved
        pes.append(held | {"total": sum(held.values())})
    return max(pes, key=lambda held: held["total"])


def largest_batch(layers: Sequence[Layer], machine: Machine, run: Run, capacity: float) -> float:
    """The largest whole b that fits: each stage is affine in b, up to all rows of its tables.

    0 where none does.
    """
    fitting = [math.inf]
    for stage in stages(layers, run):
        held = stage_memory(layers, machine, run, stage)
        room = capacity - machine.reserved - held["states"]
        slope = sum(held[name] for name in SAMPLED)
        row = row_states(layers, machine, replace(run, b=1.0), stage)
        rows = row_states(layers, machine, replace(run, b=BOUNDLESS), stage)
        if room < 0:
            return 0.0
        some = room // (slope + row) if slope + row else math.inf
        every = (room - rows) // slope if slope else math.inf
        fitting.append(max(some, every) if rows <= room else some)
    return min(fitting)
