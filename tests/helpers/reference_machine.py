"""Computing in an iteration of the machine oracle in plain float64 Python: the second opinion.

From docs/machine.md alone, written apart from the kernels. What a PE holds is in reference_memory,
what a layer takes in reference_parts; what PEs send, and all terms, in reference_products.
"""

import math
from collections.abc import Sequence

from reference_parts import (
    Layer,
    Machine,
    Run,
    Values,
    launch_excess,
    launches,
    own_part,
    path_pass,
    stages,
    update_seconds,
)

# Of a pass, in which the slowest PE's is waited for.
JITTERY = ("forward_backward", "pipeline_bubble", "pass_overhead", "launch_wait")
PER_SAMPLE = ("forward_backward", "pipeline_bubble")


def launch_wait(layers: Sequence[Layer], machine: Machine, run: Run) -> float:
    """A pass's: what it is longer for its launches, of a pipeline in each of its beats."""
    slowest, fixed = path_pass(layers, machine, run)
    segments = run.segments if run.piped else 1
    host = machine.layer_overhead * launches(layers, run)
    return run.beats * launch_excess(run.b / segments * slowest + fixed, host)


def compute_terms(layers: Sequence[Layer], machine: Machine, run: Run) -> Values:
    """What one iteration computes."""
    slowest, fixed = path_pass(layers, machine, run)
    updates = [update_seconds(own_part(layer, run), machine, run.optimizer) for layer in layers]
    forward_backward = run.accumulate * run.b * slowest
    # Gradients of weights, a third of the work, fill two thirds of what ZB1P waits for.
    left = (run.p2 - 1) / run.segments / (3 if run.schedule == "zb1p" else run.chunks)
    return {
        "forward_backward": forward_backward,
        "pipeline_bubble": left * forward_backward if run.piped else 0.0,
        "pass_overhead": run.accumulate * run.beats * fixed,
        "launch_wait": run.accumulate * launch_wait(layers, machine, run),
        "weight_update": max(sum(updates[i] for i in stage) for stage in stages(layers, run))
        / (run.sharers if run.zero else 1),
    }


def passes(run: Run) -> float:
    """D/B, and at least one: a step takes a whole batch."""
    return max(run.samples / run.global_batch, 1.0)


def iterations(run: Run) -> float:
    """I = D/B, at least one, or the next whole number."""
    return math.ceil(passes(run)) if run.iterations == "ceil" else passes(run)
