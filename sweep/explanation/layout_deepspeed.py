"""Launch lines of DeepSpeed: its JSON, and flags of Megatron-DeepSpeed."""

import json
from collections.abc import Iterator

from sweep.answers.types.fitting import LaunchFile
from sweep.explanation.layout_run import LayoutRun, refuse, refuse_loss, write_flags, write_torchrun
from sweep.explanation.layout_sizes import Sizes


def write_deepspeed(run: LayoutRun) -> list[LaunchFile]:
    """Write DeepSpeed's JSON, and Megatron-DeepSpeed's flags for all else."""
    row, training, stack = run.row, run.training, "DeepSpeed"
    refuse_loss(stack, run)
    refuse(stack, *_list_deepspeed_rules(run))
    config = {
        "train_batch_size": training.batch,
        "train_micro_batch_size_per_gpu": row["micro"],
        "gradient_accumulation_steps": run.passes,
        "zero_optimization": {"stage": run.zero},
        "bf16": {"enabled": run.precision == "bf16"},
        # `zero` stands for the bytes of ZeRO's paper, whose weights and gradients are fp16.
        "fp16": {"enabled": run.precision == "zero"},
        **({"data_types": {"grad_accum_dtype": "fp32"}} if run.precision == "bf16" else {}),
    }
    sizes = Sizes(stack, run.net)
    again = bool(run.modules)
    flags = {
        "deepspeed": True,
        "deepspeed_config": "ds_config.json",
        "zero-stage": run.zero,
        "tensor-model-parallel-size": row["tensor"],
        "pipeline-model-parallel-size": row["pipeline"],
        "no-pipeline-parallel": run.stages == 1,
        "ds-sequence-parallel-size": row["context"] if row["context"] > 1 else None,
        "sequence-parallel": row["sequence"],
        "micro-batch-size": row["micro"],
        "global-batch-size": training.batch,
        **({_DEEPSPEED[run.precision]: True} if run.precision in _DEEPSPEED else {}),
        "use-flash-attn-v2": training.fused_attention,
        "attention-dropout": 0.0,
        "hidden-dropout": 0.0,
        "checkpoint-activations": again,
        "checkpoint-num-layers": 1 if again else None,
        "deepspeed-activation-checkpointing": again,
        **sizes.write(training.length),
        "num-key-value-heads": sizes.groups if sizes.groups < sizes.heads else None,
        "normalization": "rmsnorm" if sizes.is_rms else "layernorm",
    }
    script = write_torchrun(run, "pretrain_gpt.py", *write_flags(flags))
    return [{"file": "ds_config.json", "text": json.dumps(config, indent=2)}, script]


_DEEPSPEED = {"bf16": "bf16", "zero": "fp16"}


def _list_deepspeed_rules(run: LayoutRun) -> Iterator[tuple[bool, str, str]]:
    """List what DeepSpeed does not run, and what to change."""
    row, training = run.row, run.training
    c, p = row["context"], row["pipeline"]
    again = ", ".join({*run.modules} - {"blocks"})
    yield run.zero > 1 and p > 1, f"zero{row['zero']} with pp{p}", "take zero1, or pp1"
    yield row["chunks"] > 1, f"v{row['chunks']}: interleaved chunks", "take v1"
    yield p > 1 and training.schedule != "1f1b", f"the schedule {training.schedule}", "take 1f1b"
    yield (
        c > 1 and training.context_by != "all_to_all",
        f"--context {training.context_by}",
        "take all_to_all (Ulysses)",
    )
    yield c > 1 and p > 1, f"cp{c} with pp{p}", "take cp1, or pp1"
    yield (
        run.zero > 0 and row["shard"] != row["data"] * c,
        f"shard{row['shard']} of {row['data'] * c} ranks here",
        "leave shard out",
    )
    yield bool(again), f"recompute={again}", "take recompute=blocks, or none"
    yield bool(run.net.experts), "gated experts by flags known here", "take megatron"
    yield (
        run.precision in ("fp16", "fp8"),
        f"the bytes of --precision {run.precision}",
        "take bf16, or zero for fp16",
    )
