"""Launch lines of a layout: what to type for Megatron-LM, torchtitan, DeepSpeed and torchrun.

A stack is a function and a row of STACKS. Flags are those of Megatron-LM (megatron/training,
core 0.16), torchtitan's TOML (torchtitan/config, to 0.2), DeepSpeed's config JSON with
Megatron-DeepSpeed's flags, PyTorch's torchrun. What a stack cannot run is refused, never left out.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from grids.entries.systems import System
from grids.reading.errors import InputError
from kernels.layouts.transformer import RECOMPUTE, Training, Transformer, Weights
from sweep.answers.types.fitting import LaunchFile, LayoutRow

SCRIPT = "launch.sh"
MIXED = {"bf16": "bf16", "fp16": "fp16", "fp8": "bf16"}
CONTEXTS = {"ring": "p2p", "all_gather": "all_gather", "all_to_all": "a2a"}
SHARDED = {2: "optim_grads", 3: "optim_grads_params"}


@dataclass(frozen=True)
class Run:
    """A layout of a network on a machine, and how it trains. precision: the recipe's name."""

    net: Transformer
    row: LayoutRow
    training: Training
    precision: str
    machine: System

    @property
    def pes(self) -> int:
        """All PEs."""
        row = self.row
        return row["tensor"] * row["context"] * row["pipeline"] * row["data"]

    @property
    def passes(self) -> int:
        """m, micro-batches of an iteration."""
        return self.training.batch // (self.row["data"] * self.row["micro"])

    @property
    def modules(self) -> list[str]:
        """What is computed again."""
        return [name for name in self.row["recompute"].split(",") if name != "none"]

    @property
    def divides_model(self) -> bool:
        """Whether anything but data divides the PEs."""
        return self.pes > self.row["data"]

    @property
    def zero(self) -> int:
        """The ZeRO stage, 0 where one rank has all."""
        return self.row["zero"] if self.row["shard"] > 1 else 0


def write_launch(stack: str, run: Run) -> list[LaunchFile]:
    """Files with what to type; InputError: an unknown stack, or what it cannot run."""
    if stack not in STACKS:
        raise InputError.unknown("stack", stack, STACKS, where="launch")
    return STACKS[stack](run)


def _refuse(stack: str, *rules: tuple[bool, str, str]) -> None:
    """InputError: the first rule that holds, with what to change."""
    for broken, what, advice in rules:
        if broken:
            raise InputError(f"{stack} does not run {what}", where="launch", advice=advice)


def _write_torchrun(run: Run, *arguments: str) -> LaunchFile:
    """The script of each node, a flag a line."""
    per_node = min(run.pes, run.machine.pes_per_node)
    nodes = -(-run.pes // per_node)
    last = run.pes - (nodes - 1) * per_node
    notes = [f"# on the last node --nproc-per-node={last}"] if last < per_node else []
    torchrun = f"torchrun --nnodes={nodes} --nproc-per-node={per_node}"
    return {"file": SCRIPT, "text": "\n".join([*notes, " \\\n  ".join([torchrun, *arguments])])}


def _write_flags(flags: dict[str, object]) -> list[str]:
    """A line a flag; True: without a value, None and False: none."""
    return [
        f"--{name}" if value is True else f"--{name} {value}"
        for name, value in flags.items()
        if value is not None and value is not False
    ]


class Sizes:
    """A network's own sizes, read off the matrices of its blocks."""

    def __init__(self, stack: str, net: Transformer) -> None:
        text = net.memory is None and net.vocabulary > 0 and not net.length
        latent = any(
            weights.modules & RECOMPUTE["mla_up_proj"] for weights in self._list_weights(net)
        )
        one = len(net.heads) == len(net.kv_heads) == 1
        decoder = "take a decoder such as llama3_70b"
        _refuse(
            stack,
            (not text or not one, "this network by its GPT script", decoder),
            (latent, "latent attention by flags known here", decoder),
        )
        self.net, self.weights = net, [*self._list_weights(net)]
        (self.heads,), (self.groups,) = net.heads, net.kv_heads

    @staticmethod
    def _list_weights(net: Transformer) -> Iterator[Weights]:
        for block in net.kinds:
            yield from block.weights

    @property
    def head(self) -> int:
        """Features of a head."""
        matrix = next(w.matrix for w in self.weights if w.parts == self.heads and w.by_columns)
        return round(matrix / self.net.hidden / self.heads)

    @property
    def width(self) -> int:
        """Of the MLPs; of experts where all blocks have them."""
        dense = [w.parts for w in self._list_dense()]
        return max(dense or self.net.expert_ffn)

    @property
    def shared(self) -> int | None:
        """Of the experts that all tokens pass."""
        bit = RECOMPUTE["shared_experts"]
        widths = [w.parts for w in self.weights if w.modules & bit and w.parts]
        return max(widths, default=None)

    def _list_dense(self) -> list[Weights]:
        bit = RECOMPUTE["mlp"]
        return [w for w in self.weights if w.parts and w.modules & bit and not w.is_routed]

    @property
    def gated(self) -> bool:
        """Whether MLPs have two matrices divided by columns."""
        first = next(block for block in self.net.kinds)
        mlps = [w for w in first.weights if w.parts in (*self.net.ffn, *self.net.expert_ffn)]
        kinds = {w.parts for w in mlps if w.is_routed} or {w.parts for w in mlps}
        return sum(w.by_columns and w.parts in kinds for w in mlps) > len(kinds)

    @property
    def biased(self) -> bool:
        """Whether the matrix behind attention has biases."""
        return any(w.biases > 0 and w.parts and not w.by_columns for w in self.weights)

    @property
    def query_biased(self) -> bool:
        """Whether queries, keys and values have biases."""
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
    def layer_pattern(self) -> str | int:
        """Which blocks have experts, as Megatron-LM writes it."""
        routed = [int(any(w.is_routed for w in block.weights)) for block in self.net.kinds]
        pattern = [routed[kind] for kind in self.net.order]
        return 1 if all(pattern) else f"'{pattern}'".replace(" ", "")

    def write(self, length: int) -> dict[str, object]:
        """Flags that Megatron-LM and Megatron-DeepSpeed share."""
        learned = bool(self.net.front.weights)
        return {
            "num-layers": self.net.blocks,
            "hidden-size": self.net.hidden,
            "ffn-hidden-size": self.width,
            "num-attention-heads": self.heads,
            "kv-channels": self.head if self.head * self.heads != self.net.hidden else None,
            "seq-length": length,
            "max-position-embeddings": max(self.net.longest, length),
            "swiglu": self.gated,
            "disable-bias-linear": not self.biased,
            "untie-embeddings-and-output-weights": not self.net.ties,
            "use-rotary-position-embeddings": not learned,
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
            "moe-token-dispatcher-type": "alltoall",
        }


def _refuse_loss(stack: str, run: Run) -> None:
    part = run.training.loss_parts > 1 or run.training.fused_loss
    _refuse(stack, (part, "a chunked or fused loss without logits", "take --loss whole"))


def write_megatron(run: Run) -> list[LaunchFile]:
    """Flags of Megatron-LM's pretrain_gpt.py."""
    row, stack = run.row, "Megatron-LM"
    names = {*run.modules}
    _refuse_loss(stack, run)
    _refuse(
        stack,
        (
            run.zero > 1 and row["pipeline"] > 1,
            f"zero{row['zero']} with pp{row['pipeline']}",
            "take zero1, or pp1",
        ),
        (
            run.training.schedule != "1f1b" and row["pipeline"] > 1,
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
    return [_write_torchrun(run, "pretrain_gpt.py", *_write_flags(flags))]


def _write_degrees(run: Run) -> dict[str, object]:
    row, net = run.row, run.net
    parts = row["pipeline"] * row["chunks"]
    uneven = net.blocks % parts > 0
    grouped = row["chunks"] > 1 and row["group"] != row["pipeline"]
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
    """Blocks of each part, the first ones having one more, as `Et*3|t*3|t*2L`."""
    least, more = divmod(blocks, parts)
    return "'E" + "|".join(f"t*{least + (part < more)}" for part in range(parts)) + "L'"


def _write_zero(run: Run) -> dict[str, object]:
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


def _write_training(run: Run) -> dict[str, object]:
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


def _write_recompute(run: Run) -> dict[str, object]:
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


def write_torchtitan(run: Run) -> list[LaunchFile]:
    """torchtitan's TOML tables; its own [model] is left to the user."""
    row, training = run.row, run.training
    _refuse_loss("torchtitan", run)
    _refuse("torchtitan", *_list_torchtitan_rules(run))
    shard = row["shard"] // row["context"] if run.zero else 1
    staged = row["pipeline"] > 1
    parallelism: dict[str, object] = {
        "data_parallel_replicate_degree": row["data"] // shard,
        "data_parallel_shard_degree": shard,
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
            "local_batch_size": row["micro"] * (run.passes if staged else 1),
            "global_batch_size": training.batch,
            "seq_len": training.length,
            "mixed_precision_param": {"bf16": "bfloat16"}.get(run.precision, "float32"),
        },
        "activation_checkpoint": {"mode": "full" if run.modules else "none"},
    }
    text = "\n\n".join(f"[{name}]\n{_write_toml(table)}" for name, table in tables.items())
    script = _write_torchrun(run, "-m torchtitan.train", "--job.config_file layout.toml")
    return [{"file": "layout.toml", "text": text}, script]


_ROTATE = {"ring": "alltoall", "all_gather": "allgather", "all_to_all": ""}
_SCHEDULES = {"1f1b": "1F1B", "gpipe": "GPipe", "zbv": "ZBVZeroBubble"}


def _write_toml(table: dict[str, object]) -> str:
    """Lines of a table: JSON's strings and numbers are TOML's."""
    return "\n".join(f"{key} = {json.dumps(value)}" for key, value in table.items())


def _write_torchtitan_stages(run: Run) -> dict[str, object]:
    row = run.row
    parts = row["pipeline"] * (2 if run.training.schedule == "zbv" else row["chunks"])
    schedule = "Interleaved1F1B" if row["chunks"] > 1 else _SCHEDULES[run.training.schedule]
    return {
        "pipeline_parallel_schedule": schedule,
        "pipeline_parallel_microbatch_size": row["micro"],
        "pipeline_parallel_layers_per_stage": run.net.blocks // parts,
        "pipeline_parallel_first_stage_less_layers": 0,
        "pipeline_parallel_last_stage_less_layers": 0,
    }


def _list_torchtitan_rules(run: Run) -> Iterator[tuple[bool, str, str]]:
    """What it does not run, and what to change."""
    row, training = run.row, run.training
    t, c, p, e, etp = (
        row["tensor"],
        row["context"],
        row["pipeline"],
        row["expert"],
        row["expert_tensor"],
    )
    parts = p * (2 if training.schedule == "zbv" else row["chunks"])
    again = ", ".join({*run.modules} - {"blocks"})
    grouped = row["chunks"] > 1 and row["group"] != p
    yield bool(again), f"recompute={again}", "take recompute=blocks, or none"
    yield grouped, f"group{row['group']} of interleaved micro-batches", f"take group{p}"
    yield run.zero == 1, "zero1: FSDP divides gradients, too", "take zero2 or zero3"
    yield (
        run.zero == 0 and run.divides_model and row["data"] * c > 1,
        "zero0 beside other parallelism",
        "take zero2 or zero3",
    )
    yield t > 1 and not row["sequence"], f"tp{t} without sp", "add sp"
    yield (
        run.zero > 0 and row["shard"] % c > 0,
        f"shard{row['shard']} with cp{c}",
        f"take a shard that cp{c} divides",
    )
    yield (
        c > 1 and training.context_by == "all_to_all",
        "--context all_to_all",
        "take ring or all_gather",
    )
    yield p > 1 and training.schedule == "zb1p", "the schedule zb1p", "take zbv or 1f1b"
    yield (
        p > 1 and run.net.blocks % parts > 0,
        f"{run.net.blocks} blocks in {parts} even parts",
        f"take stages that divide {run.net.blocks}",
    )
    yield (
        run.precision not in ("bf16", "fp32"),
        f"--precision {run.precision} here",
        "take bf16 or fp32",
    )
    yield not training.fused_attention, "attention that keeps scores", "take --attention fused"
    yield e > 1 and etp not in (1, t), f"etp{etp} with tp{t}", f"take etp1 or etp{t}"
    inside = c * (t if etp == 1 else 1)
    whole = (row["shard"] if run.zero else c) * (t if etp == 1 else 1)
    yield (
        e > 1 and (e % inside > 0 or whole % e > 0),
        f"ep{e} over cp{c} and tp{t}",
        f"take a multiple of {inside} that divides {whole}",
    )


def write_deepspeed(run: Run) -> list[LaunchFile]:
    """DeepSpeed's JSON, and Megatron-DeepSpeed's flags for all else."""
    row, training, stack = run.row, run.training, "DeepSpeed"
    _refuse_loss(stack, run)
    _refuse(stack, *_list_deepspeed_rules(run))
    config = {
        "train_batch_size": training.batch,
        "train_micro_batch_size_per_gpu": row["micro"],
        "gradient_accumulation_steps": run.passes,
        "zero_optimization": {"stage": run.zero},
        "bf16": {"enabled": run.precision == "bf16"},
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
        "no-pipeline-parallel": row["pipeline"] == 1,
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
    script = _write_torchrun(run, "pretrain_gpt.py", *_write_flags(flags))
    return [{"file": "ds_config.json", "text": json.dumps(config, indent=2)}, script]


_DEEPSPEED = {"bf16": "bf16", "zero": "fp16"}


def _list_deepspeed_rules(run: Run) -> Iterator[tuple[bool, str, str]]:
    """What it does not run, and what to change."""
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


def write_plain(run: Run) -> list[LaunchFile]:
    """PyTorch's torchrun with a script of the user's: data alone, DDP or FSDP, as comments."""
    row, stack = run.row, "torchrun"
    _refuse(
        stack,
        (run.divides_model, "more than data", "take megatron, or dp alone"),
        (
            run.zero in (1, 2) and row["shard"] != row["data"],
            f"zero{row['zero']} in shards",
            "take zero3, or leave shard out",
        ),
    )
    wraps = {
        0: "DistributedDataParallel(model)",
        1: "DistributedDataParallel(model), ZeroRedundancyOptimizer(model.parameters(), AdamW)",
        2: "FullyShardedDataParallel(model, sharding_strategy=ShardingStrategy.SHARD_GRAD_OP)",
        3: "FullyShardedDataParallel(model, sharding_strategy=ShardingStrategy.FULL_SHARD)",
    }
    wrap = wraps[run.zero]
    if run.zero == 3 and row["shard"] < row["data"]:
        mesh = f"({row['data'] // row['shard']}, {row['shard']})"
        wrap = wrap.replace("FULL_SHARD", "HYBRID_SHARD").replace(
            "(model,", f'(model, device_mesh=init_device_mesh("cuda", {mesh}),'
        )
    script = _write_torchrun(run, "train.py")
    lines = [
        "# train.py is yours. In it:",
        f"# {wrap}",
        f"# {row['micro']} sequences of {run.training.length} tokens a pass, "
        f"{run.passes} passes an iteration; {run.precision}; recompute {row['recompute']}",
        script["text"],
    ]
    return [{"file": SCRIPT, "text": "\n".join(lines)}]


STACKS: dict[str, Callable[[Run], list[LaunchFile]]] = {
    "megatron": write_megatron,
    "torchtitan": write_torchtitan,
    "deepspeed": write_deepspeed,
    "torchrun": write_plain,
}
