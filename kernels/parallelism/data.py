"""Data parallelism: replicas reduce gradients, and shard states, gradients or weights.

Rajbhandari et al. 2020 (ZeRO), stages 1 to 3; stage 3 is FSDP, or HSDP if sharded over some of
the ranks. Context ranks hold the same weights and count as replicas. Experts have other replicas.
"""

from dataclasses import replace
from typing import ClassVar, NamedTuple

import numpy as np

from paradl.kernels.columns import Column, add, read_first, sum_kinds
from paradl.kernels.machine.library_collectives import Costs
from paradl.kernels.machine.rates import BACKWARD
from paradl.kernels.names.parallelisms import DATA, LAYOUT_COLUMNS
from paradl.kernels.parallelism.divided_blocks import (
    DividedBlocks,
    Exchanged,
    Marks,
    Repeats,
    Rule,
    Rules,
    Values,
)
from paradl.kernels.parallelism.parallelism import Parallelism
from paradl.kernels.parallelism.transfers import Transfers
from paradl.kernels.work.layouts import Layouts
from paradl.kernels.work.schedules import Stage
from paradl.kernels.work.transformer import Held, Parameters, Training, Transformer, count_tensors

# Least parameters of a bucket, and for each rank (Megatron-LM, distributed_data_parallel.py).
BUCKET, RANK_BUCKET = 40e6, 1e6


class StateCosts(NamedTuple):
    """Costs of exchanging the parameters that a group of ranks replicates.

    shards: ranks that ZeRO shards over; gather, scatter: among these; beyond: all-reduce among
    ranks with the same shard (HSDP); whole: all-reduce among all ranks, without ZeRO.
    """

    shards: Column
    gather: Costs
    scatter: Costs
    beyond: Costs
    whole: Costs


class DataParallel(Parallelism):
    """Divides samples and, with ZeRO, what replicas would otherwise all hold."""

    name = sends_as = DATA
    values: ClassVar[Values] = {
        "micro": lambda net, pes, most: (1 << bit for bit in range(most.bit_length())),
        "zero": lambda net, pes, most: range(LAYOUT_COLUMNS["zero"].most + 1),
    }
    repeats: ClassVar[Repeats] = {
        "zero": lambda layouts: (layouts.zero > 0) & (layouts.shards == 1),
        "shard": lambda layouts: layouts.shard == layouts.data * layouts.context,
    }
    marks: ClassVar[Marks] = {
        # Megatron-LM runs stages with ZeRO 1 at most.
        "zero_with_pipeline": lambda net, layouts, _, __: (
            (layouts.pipeline > 1) & (layouts.zero > 1)
        )
    }

    @staticmethod
    def list_rules(net: Transformer, layouts: Layouts, training: Training) -> Rules:
        replicas = "the replicas of experts" if net.experts else ""
        batch, shard = np.asarray(training.find_batch(layouts)), read_first(layouts.shard)
        dp = f"dp{read_first(layouts.data)}"
        return {
            "batch": Rule(
                batch % training.count_least(layouts) > 0,
                f"{dp} x mb{read_first(layouts.micro)} does not divide "
                f"{read_first(batch):,} sequences",
                "a global batch that data x micro-batch divides",
            ),
            "shard": Rule(
                (layouts.context * layouts.data % layouts.shards > 0)
                | _leave_experts(net, layouts),
                f"shard{shard} does not divide cp{read_first(layouts.context)} x {dp}"
                + (replicas and f", or {replicas}"),
                "ranks of ZeRO that divide context x data" + (replicas and f", and {replicas}"),
            ),
        }

    def cost_exchanges(self, divided: DividedBlocks) -> list[StateCosts]:
        """List costs for dense parameters, and for routed experts if there are any."""
        layouts, fabric = divided.layouts, divided.transfers.fabric
        of_replicas = replace(fabric, layers=fabric.gradients)
        transfers = replace(divided.transfers, fabric=of_replicas)
        ranks = layouts.context * layouts.data
        costs = [_cost_states(transfers, ranks, layouts.tensor, layouts.shards)]
        if divided.net.experts:
            replicas, shards = layouts.expert_replicas, layouts.expert_shards
            inside = layouts.etp * layouts.expert
            costs.append(_cost_states(transfers, replicas, inside, shards))
        return costs

    def exchange_iteration(
        self,
        divided: DividedBlocks,
        costs: list[StateCosts],
        stage: Stage,
        held: Held,
        passes: Column | None,
    ) -> Exchanged:
        """Compute exposed seconds of gradient and weight exchanges.

        Without ZeRO 3 gradients hide behind the last backward passes, weights behind the first
        forward passes (`count_window`); with it both hide behind all passes, weights first.
        """
        always, rates = divided.layouts.zero == 3, divided.rates
        gradients, weights = _exchange_states(divided, costs, stage, held)
        if passes is not None:
            every = divided.training.count_passes(divided.layouts)
            passes = np.where(always, every, count_window(divided)) * passes
            beside_weights = np.where(always, passes, passes / (1 + BACKWARD))
            whole, weights = weights, np.maximum(weights - rates.hidden_weights * beside_weights, 0)
            # Links that are busy with weights carry no gradients.
            free = passes - np.where(always, whole - weights, 0)
            beside_gradients = np.minimum(BACKWARD / (1 + BACKWARD) * passes, free)
            gradients = np.maximum(gradients - rates.hidden_gradients * beside_gradients, 0)
        return {"gradient_exchange": gradients, "weight_gather": weights}


PARALLELISM = DataParallel()


def _exchange_states(
    divided: DividedBlocks, costs: list[StateCosts], stage: Stage, held: Held
) -> tuple[Column, Column]:
    """Compute seconds to reduce gradients, and to gather weights, exposed and hidden."""
    layouts, recipe, time = divided.layouts, divided.training.recipe, divided.transfers.time
    messages = count_messages(divided, stage, held.trained)
    # Dense parameters first, then experts, each over their own replicas.
    gradients, weights = np.zeros(1), np.zeros(1)
    parts = held.trained, held.stored, messages, costs
    for number, stored, count, cost in zip(*parts, strict=False):
        # HSDP: each shard is also reduced across groups.
        beyond = recipe.gradients * number / cost.shards
        scattered = time(cost.scatter, recipe.gradients * number, count)
        scattered = scattered + time(cost.beyond, beyond, count)
        reduced = time(cost.whole, recipe.gradients * number, count)
        gradients = gradients + np.where(
            number > 0, np.where(layouts.zero > 0, scattered, reduced), 0
        )
        # ZeRO 3 gathers all weights, other stages those that ranks have updated.
        sent = np.where(layouts.zero == 3, stored, number) if divided.net.is_tuned else number
        gathered = time(cost.gather, recipe.weights * sent, count)
        weights = weights + np.where((sent > 0) & (layouts.zero > 0), gathered, 0)
    # ZeRO 3 keeps neither whole gradients nor whole weights between passes.
    times = np.where(layouts.zero == 3, divided.training.count_passes(layouts), 1)
    return times * gradients, np.where(layouts.zero == 3, 2, 1) * times * weights


def count_window(divided: DividedBlocks) -> Column:
    """Count micro-batches beside whose passes replicas exchange what a stage holds [layouts].

    One without chunks. With v of them, what a chunk holds is exchanged while the stage's other
    chunks have their last (first) passes, of N micro-batches each (Megatron-LM, schedules.py).
    """
    layouts = divided.layouts
    passes = np.minimum(layouts.passes, divided.training.count_micro_batches(layouts))
    return passes + (1 - passes) / layouts.chunks


def _count_held_tensors(divided: DividedBlocks, stage: Stage) -> tuple[Column, Column]:
    """Count the matrices and vectors that a stage trains, and those of its experts [layouts]."""
    counts = (count_tensors(block, divided.layouts) for block in divided.net.trained.kinds)
    dense, experts = (sum_kinds(stage.counts, of) for of in zip(*counts, strict=True))
    return dense + stage.first + stage.last, experts


def count_messages(divided: DividedBlocks, stage: Stage, held: Parameters) -> Parameters:
    """Count messages in which software sends what a stage trains [layouts], at least one."""
    layouts = divided.layouts
    match divided.rates.messages:
        case "buckets":
            ranks = (layouts.context * layouts.data, layouts.expert_replicas)
            sizes = (np.maximum(BUCKET, RANK_BUCKET * number) for number in ranks)
            tensors = _count_held_tensors(divided, stage)  # a bucket has one whole, or several
            numbers = tuple(
                np.minimum(np.ceil(n / size), most)
                for n, size, most in zip(held, sizes, tensors, strict=True)
            )
        case "blocks":
            each = add(stage.counts) + stage.first + stage.last
            numbers = (each, each)
        case "tensors":
            numbers = _count_held_tensors(divided, stage)
        case "one":
            numbers = (np.ones(1), np.ones(1))
    return Parameters(*(np.maximum(number, 1) for number in numbers))


def _cost_states(
    transfers: Transfers, degree: Column, stride: Column, shards: Column
) -> StateCosts:
    shards = np.minimum(shards, degree)
    return StateCosts(
        shards,
        transfers.cost("all_gather", shards, stride),
        transfers.cost("reduce_scatter", shards, stride),
        transfers.cost("all_reduce", degree // shards, stride * shards),
        transfers.cost("all_reduce", degree, stride),
    )


def _leave_experts(net: Transformer, layouts: Layouts) -> Column:
    """Find layouts whose groups of `shard` ranks do not divide the replicas of experts."""
    if not net.experts or not layouts.shard.any():
        return np.array(False)
    # `folding` forbids what has no whole number of replicas.
    whole = layouts.tensor * layouts.context * layouts.data % (layouts.etp * layouts.expert) == 0
    rest = layouts.expert_replicas % np.maximum(layouts.expert_shards, 1)
    return np.asarray(whole & (rest > 0))
