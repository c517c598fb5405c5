"""Launch lines of Megatron-LM, core 0.16, and of DeepSpeed with Megatron-DeepSpeed."""

import json

from paradl.kernels.names.parallelisms import RECOMPUTE
from paradl.kernels.work.schedules import is_uneven
from paradl.kernels.work.transformer import Transformer
from paradl.sweep.answers.types.fitting import LaunchFile
from paradl.sweep.explanation.layout_run import (
    LayoutRun,
    refuse,
    refuse_layout,
    refuse_loss,
    write_flags,
    write_torchrun,
)

# FP8 is a format of matrix products in training that is otherwise bf16.
MIXED = {"bf16": "bf16", "fp16": "fp16", "fp8": "bf16"}
CONTEXTS = {"ring": "p2p", "all_gather": "all_gather", "all_to_all": "a2a"}
SHARDED = {2: "optim_grads", 3: "optim_grads_params"}


class Sizes:
    """Sizes of a network, as flags state them, found from the matrices of its blocks."""

    def __init__(self, stack: str, net: Transformer) -> None:
        # No encoder, whose output `memory` is, and no images, whose length is fixed.
        text = net.memory is None and net.vocabulary > 0 and not net.length
        self.net, self.weights = net, [w for block in net.kinds for w in block.weights]
        latent = any(w.modules & RECOMPUTE["mla_up_proj"] for w in self.weights)
        one = len(net.heads) == len(net.kv_heads) == 1
        decoder = "take a decoder such as llama3_70b"
        refuse(
            stack,
            (not text or not one, "this network by its GPT script", decoder),
            (latent, "latent attention by flags known here", decoder),
        )
        # KV heads: Megatron-LM calls them query groups.
        (self.heads,), (self.groups,) = net.heads, net.kv_heads

    @property
    def head(self) -> int:
        """Features of a head."""
        # From the matrix of queries, which makes all heads from all features.
        matrix = next(w.matrix for w in self.weights if w.parts == self.heads and w.by_columns)
        return round(matrix / self.net.hidden / self.heads)

    @property
    def width(self) -> int:
        """Width of the MLPs, or of the experts if all blocks have them."""
        bit = RECOMPUTE["mlp"]
        mlps = [w for w in self.weights if w.modules & bit and not w.is_routed]
        return max([w.parts for w in mlps if w.parts] or self.net.expert_ffn)

    @property
    def shared(self) -> int | None:
        """Width of the experts that all tokens pass."""
        bit = RECOMPUTE["shared_experts"]
        widths = [w.parts for w in self.weights if w.modules & bit and w.parts]
        return max(widths, default=None)

    @property
    def gated(self) -> bool:
        """True if MLPs have two matrices divided by columns, of which one is the gate."""
        first = self.net.kinds[0].weights
        mlps = [w for w in first if w.parts in (*self.net.ffn, *self.net.expert_ffn)]
        kinds = {w.parts for w in mlps if w.is_routed} or {w.parts for w in mlps}
        return sum(w.by_columns and w.parts in kinds for w in mlps) > len(kinds)

    @property
    def biased(self) -> bool:
        """True if the matrix behind attention has biases."""
        return any(w.biases > 0 and w.parts and not w.by_columns for w in self.weights)

    @property
    def query_biased(self) -> bool:
        """True if queries, keys and values have biases."""
        of = (self.heads, self.groups)
        return any(w.biases > 0 and w.parts in of and w.by_columns for w in self.weights)

    @property
    def is_rms(self) -> bool:
        """Whether norms are RMSNorm: they have no biases."""
        return all(weights.biases == 0 for weights in self.net.back.weights)

    @property
    def norms_heads(self) -> bool:
        """Whether queries and keys are normalised head by head."""
        return any(w.matrix == self.head and not w.parts and not w.used for w in self.weights)

    @property
    def learns_positions(self) -> bool:
        """Whether positions have embeddings that are learned; else they are rotary."""
        return bool(self.net.front.weights)

    @property
    def layer_pattern(self) -> str | int:
        """Which blocks have experts, as Megatron-LM writes it."""
        routed = [int(any(w.is_routed for w in block.weights)) for block in self.net.kinds]
        pattern = [routed[kind] for kind in self.net.order]
        # Quoted and without spaces, so that a shell leaves it whole.
        return 1 if all(pattern) else f"'{pattern}'".replace(" ", "")

    def write(self, length: int) -> dict[str, object]:
        """Flags that Megatron-LM and Megatron-DeepSpeed share."""
        return {
            "num-layers": self.net.blocks,
            "hidden-size": self.net.hidden,
            "ffn-hidden-size": self.width,
            "num-attention-heads": self.heads,
            # Megatron-LM divides the features by the heads unless it is told otherwise.
            "kv-channels": self.head if self.head * self.heads != self.net.hidden else None,
            "seq-length": length,
            # A sequence longer than this is refused.
            "max-position-embeddings": max(self.net.longest, length),
            "swiglu": self.gated,
            "disable-bias-linear": not self.biased,
            "untie-embeddings-and-output-weights": not self.net.ties,
        }

    def write_experts(self) -> dict[str, object]:
        """Megatron-LM's flags of a mixture of experts."""
        if not self.net.experts:
            return {}
        (experts,) = self.net.experts
        used = next(w.used for w in self.weights if w.is_routed)
        return {
            "num-experts": experts,
            "moe-router-topk": round(used * experts),
            "moe-ffn-hidden-size": max(self.net.expert_ffn),
            "moe-shared-expert-intermediate-size": self.shared,
            "moe-layer-freq": self.layer_pattern,
            "moe-grouped-gemm": True,
            # As the oracle exchanges tokens; the default gathers them.
            "moe-token-dispatcher-type": "alltoall",
        }


def write_megatron(run: LayoutRun) -> list[LaunchFile]:
    """Write flags of Megatron-LM's pretrain_gpt.py."""
    stack, zero = "Megatron-LM", run.precision == "zero"
    refuse_loss(stack, run)
    refuse_layout(stack, "megatron", run)
    refuse(stack, (zero, "the bytes of --precision zero", "take --precision bf16"))
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
    # Uneven parts, chunks included, are written out block by block.
    uneven = bool(is_uneven(net, run.layout, run.training)[0])
    grouped = row["chunks"] > 1 and row["group"] != run.stages
    return {
        "tensor-model-parallel-size": row["tensor"],
        "pipeline-model-parallel-size": row["pipeline"],
        "num-virtual-stages-per-pipeline-rank": row["chunks"]
        if row["chunks"] > 1 and not uneven
        else None,
        "pipeline-model-parallel-layout": _write_stages(net.blocks, run.parts) if uneven else None,
        "account-for-embedding-in-pipeline-split": run.ends > 0,
        "account-for-loss-in-pipeline-split": run.ends > 0,
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
    copies = ranks // run.row["shard"] if run.zero else 1  # more than one in HSDP
    fsdp = run.zero > 1
    return {
        "use-distributed-optimizer": run.zero > 0,
        "num-distributed-optimizer-instances": copies if copies > 1 else None,
        "use-megatron-fsdp": fsdp,
        "data-parallel-sharding-strategy": SHARDED.get(run.zero),
        "no-gradient-accumulation-fusion": fsdp,
        # FSDP writes its checkpoints in no other format.
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
        # The oracle has no dropout; the default is 0.1.
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
    grouped = sizes.groups < sizes.heads
    return {
        **sizes.write(length),
        "group-query-attention": grouped,
        "num-query-groups": sizes.groups if grouped else None,
        # Biases of queries, keys and values alone, as Qwen 2 has them.
        "add-qkv-bias": sizes.query_biased and not sizes.biased,
        "qk-layernorm": sizes.norms_heads,
        "normalization": "RMSNorm" if sizes.is_rms else "LayerNorm",
        "position-embedding-type": "learned_absolute" if sizes.learns_positions else "rope",
        "vocab-size": sizes.net.vocabulary,
        **sizes.write_experts(),
    }


def write_deepspeed(run: LayoutRun) -> list[LaunchFile]:
    """Write DeepSpeed's JSON, and Megatron-DeepSpeed's flags for all else."""
    row, training, stack = run.row, run.training, "DeepSpeed"
    refuse_loss(stack, run)
    refuse_layout(stack, "deepspeed", run)
    refuse(
        stack,
        (bool(run.net.experts), "gated experts by flags known here", "take megatron"),
        (
            run.precision in ("fp16", "fp8"),
            f"the bytes of --precision {run.precision}",
            "take bf16, or zero for fp16",
        ),
    )
    # DeepSpeed checks that the batch is the product of the next two and the replicas.
    config = {
        "train_batch_size": training.batch,
        "train_micro_batch_size_per_gpu": row["micro"],
        "gradient_accumulation_steps": run.passes,
        "zero_optimization": {"stage": run.zero},
        "bf16": {"enabled": run.precision == "bf16"},
        # `zero` stands for the bytes of ZeRO's paper, whose weights and gradients are fp16.
        "fp16": {"enabled": run.precision == "zero"},
        # Gradients of bf16 are counted with 4 bytes; DeepSpeed would add them up in bf16.
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
        # Megatron-LM deprecates this flag, and has `position-embedding-type` instead.
        "use-rotary-position-embeddings": not sizes.learns_positions,
        "num-key-value-heads": sizes.groups if sizes.groups < sizes.heads else None,
        "normalization": "rmsnorm" if sizes.is_rms else "layernorm",
    }
    script = write_torchrun(run, "pretrain_gpt.py", *write_flags(flags))
    return [{"file": "ds_config.json", "text": json.dumps(config, indent=2)}, script]


_DEEPSPEED = {"bf16": "bf16", "zero": "fp16"}  # flags by precision; fp32 needs none
