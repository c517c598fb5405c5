"""Sizes of a network as launch flags state them, found from the matrices of its blocks."""

from collections.abc import Mapping

from paradl.kernels.names.parallelisms import RECOMPUTE
from paradl.kernels.work.transformer import Transformer
from paradl.sweep.explanation.launch import refuse

Flags = Mapping[str, object]  # by name: True has no value, and None and False are left out


class Sizes:
    """Sizes of a network, as flags state them, found from the matrices of its blocks."""

    def __init__(self, stack: str, net: Transformer) -> None:
        self.net, self.weights = net, [w for block in net.kinds for w in block.weights]
        # No encoder, whose output `memory` is, and no images, whose length is fixed.
        text = net.memory is None and net.vocabulary > 0 and not net.length
        one = len(net.heads) == len(net.kv_heads) == 1
        latent = any(w.modules & RECOMPUTE["mla_up_proj"] for w in self.weights)
        decoder = "take a decoder such as llama3_70b"
        refuse(
            stack,
            (not text or not one, "this network by its GPT script", decoder),
            (latent, "latent attention by flags known here", decoder),
        )
        # KV heads: Megatron-LM calls them query groups.
        (self.heads,), (self.groups,) = net.heads, net.kv_heads
        self.grouped = self.groups < self.heads
        # The matrix of queries makes the features of all heads from those between blocks.
        made = next(w.matrix for w in self.weights if w.parts == self.heads and w.by_columns)
        self.head = round(made / net.hidden / self.heads)
        # RMSNorm has no biases.
        self.is_rms = all(weights.biases == 0 for weights in net.back.weights)
        # The matrix behind attention has biases where all others have them.
        self.biased = any(w.biases > 0 and w.parts and not w.by_columns for w in self.weights)
        # Positions have embeddings that are learned, or are rotary.
        self.learns_positions = bool(net.front.weights)

    def write(self, length: int) -> Flags:
        """Write flags that Megatron-LM and Megatron-DeepSpeed share."""
        net = self.net
        return {
            "num-layers": net.blocks,
            "hidden-size": net.hidden,
            # Of experts if all blocks have them.
            "ffn-hidden-size": self._find_width("mlp") or max(net.expert_ffn),
            "num-attention-heads": self.heads,
            # Megatron-LM divides the features by the heads unless it is told otherwise.
            "kv-channels": self.head if self.head * self.heads != net.hidden else None,
            "seq-length": length,
            # A sequence longer than this is refused.
            "max-position-embeddings": max(net.longest, length),
            "swiglu": self._has_gates(),
            "disable-bias-linear": not self.biased,
            "untie-embeddings-and-output-weights": not net.ties,
        }

    def _find_width(self, module: str) -> int | None:
        """Find the width of a module's matrices; None without such matrices."""
        bit = RECOMPUTE[module]
        widths = [w.parts for w in self.weights if w.modules & bit and w.parts and not w.is_routed]
        return max(widths, default=None)

    def _has_gates(self) -> bool:
        """Return whether MLPs have two matrices divided by columns, of which one is the gate."""
        first = self.net.kinds[0].weights
        mlps = [w for w in first if w.parts in (*self.net.ffn, *self.net.expert_ffn)]
        kinds = {w.parts for w in mlps if w.is_routed} or {w.parts for w in mlps}
        return sum(w.by_columns and w.parts in kinds for w in mlps) > len(kinds)

    def write_megatron(self) -> Flags:
        """Write flags that only Megatron-LM has."""
        matrices = [w for w in self.weights if w.parts in (self.heads, self.groups)]
        queries = any(w.biases > 0 and w.by_columns for w in matrices)
        # Weights that are not divided, of a head's features: norms of queries and keys.
        norms = any(w.matrix == self.head and not w.parts and not w.used for w in self.weights)
        return {
            "group-query-attention": self.grouped,
            "num-query-groups": self.groups if self.grouped else None,
            # Biases of queries, keys and values alone, as Qwen 2 has them.
            "add-qkv-bias": queries and not self.biased,
            "qk-layernorm": norms,
            "normalization": "RMSNorm" if self.is_rms else "LayerNorm",
            "position-embedding-type": "learned_absolute" if self.learns_positions else "rope",
            "vocab-size": self.net.vocabulary,
            **(self._write_experts() if self.net.experts else {}),
        }

    def _write_experts(self) -> Flags:
        """Write flags of a mixture of experts."""
        (experts,) = self.net.experts
        used = next(w.used for w in self.weights if w.is_routed)
        routed = [int(any(w.is_routed for w in block.weights)) for block in self.net.kinds]
        pattern = [routed[kind] for kind in self.net.order]
        return {
            "num-experts": experts,
            "moe-router-topk": round(used * experts),
            "moe-ffn-hidden-size": max(self.net.expert_ffn),
            "moe-shared-expert-intermediate-size": self._find_width("shared_experts"),
            # Quoted and without spaces, so that a shell leaves it whole.
            "moe-layer-freq": 1 if all(pattern) else f"'{pattern}'".replace(" ", ""),
        }
