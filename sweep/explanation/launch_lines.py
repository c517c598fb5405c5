"""Launch lines of a layout: what to type for Megatron-LM, torchtitan, DeepSpeed and torchrun.

A stack is a row of WRITERS, and one of rules in `kernels.search.stacks`. Settings that it cannot
run are refused, never left out. The TOML is that of torchtitan up to 0.2.
"""

import json
from collections.abc import Callable

from paradl.grids.entries.layout_words import name_recompute
from paradl.grids.reading.errors import InputError, format_count
from paradl.sweep.answers.types.prediction import LaunchFile
from paradl.sweep.explanation.launch import LayoutRun, refuse_run, write_torchrun
from paradl.sweep.explanation.megatron import write_deepspeed, write_megatron


def write_launch(stack: str, run: LayoutRun) -> list[LaunchFile]:
    """Write the files to start a run. InputError: an unknown stack, or one that cannot run it."""
    if stack not in WRITERS:
        raise InputError.unknown("stack", stack, WRITERS, where="launch")
    return WRITERS[stack](run)


# Calls in a script of one's own, by stage of ZeRO.
WRAPS = (
    "DistributedDataParallel(model)",
    "DistributedDataParallel(model), ZeroRedundancyOptimizer(model.parameters(), AdamW)",
    # Weights stay gathered after the forward pass, as in ZeRO 2.
    "FullyShardedDataParallel(model, sharding_strategy=ShardingStrategy.SHARD_GRAD_OP)",
    "FullyShardedDataParallel(model, sharding_strategy=ShardingStrategy.FULL_SHARD)",
)


def write_plain(run: LayoutRun) -> list[LaunchFile]:
    """Write a torchrun line for the user's own script, with its DDP or FSDP call as a comment."""
    row, wrap = run.row, WRAPS[run.zero]
    refuse_run("torchrun", "torchrun", run)
    # HSDP: copies of the shards, each over fewer ranks.
    if run.zero == 3 and row["shard"] < row["data"]:
        mesh = f"({row['data'] // row['shard']}, {row['shard']})"
        wrap = wrap.replace("FULL_SHARD", "HYBRID_SHARD").replace(
            "(model,", f'(model, device_mesh=init_device_mesh("cuda", {mesh}),'
        )
    lines = [
        "# train.py is yours. In it:",
        f"# {wrap}",
        f"# {format_count(row['micro'], 'sequence')} of {run.training.length} tokens per pass, "
        f"{format_count(run.passes, 'pass', 'passes')} per iteration; {run.precision}; "
        f"recompute {name_recompute(row['recompute'])}",
    ]
    script = write_torchrun(run, "train.py")
    return [script | {"text": "\n".join([*lines, script["text"]])}]


# torchtitan's names for how keys and values go round; it has no Ulysses.
_ROTATE = {"ring": "alltoall", "all_gather": "allgather", "all_to_all": ""}
_SCHEDULES = {"1f1b": "1F1B", "gpipe": "GPipe", "zbv": "ZBVZeroBubble"}


def write_torchtitan(run: LayoutRun) -> list[LaunchFile]:
    """Write torchtitan's TOML tables, without [model], which names a network of its own list."""
    row, training, precision = run.row, run.training, run.precision
    narrow, scores = precision not in ("bf16", "fp32"), not training.fused_attention
    refuse_run(
        *("torchtitan", "torchtitan", run),
        run.drops_logits,
        (narrow, f"--precision {precision} here", "take bf16 or fp32"),
        (scores, "attention that keeps scores", "take --attention fused"),
    )
    # Only a pipeline cuts it into micro-batches; without one torchtitan accumulates.
    staged = run.stages > 1
    tables: dict[str, dict[str, object]] = {
        "parallelism": _write_degrees(run) | (_write_stages(run) if staged else {}),
        "training": {
            "local_batch_size": row["micro"] * (run.passes if staged else 1),
            "global_batch_size": training.batch,
            "seq_len": training.length,
            "mixed_precision_param": "bfloat16" if precision == "bf16" else "float32",
        },
        "activation_checkpoint": {"mode": "full" if run.modules else "none"},
    }
    # Strings and numbers of JSON are those of TOML.
    lines = {
        name: [f"{key} = {json.dumps(value)}" for key, value in table.items()]
        for name, table in tables.items()
    }
    text = "\n\n".join("\n".join([f"[{name}]", *rows]) for name, rows in lines.items())
    script = write_torchrun(run, "-m torchtitan.train", "--job.config_file layout.toml")
    return [{"file": "layout.toml", "text": text}, script]


def _write_degrees(run: LayoutRun) -> dict[str, object]:
    """Write torchtitan's degrees of parallelism."""
    row = run.row
    # torchtitan multiplies its shard degree by the context degree itself.
    shard = row["shard"] // row["context"] if run.zero else 1
    return {
        "data_parallel_replicate_degree": row["data"] // shard,
        "data_parallel_shard_degree": shard,
        # Weights that stay gathered after the forward pass are ZeRO 2.
        "fsdp_reshard_after_forward": "always" if run.zero == 3 else "never",
        "tensor_parallel_degree": row["tensor"],
        "context_parallel_degree": row["context"],
        "context_parallel_rotate_method": _ROTATE[run.training.context_by],
        "pipeline_parallel_degree": row["pipeline"],
        "expert_parallel_degree": row["expert"],
        "expert_tensor_parallel_degree": row["expert_tensor"] if row["expert"] > 1 else 1,
    }


def _write_stages(run: LayoutRun) -> dict[str, object]:
    """Write torchtitan's keys of a pipeline."""
    row = run.row
    schedule = "Interleaved1F1B" if row["chunks"] > 1 else _SCHEDULES[run.training.schedule]
    return {
        "pipeline_parallel_schedule": schedule,
        "pipeline_parallel_microbatch_size": row["micro"],
        "pipeline_parallel_layers_per_stage": (run.net.blocks + 2 * run.ends) // run.parts,
        # By default the first and the last stage have one layer less.
        "pipeline_parallel_first_stage_less_layers": run.ends,
        "pipeline_parallel_last_stage_less_layers": run.ends,
    }


WRITERS: dict[str, Callable[[LayoutRun], list[LaunchFile]]] = {
    "megatron": write_megatron,
    "torchtitan": write_torchtitan,
    "deepspeed": write_deepspeed,
    "torchrun": write_plain,
}
