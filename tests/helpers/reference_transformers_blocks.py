"""An independent reference of transformers: the products and attentions of a block."""

from dataclasses import dataclass, replace

from reference_transformers import Adapter, Network, adapters


@dataclass(frozen=True)
class Matrix:
    """Weights of a block; in how many parts it may be, by columns or by rows, of which modules."""

    weights: float
    parts: float = 1
    rows: bool = False
    modules: frozenset[str] = frozenset()
    routed: bool = False
    undivided: bool = False  # whole on each PE, which computes the tokens that it keeps
    gradients: int = 2  # products backward
    rank: int = 0  # of an adapter
    small: bool = False  # kept in few bytes


@dataclass(frozen=True)
class Attention:
    """An attention of a block: F [FLOPs per token and position], of both products."""

    flops: float
    heads: int
    kv_heads: int
    features: float  # of a head, the mean of keys' and values'
    causal: bool
    sequence: int  # s
    pairs: int  # min(s, w), keys that a query may read

    @property
    def keys(self) -> float:
        """Keys per query that a fused kernel computes, on average."""
        s, w = self.sequence, self.pairs
        if not self.causal:
            return w
        return s / 2 if w == s else w - w**2 / (2 * s)


def attentions(net: Network, block: int, skips: bool = True) -> list[Attention]:
    features: float = net.head_size
    if net.latent:
        features = (net.latent.nope + net.latent.rope + net.latent.value) / 2
    # Where kernels skip what a mask hides, documents are sequences.
    document = net.document if skips else 0
    heads, s, pairs = net.heads, document or net.sequence, net.pairs(block, document)
    return [Attention(4 * heads * features, heads, net.a_kv, features, net.causal, s, pairs)]


def attention_matrices(net: Network) -> list[Matrix]:
    h, a = net.hidden, net.heads
    if not net.latent:
        keys = Matrix(h * net.a_kv * net.head_size, net.a_kv)
        wide = h * a * net.head_size
        return [Matrix(wide, a), keys, keys, Matrix(wide, a, rows=True)]
    ranks, again = net.latent, frozenset({"mla_up_proj"})
    return [
        *([Matrix(h * ranks.q_rank, undivided=True)] if ranks.q_rank else []),
        Matrix((ranks.q_rank or h) * a * (ranks.nope + ranks.rope), a, modules=again),
        Matrix(h * (ranks.kv_rank + ranks.rope), undivided=True),
        Matrix(ranks.kv_rank * a * (ranks.nope + ranks.value), a, modules=again),
        Matrix(a * ranks.value * h, a, rows=True),
    ]


def mlp_matrices(net: Network, block: int) -> list[Matrix]:
    def mlp(width: int, *modules: str, count: int = 1, routed: bool = False) -> list[Matrix]:
        size, parts, again = count * net.hidden * width, width, frozenset(modules)
        columns = [Matrix(size, parts, False, again, routed)] * (net.matrices - 1)
        return [*columns, Matrix(size, parts, True, again, routed)] if width else []

    if not net.has_experts(block):
        return mlp(net.ffn, "mlp")
    moe = frozenset({"moe"})
    shared = moe | {"shared_experts"}
    return [
        Matrix(net.experts * net.hidden, modules=moe, undivided=True),
        *([Matrix(net.hidden, modules=shared, undivided=True)] if net.shared_gate else []),
        *mlp(net.expert_ffn, "moe", count=net.experts, routed=True),
        *mlp(net.shared_ffn, "moe", "shared_experts"),
    ]


def matrices(net: Network, block: int) -> list[Matrix]:
    own = attention_matrices(net) + mlp_matrices(net, block)
    if not net.passes(block):
        return [replace(matrix, gradients=0, modules=frozenset()) for matrix in own]
    if not net.rank:
        return own
    own = [replace(matrix, gradients=1, small=net.stored > 0) for matrix in own]
    return own + [side for one in adapters(net, block) for side in adapter_matrices(net, one)]


def adapter_matrices(net: Network, one: Adapter) -> list[Matrix]:
    """A and B: the side beside the rank is divided, or whole."""

    def side(width: float, name: str) -> Matrix:
        is_divided, routed = one.divided == name, one.experts > 0
        size = net.rank * width * (one.experts or 1)
        return Matrix(
            size,
            one.parts if is_divided else 1,
            name == "inputs",
            one.modules,
            routed,
            not is_divided,
            rank=net.rank,
        )

    return [side(one.inputs, "inputs"), side(one.outputs, "outputs")]


def tensors_read(net: Network, block: int) -> int:
    """Tensors that a block reads."""
    attention = 5 + 2 * net.head_norms  # norm's input and output; queries, keys, values
    if net.latent:  # the latents and their norms; queries, keys with values
        attention = 2 + 2 * bool(net.latent.q_rank) + 5
    attention += 1 + 1  # scores, the projection's input
    wide = net.matrices
    mlp = 2 + wide
    if net.has_experts(block):
        mlp = 2 + 3 + wide + (wide if net.shared_ffn else 0)
    return attention + mlp + 2 + 3 * len(adapters(net, block))  # masks
