"""The machine oracle for one configuration in plain float64 Python: the second opinion.

From docs/machine.md alone, written apart from the kernels. What an iteration and an epoch take is
here, what a PE holds in reference_memory, what a layer takes and what PEs send in the other files.
"""

import math
from collections.abc import Sequence

from reference_exchange import communication_terms, exchanges, gathered_layers
from reference_hosts import packing_seconds
from reference_memory import memory
from reference_parts import (
    Layer,
    Machine,
    Run,
    Values,
    expected_largest,
    launch_excess,
    launches,
    own_part,
    path_pass,
    profile_slowdown,
    samples_of_a_pass,
    stages,
    update_seconds,
)

__all__ = [
    "Layer",
    "Machine",
    "Run",
    "default_group",
    "epoch",
    "expected_largest",
    "hidden_time",
    "machine_too_small",
    "memory",
    "profile_slowdown",
    "samples_of_a_pass",
    "terms",
]

# Terms, seconds an iteration.


def split_overhead(layers: Sequence[Layer], machine: Machine, run: Run) -> float:
    """A pass's: outputs are put together of all PEs' parts, by filter there and back."""
    if run.group not in ("filter", "channel"):
        return 0.0
    gathered = gathered_layers(layers)
    directions = 2 if run.group == "filter" else 1
    others = run.b * machine.a * sum(layer.y for layer in gathered) * (1 - 1 / run.p2)
    seconds = directions * others / (machine.assembly * machine.memory_bandwidth)
    if run.group == "filter":
        seconds += 2 * (run.p2 - 1) * machine.part_overhead * len(gathered)
    return seconds


def launch_wait(layers: Sequence[Layer], machine: Machine, run: Run) -> float:
    """A pass's: what it is longer for its launches, of a pipeline in each of its beats."""
    slowest, fixed = path_pass(layers, machine, run)
    segments, beats = (run.segments, run.p2 + run.segments - 1) if run.piped else (1, 1)
    host = machine.layer_overhead * launches(layers, run)
    return beats * launch_excess(run.b / segments * slowest + fixed, host)


def compute_terms(layers: Sequence[Layer], machine: Machine, run: Run) -> Values:
    """What one iteration computes."""
    slowest, fixed = path_pass(layers, machine, run)
    updates = [update_seconds(own_part(layer, run), machine, run.optimizer) for layer in layers]
    forward_backward = run.accumulate * run.b * slowest
    return {
        "forward_backward": forward_backward,
        "pipeline_bubble": (run.p2 - 1) / run.segments * forward_backward if run.piped else 0.0,
        "pass_overhead": run.accumulate * (run.p2 + run.segments - 1 if run.piped else 1) * fixed,
        "launch_wait": run.accumulate * launch_wait(layers, machine, run),
        "weight_update": max(sum(updates[i] for i in stage) for stage in stages(layers, run))
        / (run.sharers if run.zero else 1),
        "split_overhead": run.accumulate * split_overhead(layers, machine, run),
        "gradient_packing": packing_seconds(layers, machine, run),
    }


JITTERY = ("forward_backward", "pipeline_bubble", "pass_overhead", "launch_wait")


def straggler_wait(machine: Machine, run: Run, compute: Values) -> float:
    """For the slowest PE, whose A passes take longer."""
    passes = sum(compute[name] for name in JITTERY)
    return machine.jitter * expected_largest(run.p) * passes


def samples_of_a_node(machine: Machine, run: Run) -> float:
    """N, of an iteration: the fullest node's share, or whole samples where a group needs them."""
    shared = run.global_batch / max(1.0, run.p / machine.pes_per_node)
    if run.group in ("filter", "channel", "pipeline"):
        return max(shared, run.accumulate * run.b)
    return shared


def input_wait(machine: Machine, run: Run, busy: float) -> float:
    """What a node's hosts take for its samples beyond all else of the iteration."""
    return max(0.0, samples_of_a_node(machine, run) / machine.input_rate - busy)


def terms(layers: Sequence[Layer], machine: Machine, run: Run) -> Values:
    """All terms, seconds an iteration."""
    compute = compute_terms(layers, machine, run)
    busy = compute | communication_terms(layers, machine, run)
    busy["straggler_wait"] = straggler_wait(machine, run, compute)
    return busy | {"input_wait": input_wait(machine, run, sum(busy.values()))}


# Terms, seconds an epoch.

PER_SAMPLE = ("forward_backward", "pipeline_bubble")


def passes(run: Run) -> float:
    """D/B, and at least one: a step takes a whole batch."""
    return max(run.samples / run.global_batch, 1.0)


def iterations(run: Run) -> float:
    """I = D/B, at least one, or the next whole number."""
    return math.ceil(passes(run)) if run.iterations == "ceil" else passes(run)


def epoch(layers: Sequence[Layer], machine: Machine, run: Run) -> Values:
    """All terms of an epoch: each sample is computed once, whatever the number of iterations."""
    return {
        name: seconds * (passes(run) if name in PER_SAMPLE else iterations(run))
        for name, seconds in terms(layers, machine, run).items()
    }


def hidden_time(layers: Sequence[Layer], machine: Machine, run: Run) -> float:
    """What computing hides in an epoch; no term has it."""
    hidden = [exchange.hidden for exchange in exchanges(layers, machine, run).values()]
    return iterations(run) * sum(hidden)


# The size of a machine.


def machine_too_small(machine: Machine, run: Run) -> bool:
    """Whether the run has more PEs than there are: the cell is forbidden."""
    return run.p > machine.size


def default_group(machine: Machine, p: int) -> int:
    """p2 of a hybrid that names none: a node's PEs, or all where they are fewer."""
    return min(machine.pes_per_node, p)
