"""An independent reference of transformers: parameters and memory of a layout, in plain numbers.

Written independently of the kernels, from published formulas. A PE has u tokens of a micro-batch.

Korthikanti 2022, "Reducing Activation Recomputation in Large Transformer Models" (activations);
Rajbhandari 2020, "ZeRO" (shares of states); Megatron-LM, docs dist_optimizer.md (bytes of a
parameter), schedules.py (micro-batches in flight). Where these leave room:

- The vocabulary is padded to a multiple of 128 t. Norms, the biases of matrices divided by rows,
  positions, routers and latent projections are replicated over t.
- Tied embeddings stand on the first and on the last stage.
- Kept tensors have 2 bytes, in fp32 4; GEMM inputs have 1 in fp8.
- Recomputed tensors exist once, for one block, whatever is in flight.
- Experts see the average of tokens: u k etp/t of them on a PE.
- Adapters (Hu 2021, LoRA) are a narrow matrix of the input and one of the output. Tensor
  parallelism divides the one with the divided side; the other, and what is between, is whole.
- Of a network with adapters nothing else is trained; gradients pass through all blocks. Of one with
  frozen first blocks, none does there. A frozen matrix keeps no input, attention its own output.
- The sum of a matrix's and its adapter's outputs moves both through memory, and keeps none.
- Embedding's token numbers and dropout mask are kept of each micro-batch in flight; logits of one,
  of all only where no backward pass begins before the last forward pass (gpipe's stages).
"""

import math
from dataclasses import dataclass, replace
from typing import Any

NORMS = {"layernorm": 2, "rmsnorm": 1, "none": 0}
# Bytes of a parameter: weights, gradients, states (Megatron dist_optimizer.md; ZeRO section 3.1).
RECIPES = {
    "bf16": (2, 4, 12),
    "fp16": (2, 2, 16),
    "fp32": (4, 4, 8),
    "fp8": (2, 4, 12),
    "zero": (2, 2, 12),  # Rajbhandari's K = 12: fp16 gradients, fp32 master, two moments
}
RECIPES |= {"mxfp8": RECIPES["fp8"], "nvfp4": RECIPES["fp8"]}
# Bytes of a GEMM's input: a scale of 8 bits for 32 of 8 bits, or for 16 of 4 bits.
READ = {"fp8": 1, "mxfp8": (32 * 8 + 8) / 32 / 8, "nvfp4": (16 * 4 + 8) / 16 / 8}
MODULES = {"core_attn", "mlp", "moe", "shared_experts", "layernorm", "moe_act", "mla_up_proj"}


@dataclass(frozen=True)
class Latent:
    """Multi-head latent attention's ranks and head sizes (DeepSeek-V2, section 2.1)."""

    kv_rank: int
    q_rank: int = 0  # 0: queries are projected directly
    nope: int = 128
    rope: int = 64
    value: int = 128


@dataclass(frozen=True)
class Network:
    layers: int
    hidden: int
    heads: int
    ffn: int
    vocabulary: int
    sequence: int
    kv_heads: int = 0  # 0: as heads
    head: int = 0  # 0: hidden / heads
    gated: bool = False
    tied: bool = True
    biases: bool = True
    qkv_biases: bool = False  # these alone (Qwen2)
    norm: str = "layernorm"
    head_norms: bool = False  # of queries and keys (Qwen3)
    dropout: bool = False
    positions: int = 0  # learnt ones
    longest: int = 0  # the positions that the model knows, if it matters
    experts: int = 0
    top_k: int = 0
    expert_ffn: int = 0
    shared_ffn: int = 0  # of all shared experts
    shared_gate: bool = False
    every: int = 1  # each n-th block is of experts
    dense_first: int = 0  # but not these
    latent: Latent | None = None
    causal: bool = True
    window: int = 0  # keys that a query reads at most; 0: all
    full_every: int = 0  # each n-th block reads all; 0: none of them does
    rank: int = 0  # of adapters; 0: there are none
    adapted: frozenset[str] = frozenset({"attention", "mlp"})  # matrices that have one
    stored: float = 0.0  # bytes of a frozen matrix's weight, beside adapters; 0: as others
    frozen: int = -1  # first blocks that are not trained, and no embedding; -1: all are
    document: int = 0  # tokens of each of a sequence's; 0: it is one

    @property
    def a_kv(self) -> int:
        return self.kv_heads or self.heads

    @property
    def head_size(self) -> int:
        return self.head or self.hidden // self.heads

    @property
    def matrices(self) -> int:
        """g, matrices of an MLP."""
        return 3 if self.gated else 2

    @property
    def is_tuned(self) -> bool:
        return self.rank > 0 or self.frozen >= 0

    def passes(self, block: int) -> bool:
        """Whether a block has a backward pass."""
        return block >= self.frozen

    def trains(self, block: int) -> bool:
        """Whether all weights of a block are trained."""
        return not self.rank and self.passes(block)

    @property
    def trains_head(self) -> bool:
        return not self.rank and not (self.frozen >= 0 and self.tied)

    def has_experts(self, block: int) -> bool:
        late = block >= self.dense_first
        return self.experts > 0 and late and (block + 1) % self.every == 0

    def pairs(self, block: int, document: int = 0) -> int:
        """min(s, w): keys per query of a block, whether or not a mask hides some of them."""
        full, length = self.full_every > 0 and (block + 1) % self.full_every == 0, self.sequence
        length = document or length
        return min(length, self.window) if self.window and not full else length


@dataclass(frozen=True)
class Layout:
    tensor: int = 1
    sequence_parallel: bool = False
    context: int = 1
    context_by: str = "ring"  # all_gather, all_to_all
    pipeline: int = 1
    chunks: int = 1
    schedule: str = "1f1b"  # gpipe, interleaved, zb1p, zbv
    group: int = 0  # N of interleaving; 0: pipeline
    expert: int = 1
    expert_tensor: int = 0  # 0: tensor
    data: int = 1
    zero: int = 0  # 1: the distributed optimizer
    node_shards: int = 0  # HSDP: ranks that share the states; 0: data x context
    micro: int = 1
    batch: int = 1
    recompute: frozenset[str] = frozenset()  # modules, or {"blocks"}, or {"full"}
    precision: str = "bf16"
    share: float = 1.0  # of a block, in a message of ZeRO
    live: float = 0.0
    bucket: float = 0.0
    keeps_stages: bool = False
    fused_attention: bool = True
    logit_bytes: int = 4  # 0: of a fused loss
    loss_parts: int = 1  # logits of one part of the tokens at a time
    offload: str = "none"  # states, activations, both: of hosts

    @property
    def pes(self) -> int:
        return self.tensor * self.context * self.pipeline * self.data

    @property
    def parts(self) -> int:
        """Of the network: chunks of all stages; a network without stages has no V."""
        folded = self.schedule == "zbv" and self.pipeline > 1
        return self.pipeline * (2 if folded else self.chunks)

    @property
    def micro_batches(self) -> int:
        return self.batch // (self.data * self.micro)

    @property
    def etp(self) -> int:
        return self.expert_tensor or self.tensor

    @property
    def sigma(self) -> int:
        return self.tensor if self.sequence_parallel else 1

    @property
    def shards(self) -> int:
        """N, ranks that share states of all but routed experts."""
        return self.node_shards or self.data * self.context

    @property
    def expert_shards(self) -> int:
        """The expert-data ranks, n / (p etp e); of a node's if that is less."""
        edp = self.tensor * self.context * self.data // (self.etp * self.expert)
        return min(edp, self.node_shards) if self.node_shards else edp


@dataclass(frozen=True)
class Buckets:
    """Parameters by who shares them: divided by t, replicated over t, routed experts."""

    tensor: float = 0
    replicated: float = 0
    experts: float = 0

    def __add__(self, other: "Buckets") -> "Buckets":
        return Buckets(
            self.tensor + other.tensor,
            self.replicated + other.replicated,
            self.experts + other.experts,
        )

    @property
    def total(self) -> float:
        return self.tensor + self.replicated + self.experts


def attention_parameters(net: Network, tensor: int = 1) -> Buckets:
    """Its matrices, biases and norms; with t, as if t PEs' parts were put together."""
    h, a, norm = net.hidden, net.heads, NORMS[net.norm]
    if net.latent:
        ranks = net.latent
        width = a * (ranks.nope + ranks.rope)
        queries = (ranks.q_rank or h) * width
        keys = ranks.kv_rank * a * (ranks.nope + ranks.value)
        down = h * (ranks.q_rank + ranks.kv_rank + ranks.rope)
        norms = norm * (ranks.q_rank + ranks.kv_rank)
        return Buckets(queries + keys + a * ranks.value * h, down + norms)
    kv_heads = max(net.a_kv, tensor)  # t > a_kv: some PEs hold the same KV head
    width = (a + 2 * kv_heads) * net.head_size
    column = width if net.biases or net.qkv_biases else 0
    normed = 2 * norm * net.head_size if net.head_norms else 0
    row = h if net.biases else 0
    return Buckets(h * (width + a * net.head_size) + column, row + normed)


def mlp_parameters(net: Network, block: int) -> Buckets:
    h, g = net.hidden, net.matrices
    if not net.has_experts(block):
        biases = (g - 1) * net.ffn if net.biases else 0
        return Buckets(g * h * net.ffn + biases, h if net.biases else 0)
    gate = h if net.shared_gate else 0
    experts = g * h * net.expert_ffn * net.experts
    return Buckets(g * h * net.shared_ffn, net.experts * h + gate, experts)


@dataclass(frozen=True)
class Adapter:
    """Beside a matrix: its sides, which is divided in how many parts, whose it is."""

    inputs: float
    outputs: float
    divided: str = ""  # inputs, outputs
    parts: int = 1
    modules: frozenset[str] = frozenset()
    experts: int = 0  # each has one


def adapters(net: Network, block: int) -> list[Adapter]:
    h, a, wide, up = net.hidden, net.heads, net.head_size, frozenset({"mla_up_proj"})
    result = []
    if net.rank and "attention" in net.adapted and net.latent:
        ranks = net.latent
        width = a * (ranks.nope + ranks.rope)
        result += [Adapter(h, ranks.q_rank)] if ranks.q_rank else []
        result += [
            Adapter(ranks.q_rank or h, width, "outputs", a, up),
            Adapter(h, ranks.kv_rank + ranks.rope),
            Adapter(ranks.kv_rank, a * (ranks.nope + ranks.value), "outputs", a, up),
            Adapter(a * ranks.value, h, "inputs", a),
        ]
    elif net.rank and "attention" in net.adapted:
        keys = Adapter(h, net.a_kv * wide, "outputs", net.a_kv)
        result += [Adapter(h, a * wide, "outputs", a), keys, keys]
        result += [Adapter(a * wide, h, "inputs", a)]

    def mlp(width: int, *names: str, experts: int = 0) -> list[Adapter]:
        some: Any = {"modules": frozenset(names), "experts": experts, "parts": width}
        columns = [Adapter(h, width, "outputs", **some)] * (net.matrices - 1)
        return [*columns, Adapter(width, h, "inputs", **some)] if width else []

    if not net.rank or "mlp" not in net.adapted:
        return result
    if not net.has_experts(block):
        return result + mlp(net.ffn, "mlp")
    routed = mlp(net.expert_ffn, "moe", experts=net.experts)
    return result + routed + mlp(net.shared_ffn, "moe", "shared_experts")


def adapter_parameters(net: Network, block: int, tensor: int, etp: int) -> Buckets:
    """As if the parts of all PEs were put together."""
    total = Buckets()
    for one in adapters(net, block):
        sides = {"inputs": one.inputs, "outputs": one.outputs}
        split = sides.pop(one.divided, 0.0)
        if one.experts:  # each of etp PEs has what is not divided
            size = split + etp * sum(sides.values())
            total += Buckets(experts=net.rank * one.experts * size)
        else:
            split *= max(1.0, tensor / one.parts)
            total += Buckets(net.rank * split, net.rank * sum(sides.values()))
    return total


def frozen_matrices(net: Network, block: int, tensor: int) -> Buckets:
    """Weights of a block's matrices, without biases and norms."""
    bare = replace(net, biases=False, qkv_biases=False, norm="none", head_norms=False)
    return attention_parameters(bare, tensor) + mlp_parameters(bare, block)


def block_parameters(net: Network, block: int, tensor: int = 1, etp: int = 1) -> Buckets:
    norms = Buckets(replicated=2 * NORMS[net.norm] * net.hidden)
    own = attention_parameters(net, tensor) + mlp_parameters(net, block) + norms
    return own + adapter_parameters(net, block, tensor, etp)


def weight_parameters(net: Network, layout: Layout, block: int) -> Buckets:
    """Of a block, in the bytes of a usual weight: small ones count less."""
    whole = block_parameters(net, block, layout.tensor, layout.etp)
    if not net.stored:
        return whole
    less = net.stored / RECIPES[layout.precision][0] - 1
    small = frozen_matrices(net, block, layout.tensor)
    return whole + Buckets(less * small.tensor, less * small.replicated, less * small.experts)


def trained_parameters(net: Network, layout: Layout, block: int) -> Buckets:
    if net.rank:
        return adapter_parameters(net, block, layout.tensor, layout.etp)
    return block_parameters(net, block, layout.tensor) if net.trains(block) else Buckets()


def ends_parameters(net: Network, first: bool, last: bool, vocabulary: int) -> Buckets:
    """Embedding and positions of a first stage; final norm and output layer of a last one."""
    table = vocabulary * net.hidden
    tables = first + last if not (first and last and net.tied) else 1
    norm = NORMS[net.norm] * net.hidden if last else 0
    return Buckets(tables * table, norm + (net.positions * net.hidden if first else 0))


def parameters(net: Network) -> int:
    """P, as published: the vocabulary is not padded, nothing is repeated."""
    blocks = sum(block_parameters(net, block).total for block in range(net.layers))
    return round(blocks + ends_parameters(net, True, True, net.vocabulary).total)


def padded_vocabulary(net: Network, layout: Layout) -> int:
    return 128 * layout.tensor * math.ceil(net.vocabulary / (128 * layout.tensor))


def stage_blocks(net: Network, layout: Layout, stage: int) -> list[int]:
    """The numbers of its blocks: chunks are even, if need be with embedding (-1) and loss (l) as a
    block each; where they cannot be, the first ones have one more.

    Chunk c of stage i is the (c p + i)-th; of zbv, in the form of a V, i-th and last but i.
    """
    layers, parts = net.layers, layout.parts
    units = range(layers)
    if layers % parts > 0 and (layers + 2) % parts == 0:
        units = range(-1, layers + 1)
    least, more = divmod(len(units), parts)
    starts = [part * least + min(part, more) for part in range(parts + 1)]
    by_chunk = range(stage, parts, layout.pipeline)
    mine = {stage, parts - 1 - stage} if layout.schedule == "zbv" else by_chunk
    own = [unit for part in mine for unit in units[starts[part] : starts[part + 1]]]
    return [unit for unit in own if 0 <= unit < layers]


def has_ends(layout: Layout, stage: int) -> tuple[bool, bool]:
    """Whether a stage has the embedding, and the output layer."""
    first, last = stage == 0, stage == layout.pipeline - 1
    return first, first if layout.schedule == "zbv" else last


def held_parameters(net: Network, layout: Layout, stage: int) -> Buckets:
    """The parameters on a PE of a stage, as of `weight_parameters`."""
    whole = Buckets()
    for block in stage_blocks(net, layout, stage):
        whole += weight_parameters(net, layout, block)
    whole += ends_parameters(net, *has_ends(layout, stage), padded_vocabulary(net, layout))
    return divide(whole, layout)


def held_trained(net: Network, layout: Layout, stage: int) -> Buckets:
    """Those that are trained: without the embedding if any are not."""
    whole = Buckets()
    for block in stage_blocks(net, layout, stage):
        whole += trained_parameters(net, layout, block)
    first, last = has_ends(layout, stage)
    if not net.is_tuned:
        whole += ends_parameters(net, first, last, padded_vocabulary(net, layout))
    elif not net.rank:
        table = padded_vocabulary(net, layout) if net.trains_head else 0
        whole += ends_parameters(net, False, last, table)
    return divide(whole, layout)


def divide(whole: Buckets, layout: Layout) -> Buckets:
    experts = whole.experts / (layout.etp * layout.expert)
    return Buckets(whole.tensor / layout.tensor, whole.replicated, experts)


def model_states(net: Network, layout: Layout, stage: int) -> dict[str, float]:
    """Bytes of weights, gradients and states: sharded from ZeRO stage 3, 2 and 1 on."""
    result = {}
    names = zip(("weights", "gradients", "states"), RECIPES[layout.precision], strict=True)
    for least, (part, size) in zip((3, 2, 1), names, strict=True):
        find = held_parameters if part == "weights" else held_trained
        held = find(net, layout, stage)
        dense = held.tensor + held.replicated
        shared = dense / layout.shards + held.experts / layout.expert_shards
        result[part] = size * (shared if layout.zero >= least else held.total)
    if layout.offload in ("states", "both"):
        result["states"] = 0.0
    return result


def undivided(net: Network, layout: Layout, stage: int) -> dict[str, float]:
    """Two messages of gathered weights, one of gradients: of what other ranks hold a part of.

    A message is a share of the largest block; software may hold more, or a whole stage.
    """

    def of_others(held: Buckets) -> float:
        dense = held.tensor + held.replicated if layout.shards > 1 else 0.0
        return dense + (held.experts if layout.expert_shards > 1 else 0.0)

    def measure(find: Any, held: Buckets, least: float) -> tuple[float, float]:
        numbers = stage_blocks(net, layout, stage)
        blocks = [divide(find(net, layout, n), layout) for n in numbers]
        whole, keeps = of_others(held), layout.keeps_stages and layout.pipeline > 1
        message = layout.share * max(map(of_others, blocks), default=0.0)
        return message, whole if keeps else min(whole, least)

    weight, gradient, _ = RECIPES[layout.precision]
    stored, trained = held_parameters(net, layout, stage), held_trained(net, layout, stage)
    two, live = measure(weight_parameters, stored, layout.live)
    message, bucket = measure(trained_parameters, trained, layout.bucket)
    return {
        "gathered": weight * max(2 * two, live) if layout.zero == 3 else 0.0,
        "unreduced": gradient * max(message, bucket) if layout.zero >= 2 else 0.0,
    }


NONE: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Tensor:
    """One that the backward pass reads: bytes a PE, and which recomputing makes it needless."""

    module: str
    bytes: float
    dropped_by: frozenset[str] = frozenset()
    kept: bool = True  # else only moved
    flows: bool = True  # its gradient is moved, too


def attention_tensors(net: Network, layout: Layout, tokens: float, block: int) -> list[Tensor]:
    t, sigma, h, a = layout.tensor, layout.sigma, net.hidden, net.heads
    item = 4 if layout.precision == "fp32" else 2
    read = READ.get(layout.precision, item)  # a GEMM's input
    up = frozenset({"mla_up_proj"})
    reads = net.trains(block) or "attention" in net.adapted
    if net.latent:
        ranks = net.latent
        out = a * ranks.value
        queries, latents = a * (ranks.nope + ranks.rope), ranks.q_rank + ranks.kv_rank
        result = [
            Tensor("latent", tokens * item * (latents + ranks.rope) / sigma),
            Tensor("latent", tokens * read * latents / sigma, up, reads),
            Tensor("qkv", tokens * item * (2 * queries + out) / t, up),
        ]
    else:
        out = a * net.head_size
        keys = 2 * max(net.a_kv, t) * net.head_size
        result = [Tensor("qkv", tokens * item * (out + keys) / t)]
        if net.head_norms:  # which read queries and keys as they come, not turned
            result.append(Tensor("qkv", tokens * item * (out + keys / 2) / t))
    result.append(Tensor("projection", tokens * read * out / t))
    if layout.fused_attention:
        if read < item:  # the kernel's backward pass reads its output, the GEMM another copy
            result.append(Tensor("core_attention", tokens * item * out / t))
    else:
        scores = tokens * a * net.pairs(block) / t
        of_each = 2 * item + 1 if net.dropout else item  # softmax, its dropout's mask and output
        result.append(Tensor("core_attention", of_each * scores, frozenset({"core_attn"})))
    mask = tokens * h / sigma if net.dropout else 0
    return [
        Tensor("norms", tokens * item * h / sigma),
        Tensor("norms", tokens * read * h / sigma, frozenset({"layernorm"}), reads),
        *result,
        Tensor("dropout", mask),
    ]


def mlp_tensors(net: Network, layout: Layout, tokens: float, block: int) -> list[Tensor]:
    t, sigma, h, g = layout.tensor, layout.sigma, net.hidden, net.matrices
    item = 4 if layout.precision == "fp32" else 2
    read = READ.get(layout.precision, item)
    reads = net.trains(block) or "mlp" in net.adapted
    whole = (
        net.trains(block)
        or (reads and not net.has_experts(block))
        or (reads and net.shared_ffn > 0)
    )
    norms = [
        Tensor("norms", tokens * item * h / sigma),
        Tensor("norms", tokens * read * h / sigma, frozenset({"layernorm"}), whole),
        Tensor("dropout", tokens * h / sigma if net.dropout else 0, frozenset({"mlp"})),
    ]

    def wide(module: str, width: float, *by: str) -> list[Tensor]:
        inner = tokens * width / t
        activated = frozenset({*by, "moe_act"} if module == "experts" else by)
        return [
            Tensor(module, inner * (g - 1) * item, frozenset(by)),
            Tensor(module, inner * read, activated, reads),
        ]

    if not net.has_experts(block):
        return norms + wide("mlp", net.ffn, "mlp")
    k, moe = net.top_k, frozenset({"moe"})
    return [
        *norms,
        Tensor("router", tokens * 4 * net.experts / sigma, moe),
        Tensor("dispatch", tokens * read * k * h * layout.etp / t, moe, reads),
        *wide("experts", k * net.expert_ffn, "moe"),
        Tensor("combine", tokens * item * k * h / sigma, moe),
        *wide("shared_experts", net.shared_ffn, "moe", "shared_experts"),
    ]


def adapter_tensors(net: Network, layout: Layout, tokens: float, block: int) -> list[Tensor]:
    """Between the two matrices, kept; and what both the adapter and its matrix make, moved."""
    item = 4 if layout.precision == "fp32" else 2
    read = READ.get(layout.precision, item)
    result = []
    for one in adapters(net, block):
        u = tokens * (net.top_k if one.experts else 1)
        parts = min(layout.tensor, one.parts) if one.divided == "outputs" else layout.sigma
        made = Tensor("adapters", u * item * one.outputs / parts, one.modules, kept=False)
        between = Tensor("adapters", u * read * net.rank / layout.sigma, one.modules)
        result += [between, made, made]
    return result


def block_tensors(net: Network, layout: Layout, block: int) -> list[Tensor]:
    """What a block keeps of a micro-batch: Korthikanti's list."""
    tokens = layout.micro * net.sequence / layout.context
    kept = attention_tensors(net, layout, tokens, block) + mlp_tensors(net, layout, tokens, block)
    kept += adapter_tensors(net, layout, tokens, block)
    if block == net.frozen:
        kept[0] = replace(kept[0], flows=False)
    if layout.recompute & {"blocks", "full"}:
        kept[1:] = [replace(row, dropped_by=layout.recompute) for row in kept[1:]]
    return kept if net.passes(block) else [pass_forward(row) for row in kept]


def pass_forward(row: Tensor) -> Tensor:
    """As a block without a backward pass has it; masks are there all the same."""
    return row if row.module == "dropout" else Tensor(row.module, row.bytes, NONE, False, False)


def kept_by_module(net: Network, layout: Layout, block: int) -> dict[str, float]:
    """Bytes by module that a block keeps of a micro-batch until its backward pass."""
    kept: dict[str, float] = {}
    for tensor in block_tensors(net, layout, block):
        if tensor.kept and not tensor.dropped_by & layout.recompute:
            kept[tensor.module] = kept.get(tensor.module, 0.0) + tensor.bytes
    return kept


def dropped_bytes(net: Network, layout: Layout, block: int) -> float:
    """What a block computes again: there while its backward pass runs."""
    tensors = block_tensors(net, layout, block)
    return sum(row.bytes for row in tensors if row.kept and row.dropped_by & layout.recompute)
