"""Launch lines of Megatron-LM, core 0.16."""

from sweep.answers.types.fitting import LaunchFile
from sweep.explanation.layout_run import LayoutRun, refuse, refuse_loss, write_flags, write_torchrun
from sweep.explanation.layout_sizes import Sizes

# FP8 is a format of matrix products in training that is otherwise bf16.
MIXED = {"bf16": "bf16", "fp16": "fp16", "fp8": "bf16"}
CONTEXTS = {"ring": "p2p", "all_gather": "all_gather", "all_to_all": "a2a"}
SHARDED = {2: "optim_grads", 3: "optim_grads_params"}


def write_megatron(run: LayoutRun) -> list[LaunchFile]:
    """Flags of Megatron-LM's pretrain_gpt.py."""
    row, stack = run.row, "Megatron-LM"
    names = {*run.modules}
    refuse_loss(stack, run)
    refuse(
        stack,
        (
            run.zero > 1 and run.stages > 1,
            f"zero{row['zero']} with pp{row['pipeline']}",
            "take zero1, or pp1",
        ),
        (
            run.training.schedule != "1f1b" and run.stages > 1,
            f"the schedule {run.training.schedule}",
            "take --schedule 1f1b",
        ),
        (run.precision == "zero", "the bytes of --precision zero", "take --precision bf16"),
        ("full" in names, "recompute=full in square-root parts", "take recompute=blocks"),
        (
            "blocks" in names and len(names) > 1,
            "blocks and modules together",
            "take recompute=blocks",
        ),
    )
    flags = {
        **_write_degrees(run),
        **_write_zero(run),
        **_write_training(run),
        **_write_recompute(run),
        **_write_megatron_sizes(Sizes(stack, run.net), run.training.length),
    }
    return [write_torchrun(run, "pretrain_gpt.py", *write_flags(flags))]


def _write_degrees(run: LayoutRun) -> dict[str, object]:
    row, net = run.row, run.net
    parts = row["pipeline"] * row["chunks"]
    uneven = net.blocks % parts > 0
    grouped = row["chunks"] > 1 and row["group"] != run.stages
    return {
        "tensor-model-parallel-size": row["tensor"],
        "pipeline-model-parallel-size": row["pipeline"],
        "num-virtual-stages-per-pipeline-rank": row["chunks"]
        if row["chunks"] > 1 and not uneven
        else None,
        "pipeline-model-parallel-layout": _write_stages(net.blocks, parts) if uneven else None,
        "microbatch-group-size-per-virtual-pipeline-stage": row["group"] if grouped else None,
        "context-parallel-size": row["context"],
        "cp-comm-type": CONTEXTS[run.training.context_by] if row["context"] > 1 else None,
        "expert-model-parallel-size": row["expert"] if net.experts else None,
        "expert-tensor-parallel-size": row["expert_tensor"] if net.experts else None,
        "sequence-parallel": row["sequence"],
    }


def _write_stages(blocks: int, parts: int) -> str:
    """Write the blocks of each part as `Et*3|t*3|t*2L`; the first parts have one more."""
    least, more = divmod(blocks, parts)
    return "'E" + "|".join(f"t*{least + (part < more)}" for part in range(parts)) + "L'"


def _write_zero(run: LayoutRun) -> dict[str, object]:
    ranks = run.row["data"] * run.row["context"]
    copies = ranks // run.row["shard"] if run.zero else 1
    fsdp = run.zero > 1
    return {
        "use-distributed-optimizer": run.zero > 0,
        "num-distributed-optimizer-instances": copies if copies > 1 else None,
        "use-megatron-fsdp": fsdp,
        "data-parallel-sharding-strategy": SHARDED.get(run.zero),
        "no-gradient-accumulation-fusion": fsdp,
        "ckpt-format": "fsdp_dtensor" if fsdp else None,
    }


def _write_training(run: LayoutRun) -> dict[str, object]:
    mixed = MIXED.get(run.precision)
    return {
        "micro-batch-size": run.row["micro"],
        "global-batch-size": run.training.batch,
        **({mixed: True} if mixed else {}),
        "fp8-format": "hybrid" if run.precision == "fp8" else None,
        "attention-backend": "flash" if run.training.fused_attention else "unfused",
        "attention-dropout": 0.0,
        "hidden-dropout": 0.0,
    }


def _write_recompute(run: LayoutRun) -> dict[str, object]:
    if not run.modules:
        return {}
    if run.modules == ["blocks"]:
        return {
            "recompute-granularity": "full",
            "recompute-method": "uniform",
            "recompute-num-layers": 1,
        }
    return {"recompute-granularity": "selective", "recompute-modules": " ".join(run.modules)}


def _write_megatron_sizes(sizes: Sizes, length: int) -> dict[str, object]:
    learned = bool(sizes.net.front.weights)
    grouped = sizes.groups < sizes.heads
    shared = sizes.write(length)
    # `position-embedding-type` says the same, and this flag is deprecated.
    del shared["use-rotary-position-embeddings"]
    return {
        **shared,
        "group-query-attention": grouped,
        "num-query-groups": sizes.groups if grouped else None,
        "add-qkv-bias": sizes.query_biased and not sizes.biased,
        "qk-layernorm": sizes.norms_heads,
        "normalization": "RMSNorm" if sizes.is_rms else "LayerNorm",
        "position-embedding-type": "learned_absolute" if learned else "rope",
        "vocab-size": sizes.net.vocabulary,
        **sizes.write_experts(),
    }
