"""The machine oracle for one configuration in plain float64 Python: the second opinion.

From docs/machine.md alone, written apart from the kernels. A group of one parallelism is a product
with one degree (`ask_alone`). Data across p1 replicas, then P stages of a pipeline, then q_s parts
of a sample, then q_f parts of the filters or channels: from the outermost to PEs that are
neighbours. A ring's stride is the product of the degrees inside it. Where docs/machine.md leaves
room, this is what was decided:

- A layer has two masks: who exchanges halos, and whose filters or channels are divided.
- Shares multiply. A PE holds its own rows of all channels, and states of its own weights.
- What crosses a border of stages is each tensor's own rows; borders are chosen by these items.
- Halos are of the own part: by filter of its own dL/dy, by channel of its own x.
- Each segment exchanges by itself: a pass has S + P - 1 steps of b/S samples and all start-ups;
  of each number (messages, items, layers, weights) the stage that has most of it counts.
- A step's halos hide behind a step's computing; messages between stages, and gradients, have what
  of it the halos leave.
- Outputs are put together in each step; samples are handed out once a pass.
- Weights are the same on the q_s PEs of a stage, of any replica: one ring of p1 q_s PEs. So many
  rings leave P_j neighbours at once as these have stages and filter parts.
- Such gradients pass hosts where q_s > 1; without replicas, those that q_f PEs do not divide do.
- Each parallelism opens log files for its own convolutions, in every step.
- The first stage's nodes share its samples by rows alone.
"""

from collections.abc import Sequence

import reference_memory
from reference_machine import JITTERY, PER_SAMPLE, iterations, passes
from reference_machine import compute_terms as pipeline_terms
from reference_parts import Layer, Machine, Values, expected_largest
from reference_products_exchange import (
    gradient_exchange,
    gradient_packing,
    layer_collectives,
    log_files,
    sample_scatter,
    split_gather,
    split_overhead,
    stage_transfers,
    step_halos,
)
from reference_products_parts import (
    Product,
    computed_parts,
    held_parts,
    list_limits,
)


def compute_terms(layers: Sequence[Layer], machine: Machine, product: Product) -> Values:
    """What one iteration computes: a pipeline's of a PE's own parts, and what groups add."""
    again = product.run.accumulate * product.steps
    return pipeline_terms(computed_parts(layers, product), machine, product.run) | {
        "split_overhead": again * split_overhead(layers, machine, product),
        "gradient_packing": gradient_packing(layers, machine, product),
    }


def communication_terms(layers: Sequence[Layer], machine: Machine, product: Product) -> Values:
    """What PEs wait for, seconds an iteration."""
    accumulate = product.run.accumulate
    again = accumulate * product.steps
    return {
        "gradient_exchange": gradient_exchange(layers, machine, product).exposed,
        "halo_exchange": again * step_halos(layers, machine, product).exposed,
        "point_to_point": accumulate * stage_transfers(layers, machine, product).exposed,
        "layer_collectives": again * layer_collectives(layers, machine, product),
        "split_gather": again * split_gather(layers, machine, product),
        "sample_scatter": accumulate * sample_scatter(layers, machine, product),
        "log_files": log_files(layers, machine, product),
    }


def samples_of_a_node(machine: Machine, product: Product) -> float:
    """N, of an iteration: all nodes' share, or what those of a first stage need of its samples."""
    shared = product.run.global_batch / max(1.0, product.p / machine.pes_per_node)
    needed = max(machine.pes_per_node / product.stage, 1 / product.space)
    return max(shared, product.run.accumulate * product.run.b * min(1.0, needed))


def terms(layers: Sequence[Layer], machine: Machine, product: Product) -> Values:
    """All terms, seconds an iteration."""
    compute = compute_terms(layers, machine, product)
    busy = compute | communication_terms(layers, machine, product)
    jittery = sum(compute[name] for name in JITTERY)
    busy["straggler_wait"] = machine.jitter * expected_largest(product.p) * jittery
    read = samples_of_a_node(machine, product) / machine.input_rate
    return busy | {"input_wait": max(0.0, read - sum(busy.values()))}


def epoch(layers: Sequence[Layer], machine: Machine, product: Product) -> Values:
    """All terms of an epoch."""
    return {
        name: seconds * (passes(product.run) if name in PER_SAMPLE else iterations(product.run))
        for name, seconds in terms(layers, machine, product).items()
    }


def hidden_time(layers: Sequence[Layer], machine: Machine, product: Product) -> float:
    """What computing hides in an epoch."""
    again = product.run.accumulate * product.steps
    hidden = again * step_halos(layers, machine, product).hidden
    hidden += product.run.accumulate * stage_transfers(layers, machine, product).hidden
    hidden += gradient_exchange(layers, machine, product).hidden
    return iterations(product.run) * hidden


def memory(layers: Sequence[Layer], machine: Machine, product: Product) -> Values:
    """The parts of the fullest PE, bytes, and their total."""
    return reference_memory.memory(held_parts(layers, product), machine, product.run)


def largest_batch(layers: Sequence[Layer], machine: Machine, product: Product) -> float:
    """The most samples of a pass that fit."""
    held = held_parts(layers, product)
    return reference_memory.largest_batch(held, machine, product.run, machine.memory_capacity)


def limits(layers: Sequence[Layer], machine: Machine, product: Product) -> set[str]:
    """What forbids it."""
    total = memory(layers, machine, product)["total"]
    return set(list_limits(layers, machine, product, total))
