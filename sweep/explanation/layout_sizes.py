"""A network's own sizes as flags of Megatron-LM and Megatron-DeepSpeed."""

from collections.abc import Iterator

from kernels.layouts.transformer import RECOMPUTE, Transformer, Weights
from sweep.explanation.layout_run import refuse


class Sizes:
    """A network's own sizes, read off the matrices of its blocks."""

    def __init__(self, stack: str, net: Transformer) -> None:
        text = net.memory is None and net.vocabulary > 0 and not net.length
        latent = any(
            weights.modules & RECOMPUTE["mla_up_proj"] for weights in self._list_weights(net)
        )
        one = len(net.heads) == len(net.kv_heads) == 1
        decoder = "take a decoder such as llama3_70b"
        refuse(
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
        """Width of the MLPs, or of the experts if all blocks have them."""
        dense = [w.parts for w in self._list_dense()]
        return max(dense or self.net.expert_ffn)

    @property
    def shared(self) -> int | None:
        """Width of the experts that all tokens pass."""
        bit = RECOMPUTE["shared_experts"]
        widths = [w.parts for w in self.weights if w.modules & bit and w.parts]
        return max(widths, default=None)

    def _list_dense(self) -> list[Weights]:
        bit = RECOMPUTE["mlp"]
        return [w for w in self.weights if w.parts and w.modules & bit and not w.is_routed]

    @property
    def gated(self) -> bool:
        """True if MLPs have two matrices divided by columns, of which one is the gate."""
        first = next(block for block in self.net.kinds)
        mlps = [w for w in first.weights if w.parts in (*self.net.ffn, *self.net.expert_ffn)]
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
