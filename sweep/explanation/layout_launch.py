"""Launch lines of a layout: what to type for Megatron-LM, torchtitan, DeepSpeed and torchrun.

A stack is a row of WRITERS, and one of rules in `kernels.search.stacks`. Settings that it cannot
run are refused, never left out. The TOML is that of torchtitan up to 0.2.
"""

import json
from collections.abc import Callable

from paradl.grids.reading.errors import InputError, format_count
from paradl.sweep.answers.types.fitting import LaunchFile
from paradl.sweep.explanation.layout_megatron import write_deepspeed, write_megatron
from paradl.sweep.explanation.layout_run import (
    SCRIPT,
    LayoutRun,
    refuse,
    refuse_layout,
    refuse_loss,
    write_torchrun,
)


def write_launch(stack: str, run: LayoutRun) -> list[LaunchFile]:
    """Write the files to start a run. InputError: an unknown stack, or one that cannot run it."""
    if stack not in WRITERS:
        raise InputError.unknown("stack", stack, WRITERS, where="launch")
    return WRITERS[stack](run)


def write_plain(run: LayoutRun) -> list[LaunchFile]:
    """Write a torchrun line for the user's own script, with its DDP or FSDP call as a comment."""
    row = run.row
    refuse_layout("torchrun", "torchrun", run)
    wraps = {
        0: "DistributedDataParallel(model)",
        1: "DistributedDataParallel(model), ZeroRedundancyOptimizer(model.parameters(), AdamW)",
        # Weights stay gathered after the forward pass, as in ZeRO 2.
        2: "FullyShardedDataParallel(model, sharding_strategy=ShardingStrategy.SHARD_GRAD_OP)",
        3: "FullyShardedDataParallel(model, sharding_strategy=ShardingStrategy.FULL_SHARD)",
    }
    wrap = wraps[run.zero]
    # HSDP: copies of the shards, each over fewer ranks.
    if run.zero == 3 and row["shard"] < row["data"]:
        mesh = f"({row['data'] // row['shard']}, {row['shard']})"
        wrap = wrap.replace("FULL_SHARD", "HYBRID_SHARD").replace(
            "(model,", f'(model, device_mesh=init_device_mesh("cuda", {mesh}),'
        )
    script = write_torchrun(run, "train.py")
    lines = [
        "# train.py is yours. In it:",
        f"# {wrap}",
        f"# {format_count(row['micro'], 'sequence')} of {run.training.length} tokens per pass, "
        f"{format_count(run.passes, 'pass', 'passes')} per iteration; {run.precision}; "
        f"recompute {row['recompute']}",
        script["text"],
    ]
    return [{"file": SCRIPT, "text": "\n".join(lines)}]


def write_torchtitan(run: LayoutRun) -> list[LaunchFile]:
    """Write torchtitan's TOML tables, without [model], which names a network of its own list."""
    row, training = run.row, run.training
    refuse_loss("torchtitan", run)
    refuse_layout("torchtitan", "torchtitan", run)
    refuse(
        "torchtitan",
        (
            run.precision not in ("bf16", "fp32"),
            f"--precision {run.precision} here",
            "take bf16 or fp32",
        ),
        (
            not training.fused_attention,
            "attention that keeps scores",
            "take --attention fused",
        ),
    )
    # torchtitan multiplies its shard degree by the context degree itself.
    shard = row["shard"] // row["context"] if run.zero else 1
    staged = run.stages > 1
    parallelism: dict[str, object] = {
        "data_parallel_replicate_degree": row["data"] // shard,
        "data_parallel_shard_degree": shard,
        # Weights that stay gathered after the forward pass are ZeRO 2.
        "fsdp_reshard_after_forward": "always" if run.zero == 3 else "never",
        "tensor_parallel_degree": row["tensor"],
        "context_parallel_degree": row["context"],
        "context_parallel_rotate_method": _ROTATE[training.context_by],
        "pipeline_parallel_degree": row["pipeline"],
        **(_write_torchtitan_stages(run) if staged else {}),
        "expert_parallel_degree": row["expert"],
        "expert_tensor_parallel_degree": row["expert_tensor"] if row["expert"] > 1 else 1,
    }
    tables: dict[str, dict[str, object]] = {
        "parallelism": parallelism,
        "training": {
            # Only a pipeline cuts it into micro-batches; without one torchtitan accumulates.
            "local_batch_size": row["micro"] * (run.passes if staged else 1),
            "global_batch_size": training.batch,
            "seq_len": training.length,
            "mixed_precision_param": {"bf16": "bfloat16"}.get(run.precision, "float32"),
        },
        "activation_checkpoint": {"mode": "full" if run.modules else "none"},
    }
    text = "\n\n".join(f"[{name}]\n{_write_toml(table)}" for name, table in tables.items())
    script = write_torchrun(run, "-m torchtitan.train", "--job.config_file layout.toml")
    return [{"file": "layout.toml", "text": text}, script]


# torchtitan's names for how keys and values go round; it has no Ulysses.
_ROTATE = {"ring": "alltoall", "all_gather": "allgather", "all_to_all": ""}
_SCHEDULES = {"1f1b": "1F1B", "gpipe": "GPipe", "zbv": "ZBVZeroBubble"}


def _write_toml(table: dict[str, object]) -> str:
    """Write the lines of a table; strings and numbers of JSON are those of TOML."""
    return "\n".join(f"{key} = {json.dumps(value)}" for key, value in table.items())


def _write_torchtitan_stages(run: LayoutRun) -> dict[str, object]:
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
