"""A run as facts, which frameworks write as their parameters."""

from paradl.grids.entries.layout_words import name_recompute
from paradl.kernels.work.schedules import is_uneven
from paradl.sweep.launching.facts import Facts
from paradl.sweep.launching.networks import describe_network
from paradl.sweep.launching.run import LayoutRun


def describe_run(run: LayoutRun) -> Facts:
    """Describe a run by facts; None: what has no effect here. InputError: its network has none."""
    row, training, traits = run.row, run.training, run.traits
    network, ranks = describe_network(run.model), row["data"] * row["context"]
    usual = network["features"] == network["heads"] * (network.get("head_features") or 0)
    has_experts, travels = bool(network.get("experts")), row["expert"] > 1
    pes, per_node = run.processes
    interleaved = row["chunks"] > 1
    loss = "whole" if training.logit_bytes else "fused"
    return {
        **network,
        "hidden": network.get("hidden") or None,
        "head_features": None if usual else network.get("head_features"),
        "kv_heads": network.get("kv_heads") or network["heads"],
        "longest": max(run.net.longest, training.length),
        **{name: row[name] for name in ("tensor", "context", "pipeline", "data", "micro")},
        **{"pes": pes, "per_node": min(pes, per_node), "nodes": -(-pes // per_node)},
        "chunks": row["chunks"] if interleaved else None,
        "group": row["group"] if interleaved and row["group"] != run.stages else None,
        "expert": row["expert"] if has_experts else None,
        "expert_tensor": row["expert_tensor"] if has_experts else None,
        "sequence": row["sequence"] > 0,
        "zero": run.zero,
        # Copies of the shards: more than one in HSDP.
        "copies": ranks // row["shard"] if run.zero else 1,
        "shard": row["shard"] if run.zero else 1,
        "recompute": name_recompute(row["recompute"]),
        "parts": run.parts,
        "is_uneven": bool(is_uneven(run.net, run.layout, training)[0]),
        "first_less": run.ends > 0,
        "last_less": run.ends > 0,
        "schedule": training.schedule if run.stages > 1 else None,
        "context_by": training.context_by if row["context"] > 1 else None,
        "attention": "fused" if training.fused_attention else "unfused",
        "loss": "chunked" if training.loss_parts > 1 else loss,
        "precision": {"fp16": "amp"}.get(run.precision, run.precision),
        "global_batch": training.batch,
        "accumulate": run.passes,
        "length": training.length,
        # Switches of what is exchanged at all.
        "overlap_gradients": ranks > 1 and traits.overlap_gradients,
        # Megatron-LM refuses it without the other one.
        "overlap_weights": ranks > 1
        and run.zero > 0
        and traits.overlap_weights
        and traits.overlap_gradients,
        "overlap_tensor": row["sequence"] > 0 and traits.overlap_tensor,
        # Not with whole blocks recomputed, nor in a pipeline that is not interleaved.
        "overlap_experts": has_experts
        and travels
        and traits.overlap_experts
        and "blocks" not in run.modules
        and (run.stages == 1 or interleaved),
        "sends_once": travels and traits.sends_once if has_experts else None,
        "grouped_experts": traits.grouped_experts if has_experts else None,
    }
