"""Launch lines of a layout: what to type for Megatron-LM, torchtitan, DeepSpeed and torchrun.

A stack is a row of WRITERS, and one of rules in `kernels.search.stacks`. Settings that it cannot
run are refused, never left out. Megatron-LM is core 0.16, DeepSpeed runs Megatron-DeepSpeed,
and the TOML is that of torchtitan up to 0.2.
"""

import json
from collections.abc import Callable, Mapping

from paradl.grids.entries.layout_words import name_recompute
from paradl.grids.models.architecture import Constants
from paradl.grids.reading.errors import InputError, format_count
from paradl.kernels.work.schedules import is_uneven
from paradl.sweep.answers.types.prediction import LaunchFile
from paradl.sweep.explanation.launch import LayoutRun, refuse_run, write_torchrun
from paradl.sweep.explanation.launch_sizes import Flags, Sizes


def write_launch(stack: str, run: LayoutRun) -> list[LaunchFile]:
    """Write the files to start a run. InputError: an unknown stack, or one that cannot run it."""
    if stack not in WRITERS:
        raise InputError.unknown("stack", stack, WRITERS, where="launch")
    return WRITERS[stack](run)


# FP8 is a format of matrix products in training that is otherwise bf16.
MIXED = {"bf16": "bf16", "fp16": "fp16", "fp8": "bf16"}
DEEPSPEED = {"bf16": "bf16", "zero": "fp16"}  # flags by precision; fp32 needs none
CONTEXTS = {"ring": "p2p", "all_gather": "all_gather", "all_to_all": "a2a"}
SHARDED = {2: "optim_grads", 3: "optim_grads_params"}


def _write_script(run: LayoutRun, flags: Flags) -> LaunchFile:
    """Write the script, with one line per flag."""
    lines = [
        f"--{name}" if value is True else f"--{name} {value}"
        for name, value in flags.items()
        if value is not None and value is not False
    ]
    return write_torchrun(run, "pretrain_gpt.py", *lines)


def write_megatron(run: LayoutRun) -> list[LaunchFile]:
    """Write flags of Megatron-LM's pretrain_gpt.py."""
    stack, zero, kind = "Megatron-LM", run.precision == "zero", run.constants.rope_scaling
    states = (zero, "the bytes of --precision zero", "take --precision bf16")
    scaled = (kind not in (None, "llama3"), f"rope_scaling {kind}", "take llama3, or none")
    refuse_run(stack, "megatron", run, run.drops_logits, states, scaled)
    sizes = Sizes(stack, run.net)
    flags = {
        **_write_degrees(run),
        **_write_zero(run),
        **_write_batch(run, MIXED),
        "fp8-format": "hybrid" if run.precision == "fp8" else None,
        "attention-backend": "flash" if run.training.fused_attention else "unfused",
        **_write_recompute(run),
        **sizes.write(run.training.length),
        **sizes.write_megatron(),
        **_write_constants(run.constants, rotary=not sizes.learns_positions),
    }
    return [_write_script(run, flags)]


def _write_constants(constants: Constants, rotary: bool) -> Flags:
    """Write what differs from Megatron-LM's defaults. rotary: whether positions are."""
    base, epsilon, usual = constants.rotary_base, constants.norm_epsilon, Constants()
    return {
        "rotary-base": round(base) if rotary and base != usual.rotary_base else None,
        "use-rope-scaling": constants.rope_scaling is not None,
        "rope-scaling-factor": constants.rope_factor,
        "norm-epsilon": epsilon if epsilon != usual.norm_epsilon else None,
    }


def _write_degrees(run: LayoutRun) -> Flags:
    row, net = run.row, run.net
    # Uneven parts, chunks included, are written out block by block.
    uneven = bool(is_uneven(net, run.layout, run.training)[0])
    chunks = row["chunks"] if row["chunks"] > 1 else None
    grouped = chunks and row["group"] != run.stages
    return {
        "tensor-model-parallel-size": row["tensor"],
        "pipeline-model-parallel-size": row["pipeline"],
        "num-virtual-stages-per-pipeline-rank": None if uneven else chunks,
        "pipeline-model-parallel-layout": _write_stages(net.blocks, run.parts) if uneven else None,
        "account-for-embedding-in-pipeline-split": run.ends > 0,
        "account-for-loss-in-pipeline-split": run.ends > 0,
        "microbatch-group-size-per-virtual-pipeline-stage": row["group"] if grouped else None,
        "context-parallel-size": row["context"],
        "cp-comm-type": CONTEXTS[run.training.context_by] if row["context"] > 1 else None,
        "expert-model-parallel-size": row["expert"] if net.experts else None,
        "expert-tensor-parallel-size": row["expert_tensor"] if net.experts else None,
        "sequence-parallel": row["sequence"] > 0,
        "tp-comm-overlap": row["sequence"] > 0 and run.traits.overlap_tensor,
        **(_write_experts(run) if net.experts else {}),
    }


def _write_experts(run: LayoutRun) -> Flags:
    """Write how experts compute, and how tokens travel (core 0.16.1, transformer_config.py)."""
    row, traits = run.row, run.traits
    # DeepEP sends a token once to a node; the default dispatcher gathers all tokens everywhere.
    once = traits.sends_once and row["expert"] > 1
    is_hidden = traits.overlap_experts and row["expert"] > 1 and "blocks" not in run.modules
    return {
        "moe-grouped-gemm": traits.grouped_experts,
        "moe-token-dispatcher-type": "flex" if once else "alltoall",
        "moe-flex-dispatcher-backend": "deepep" if once else None,
        # Not with whole blocks recomputed, nor in a pipeline that is not interleaved.
        "overlap-moe-expert-parallel-comm": is_hidden and (run.stages == 1 or row["chunks"] > 1),
    }


def _write_stages(blocks: int, parts: int) -> str:
    """Write the blocks of each part as `Et*3|t*3|t*2L`; the first parts have one more."""
    least, more = divmod(blocks, parts)
    return "'E" + "|".join(f"t*{least + (part < more)}" for part in range(parts)) + "L'"


def _write_zero(run: LayoutRun) -> Flags:
    ranks = run.row["data"] * run.row["context"]
    copies = ranks // run.row["shard"] if run.zero else 1  # more than one in HSDP
    fsdp = run.zero > 1
    return {
        "use-distributed-optimizer": run.zero > 0,
        "num-distributed-optimizer-instances": copies if copies > 1 else None,
        "use-megatron-fsdp": fsdp,
        "data-parallel-sharding-strategy": SHARDED.get(run.zero),
        "overlap-grad-reduce": ranks > 1 and run.traits.overlap_gradients,
        # Refused without the other one.
        "overlap-param-gather": (
            ranks > 1
            and run.zero > 0
            and run.traits.overlap_gradients
            and run.traits.overlap_weights
        ),
        "no-gradient-accumulation-fusion": fsdp,
        "ckpt-format": "fsdp_dtensor" if fsdp else None,  # FSDP writes no other
    }


def _write_batch(run: LayoutRun, precisions: Mapping[str, str]) -> Flags:
    """Write the flags of batches and precision; precisions: flags by precision."""
    precision = precisions.get(run.precision)
    return {
        "micro-batch-size": run.row["micro"],
        "global-batch-size": run.training.batch,
        **({precision: True} if precision else {}),
        # The oracle has no dropout; the default is 0.1.
        "attention-dropout": 0.0,
        "hidden-dropout": 0.0,
    }


def _write_recompute(run: LayoutRun) -> Flags:
    if not run.modules:
        return {}
    if run.modules == ["blocks"]:
        return {
            "recompute-granularity": "full",
            "recompute-method": "uniform",
            "recompute-num-layers": 1,
        }
    return {"recompute-granularity": "selective", "recompute-modules": " ".join(run.modules)}


def write_deepspeed(run: LayoutRun) -> list[LaunchFile]:
    """Write DeepSpeed's JSON, and Megatron-DeepSpeed's flags for all else."""
    stack, wide = "DeepSpeed", run.precision == "bf16"
    others, narrow = bool(run.net.experts), run.precision in ("fp16", "fp8")
    refuse_run(
        *(stack, "deepspeed", run),
        run.drops_logits,
        (others, "gated experts by flags known here", "take megatron"),
        (narrow, f"the bytes of --precision {run.precision}", "take bf16, or zero for fp16"),
    )
    # DeepSpeed checks that the batch is the product of the next two and the replicas.
    config = {
        "train_batch_size": run.training.batch,
        "train_micro_batch_size_per_gpu": run.row["micro"],
        "gradient_accumulation_steps": run.passes,
        "zero_optimization": {"stage": run.zero},
        "bf16": {"enabled": wide},
        # `zero` stands for the bytes of ZeRO's paper, whose weights and gradients are fp16.
        "fp16": {"enabled": run.precision == "zero"},
        # Gradients of bf16 are counted with 4 bytes; DeepSpeed would add them up in bf16.
        **({"data_types": {"grad_accum_dtype": "fp32"}} if wide else {}),
    }
    script = _write_script(run, _write_deepspeed_flags(run, Sizes(stack, run.net)))
    return [{"file": "ds_config.json", "text": json.dumps(config, indent=2)}, script]


def _write_deepspeed_flags(run: LayoutRun, sizes: Sizes) -> Flags:
    row, again = run.row, bool(run.modules)
    return {
        "deepspeed": True,
        "deepspeed_config": "ds_config.json",
        "zero-stage": run.zero,
        "tensor-model-parallel-size": row["tensor"],
        "pipeline-model-parallel-size": row["pipeline"],
        "no-pipeline-parallel": run.stages == 1,
        "ds-sequence-parallel-size": row["context"] if row["context"] > 1 else None,
        "sequence-parallel": row["sequence"] > 0,
        **_write_batch(run, DEEPSPEED),
        "use-flash-attn-v2": run.training.fused_attention,
        "checkpoint-activations": again,
        "checkpoint-num-layers": 1 if again else None,
        "deepspeed-activation-checkpointing": again,
        **sizes.write(run.training.length),
        # Megatron-LM deprecates this flag, and has `position-embedding-type` instead.
        "use-rotary-position-embeddings": not sizes.learns_positions,
        "num-key-value-heads": sizes.groups if sizes.grouped else None,
        "normalization": "rmsnorm" if sizes.is_rms else "layernorm",
    }


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
        "parallelism": _write_titan_degrees(run) | (_write_titan_stages(run) if staged else {}),
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


def _write_titan_degrees(run: LayoutRun) -> dict[str, object]:
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
        "enable_async_tensor_parallel": row["tensor"] > 1 and run.traits.overlap_tensor,
        "context_parallel_degree": row["context"],
        "context_parallel_rotate_method": _ROTATE[run.training.context_by],
        "pipeline_parallel_degree": row["pipeline"],
        "expert_parallel_degree": row["expert"],
        "expert_tensor_parallel_degree": row["expert_tensor"] if row["expert"] > 1 else 1,
    }


def _write_titan_stages(run: LayoutRun) -> dict[str, object]:
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
