"""Stacks: which layouts Megatron-LM, torchtitan, Megatron-DeepSpeed and plain PyTorch do not run.

Searches rank by these rules, and launch lines are refused by them. Megatron-LM, arguments.py;
torchtitan 0.2, parallel_dims.py; DeepSpeed, pipe/engine.py, and Ulysses.
"""

from collections.abc import Callable, Collection, Mapping

import numpy as np

from paradl.kernels.columns import Column, find_any
from paradl.kernels.names.parallelisms import RECOMPUTE
from paradl.kernels.work.layouts import Layouts
from paradl.kernels.work.schedules import INTERLEAVES, is_uneven
from paradl.kernels.work.transformer import Training, Transformer

Refusals = dict[str, Column]  # masks by reason [layouts]


def find_zero_stage(layouts: Layouts) -> Column:
    """ZeRO stage [layouts]; 0 where a single rank has nothing to shard."""
    return np.where(layouts.shards > 1, layouts.zero, 0)


def _refuse_megatron(net: Transformer, layouts: Layouts, training: Training) -> Refusals:
    staged, again = layouts.pipeline > 1, layouts.recompute
    blocks = (again & RECOMPUTE["blocks"]) > 0
    return {
        "zero_with_stages": staged & (find_zero_stage(layouts) > 1),
        "schedule": staged & (training.schedule != INTERLEAVES),
        "full": (again & RECOMPUTE["full"]) > 0,
        "blocks_and_modules": blocks & _recomputes_modules(layouts),
    }


def _refuse_old_megatron(net: Transformer, layouts: Layouts, training: Training) -> Refusals:
    """Refuse what came after Megatron-LM 3.0 (2022), too: context and expert ranks, FSDP."""
    return {
        **_refuse_megatron(net, layouts, training),
        "context": layouts.context > 1,
        "expert": layouts.expert > 1,
        "sharded": find_zero_stage(layouts) > 1,
    }


def _refuse_torchtitan(net: Transformer, layouts: Layouts, training: Training) -> Refusals:
    t, c, p = layouts.tensor, layouts.context, layouts.pipeline
    e, etp = layouts.expert, layouts.etp
    zero, shards = find_zero_stage(layouts), layouts.shards
    # Experts are divided among context and shard ranks, and whole ones among tensor ranks, too.
    folded = np.where(etp == 1, t, 1)
    inside, ranks = c * folded, np.where(zero > 0, shards, c) * folded
    return {
        "modules": _recomputes_modules(layouts),
        "group": (layouts.chunks > 1) & (layouts.passes != p),
        "zero1": zero == 1,
        "zero0": (zero == 0) & (layouts.pes > layouts.data) & (layouts.data * c > 1),
        "no_sequence": (t > 1) & (layouts.sequence == 0),
        "shard_of_context": (zero > 0) & (shards % c > 0),
        "all_to_all": (c > 1) & (training.context_by == "all_to_all"),
        "zb1p": (p > 1) & (training.schedule == "zb1p"),
        "uneven": (p > 1) & is_uneven(net, layouts, training),
        "expert_tensor": (e > 1) & (etp != 1) & (etp != t),
        "experts": (e > 1) & ((e % inside > 0) | (ranks % e > 0)),
    }


def _refuse_deepspeed(net: Transformer, layouts: Layouts, training: Training) -> Refusals:
    c, zero, staged = layouts.context, find_zero_stage(layouts), layouts.pipeline > 1
    return {
        "zero_with_stages": staged & (zero > 1),
        "chunks": layouts.chunks > 1,
        "schedule": staged & (training.schedule != INTERLEAVES),
        "no_all_to_all": (c > 1) & (training.context_by != "all_to_all"),
        "context_with_stages": (c > 1) & staged,
        "some_ranks": (zero > 0) & (layouts.shards != layouts.data * c),
        "modules": _recomputes_modules(layouts),
    }


def _refuse_torchrun(net: Transformer, layouts: Layouts, training: Training) -> Refusals:
    zero = find_zero_stage(layouts)
    return {
        "model": (layouts.pes > layouts.data) | (layouts.expert > 1),
        "zero_in_shards": (zero > 0) & (zero < 3) & (layouts.shards != layouts.data),
    }


def _recomputes_modules(layouts: Layouts) -> Column:
    """Whether anything but whole blocks is recomputed [layouts]."""
    modules: Column = (layouts.recompute & ~RECOMPUTE["blocks"]) > 0
    return modules


# Stacks for which launch lines are written.
STACKS: Mapping[str, Callable[[Transformer, Layouts, Training], Refusals]] = {
    "megatron": _refuse_megatron,
    "torchtitan": _refuse_torchtitan,
    "deepspeed": _refuse_deepspeed,
    "torchrun": _refuse_torchrun,
}
# And rules of software of earlier years, for which none are written.
RULES = {**STACKS, "megatron-2021": _refuse_old_megatron}


# Columns that a reason is about: where a user states them all, no other layout avoids it.
STATED: Mapping[str, frozenset[str]] = {
    "zero_with_stages": frozenset({"zero", "pipeline"}),
    **dict.fromkeys(("zero0", "zero1"), frozenset({"zero"})),
    **dict.fromkeys(("full", "blocks_and_modules", "modules"), frozenset({"recompute"})),
    "no_sequence": frozenset({"sequence"}),
    "some_ranks": frozenset({"shard"}),
    "sharded": frozenset({"zero"}),
    **{name: frozenset({name}) for name in ("context", "expert")},
    "chunks": frozenset({"chunks"}),
}


def find_unsupported(
    stack: str | None,
    net: Transformer,
    layouts: Layouts,
    training: Training,
    stated: Collection[str] = (),
) -> Column:
    """Mask of layouts that a stack does not run [layouts]; stack None: it runs all.

    stated: columns that a user states; reasons that follow from these alone do not count.
    """
    refused = RULES[stack](net, layouts, training) if stack else {}
    masks = (
        mask
        for reason, mask in refused.items()
        if reason not in STATED or not STATED[reason] <= {*stated}
    )
    return np.broadcast_to(find_any(masks), layouts.shape)
