"""ATen operators as steps of a model's file: a method `take_NAME` for each."""

import math
from collections.abc import Callable, Sequence
from typing import Any

from paradl.grids.models.kinds import KIND_OF_STEP
from paradl.sweep.importing.networks.graph import BATCH, TracedGraph, TracedTensor
from paradl.sweep.importing.networks.operator_steps import (
    OperatorSite,
    OperatorSteps,
    short,
    unusual,
    view,
)

# Names of ATen, by what they do. Views move nothing: a framework may copy, but need not. Shapes
# take only the shape of a tensor. Parts are views of several. Scalars go item by item, by a number
# or alone, fused with what they follow. Traffic moves memory, and computes next to nothing.
NAMES = """
views: view reshape _unsafe_view view_as reshape_as transpose t contiguous flatten unflatten
squeeze unsqueeze expand expand_as broadcast_to clone alias detach to _to_copy movedim swapaxes
swapdims roll slice select narrow type_as lift_fresh_copy identity permute repeat
repeat_interleave float half bfloat16 int long bool flip index unfold diagonal view_as_complex
view_as_real real imag tril triu _assert_tensor_metadata

shapes: new_zeros new_ones new_full new_empty zeros_like ones_like full_like empty_like rand_like
randn_like

parts: chunk split split_with_sizes unbind tensor_split unsafe_chunk getitem

scalars: add sub mul div rsub neg pow clamp clamp_min clamp_max sqrt rsqrt exp expm1 log log1p abs
reciprocal sin cos tan tanh erf floor ceil round sign square softplus selu celu logsigmoid
log_sigmoid hardshrink softshrink threshold bitwise_not logical_not eq ne lt le gt ge isnan isinf
remainder fmod floor_divide __and__ bitwise_and where masked_fill nan_to_num

traffic: upsample_bilinear2d upsample_nearest2d upsample_bicubic2d upsample_nearest1d
upsample_nearest3d upsample_trilinear3d upsample_linear1d _upsample_nearest_exact2d grid_sampler
grid_sampler_2d pixel_shuffle pixel_unshuffle channel_shuffle im2col col2im stack hstack vstack sum
prod amax amin max min maximum minimum argmax argmin logsumexp linalg_vector_norm norm cumsum
cumprod topk sort argsort histc bincount bucketize index_add index_copy scatter_reduce gather
index_select take_along_dim index_put scatter scatter_add addcmul addcdiv lerp prelu glu max_pool1d
avg_pool1d adaptive_avg_pool1d adaptive_max_pool2d max_pool2d_with_indices max_unpool2d one_hot
outer atan2 logical_and logical_or bitwise_or tile
"""
KINDS = {
    kind.strip(): frozenset(names.split())
    for kind, _, names in (part.partition(":") for part in NAMES.split("\n\n"))
}
WORDS = {word: word for word in KIND_OF_STEP if KIND_OF_STEP[word].elementwise}
WORDS |= dict.fromkeys(("softmax", "_softmax", "log_softmax"), "softmax")
NORMS = {"batch_norm": "batchnorm", "layer_norm": "layernorm", "group_norm": "groupnorm"}
NORMS |= {"instance_norm": "instancenorm", "rms_norm": "rmsnorm"}
POOLS = {f"{kind}_pool{rank}d": f"{kind}pool" for kind in ("max", "avg") for rank in (2, 3)}
COMBINED = {"add": "residual", "sub": "residual", "mul": "multiply", "div": "multiply"}


class TorchOperators(OperatorSteps):
    """Steps of a graph, by operators.

    normalised: steps whose output has been divided by a statistic of it.
    """

    def __init__(self, graph: TracedGraph) -> None:
        super().__init__(graph)
        self.normalised: set[str] = set()

    def take(self, site: OperatorSite, shapes: Sequence[Any]) -> Any:
        """Return the output of an operator on activations, or several."""
        kind = site.kind.rpartition(".")[2]  # behind the name of a library
        operator: Callable[..., Any] | None = getattr(self, f"take_{kind}", None)
        if operator is not None:
            return operator(site)
        if site.kind in NORMS:
            return self.normalise(site)
        if site.kind in WORDS:
            return self.word(site, WORDS[site.kind])
        is_scalar = site.kind in KINDS["scalars"]
        is_alone = len({tensor.step for tensor in site.live}) == 1
        is_fused = is_alone and not any(tensor.parameters for tensor in site.weights)
        is_view = site.kind in KINDS["views"] | KINDS["parts"]
        if is_view or (is_scalar and is_fused):
            return view(site.live[0], site.shape)
        if not is_scalar and site.kind not in KINDS["traffic"]:
            self.graph.unknown[site.kind] += math.prod(site.shape[1:])
        y = self.count(site)
        return y if len(shapes) == 1 else tuple(view(y, shape) for shape in shapes)

    def take_conv2d(self, site: OperatorSite) -> TracedTensor:
        """Add a convolution: stride, padding, dilation, groups."""
        x, weight = self.fit_image(site.live[0], site), site.reads[1]
        stride, padding, dilation, groups = site.fill(3, [1], [0], [1], 1)
        settings: dict[str, object] = {"filters": site.shape[1], "kernel": short(weight.shape[2:])}
        settings |= unusual(stride=stride, dilation=dilation)
        if padding == "same":
            settings["padding"] = "same"
        elif padding != "valid":
            settings |= unusual(padding=padding)
        if groups != 1:
            settings["groups"] = "channels" if groups == x.sizes[0] else groups
        return self.weighted("conv", settings, site, x, site.shape[1:])

    def take_conv_transpose2d(self, site: OperatorSite) -> TracedTensor:
        """Add a transposed convolution: stride, padding, output padding, groups, dilation."""
        x, weight = self.fit_image(site.live[0], site), site.reads[1]
        stride, padding, more, groups, dilation = site.fill(3, [1], [0], [0], 1, [1])
        settings: dict[str, object] = {"filters": site.shape[1], "kernel": short(weight.shape[2:])}
        settings |= unusual(stride=stride, padding=padding, dilation=dilation, output_padding=more)
        settings |= unusual(groups=groups)
        return self.weighted("transposed_conv", settings, site, x, site.shape[1:])

    take_conv_transpose3d = take_conv_transpose2d
    take_conv3d = take_conv2d

    def take_conv1d(self, site: OperatorSite) -> TracedTensor:
        """Count a convolution along a sequence, or along channels."""
        # Convolutions of a model's file slide over images alone.
        return self.product(site, 2.0 * site.items * math.prod(site.reads[1].shape[1:]))

    def take_mm(self, site: OperatorSite) -> TracedTensor:
        """Add x w, or bias + x w; or count the product of two tensors."""
        first = 1 if site.kind in ("addmm", "baddbmm") else 0
        bias, (x, matrix) = site.reads[:first], site.reads[first : first + 2]
        is_applied = matrix.is_weight and not x.is_weight and len(matrix.shape) == 2
        if not is_applied or not all(tensor.is_weight for tensor in bias):
            return self.product(site, 2 * site.items * x.shape[-1])
        features = site.shape[-1]  # the matrix has C x F items, in whichever order
        return self.multiply(site, x, matrix, math.prod(matrix.shape) // features, features)

    take_linear = take_addmm = take_matmul = take_bmm = take_baddbmm = take_mm

    # Rows times the matrix of the expert that each goes to: all experts are held.
    take_grouped_mm = take__grouped_mm = take_grouped_mm_fallback = take_mm

    def take_scan(self, site: OperatorSite) -> TracedTensor:
        """Count a scan over positions, of operations for the whole batch (torch_scans.py)."""
        return self.product(site, site.args[2] / BATCH)

    def normalise(self, site: OperatorSite) -> TracedTensor:
        """Add a normalisation with a scale and a shift per channel; others are counted."""
        x = site.live[0]
        weights = self.graph.take_weights(site.weights)
        by_channel = site.kind in ("batch_norm", "group_norm", "instance_norm")
        fits = x.shape[1 if by_channel else -1] == x.sizes[0]
        # A scale, and a shift except in an RMS normalisation.
        per = 1 if site.kind == "rms_norm" else 2
        if not fits or weights != per * x.sizes[0]:
            return self.count(site, weights=weights)
        return self.word(site, NORMS[site.kind])

    def take_hardtanh(self, site: OperatorSite) -> TracedTensor:
        return self.word(site, "relu6" if site.args[1:3] == [0.0, 6.0] else "hardtanh")

    def take_dropout(self, site: OperatorSite) -> TracedTensor:
        return self.word(site, "dropout") if site.args[1] > 0 else view(site.live[0], site.shape)

    def take_max_pool2d(self, site: OperatorSite) -> TracedTensor:
        """Add a pooling: stride, padding, dilation of a maximum alone, and whether it rounds up."""
        word = POOLS[site.kind]
        kernel, stride, padding, *_, ceil = (
            site.fill(1, None, [], [0], [1], False)
            if word == "maxpool"
            else site.fill(1, None, [], [0], False)[:4]
        )
        x = self.fit_image(site.live[0], site)
        settings: dict[str, object] = {"kernel": short(kernel)}
        if stride and short(stride) != short(kernel):
            settings["stride"] = short(stride)
        settings |= unusual(padding=padding) | ({"ceil": True} if ceil else {})
        return self.step(site, word, settings, x, site.shape[1:])

    take_max_pool3d = take_avg_pool2d = take_avg_pool3d = take_max_pool2d

    def take_adaptive_avg_pool2d(self, site: OperatorSite) -> TracedTensor:
        x = self.fit_image(site.live[0], site)
        if x.sizes == site.shape[1:]:
            return view(x, site.shape)
        settings = {"extent": short(site.shape[2:])}
        return self.step(site, "adaptive_avgpool", settings, x, site.shape[1:])

    take_adaptive_avg_pool3d = take_adaptive_avg_pool2d

    def take_mean(self, site: OperatorSite) -> TracedTensor:
        """Add the mean of all places of an image; features' own is a statistic, others traffic."""
        x = site.live[0]
        if self._is_statistic(site):
            return view(x, site.shape)
        if len(x.sizes) > 2 and site.items == x.sizes[0]:
            return self.pool_all(site, x)
        return self.count(site)

    def _is_statistic(self, site: OperatorSite) -> bool:
        """Return whether features alone are reduced, as a written-out normalisation does."""
        x = site.live[0]
        at = 2 if "norm" in site.kind else 1  # behind the order of a norm
        dims = site.args[at] if len(site.args) > at else None
        dims = dims if isinstance(dims, list | tuple) else [dims]
        if len(dims) != 1 or not isinstance(dims[0], int):
            return False
        last = len(x.shape) - 1
        return dims[0] % len(x.shape) == last == x.channel % len(x.shape)

    def take_var(self, site: OperatorSite) -> TracedTensor:
        """Return a statistic of features, or count traffic."""
        return view(site.live[0], site.shape) if self._is_statistic(site) else self.count(site)

    take_std = take_linalg_vector_norm = take_norm = take_var

    def take_embedding(self, site: OperatorSite) -> TracedTensor:
        return self.embed(site, site.reads[0])

    def take_pad(self, site: OperatorSite) -> TracedTensor:
        """Count a copy with more rows."""
        return self.count(site) if any(site.args[1]) else view(site.live[0], site.shape)

    take_constant_pad_nd = take_pad

    def take_cat(self, site: OperatorSite) -> TracedTensor:
        """Join channels side by side, or add a class token; others are copies."""
        weights, x = site.weights, site.live[0]
        is_token = len(weights) == 1 and weights[0].parameters == site.shape[-1]
        if is_token and len(site.live) == 1 and site.shape[1] == x.shape[1] + 1:
            x = self.fit(x, site, site.shape[2])
            if len(x.sizes) == 2:
                self.graph.take_weights(weights)
                return self.step(site, "class_token", {}, x, (x.sizes[0], x.sizes[1] + 1), -1)
        dim = site.args[1] if len(site.args) > 1 else 0
        same = len({t.sizes[1:] for t in site.live}) == 1 and not weights
        if same and _is_whole(site) and dim % len(site.shape) == x.channel % len(site.shape):
            return self.graph.join("concat", site.name, site.live, site.shape)
        return self.count(site, weights=self.graph.take_weights(weights))

    def take_add(self, site: OperatorSite) -> TracedTensor:
        """Combine two tensors item by item, or one with parameters."""
        word = COMBINED[site.kind]
        if len(site.live) < 2:
            return self._combine_weights(site, word)
        one, other = site.live[:2]
        if one.step == other.step and 1 in (one.shape[-1], other.shape[-1]):
            # x over a statistic of x: a normalisation that is written out.
            x = max(one, other, key=lambda tensor: tensor.items)
            self.normalised.add(str(x.step))
            return view(x, site.shape)
        gates = len(one.sizes) == len(other.sizes) and all(
            a == b or 1 in (a, b) for a, b in zip(one.sizes, other.sizes, strict=True)
        )
        if _is_whole(site) and (one.sizes == other.sizes or (gates and word == "multiply")):
            return self.graph.join(word, site.name, [one, other], site.shape)
        return self.count(site)

    take_sub = take_mul = take_div = take_add

    def _combine_weights(self, site: OperatorSite, word: str) -> TracedTensor:
        """Add positions or a scale to a tensor; other parameters are counted."""
        x, weights = site.live[0], self.graph.take_weights(site.weights)
        if not weights or self._adds_bias(x, word, weights):
            return view(x, site.shape)
        if len(x.sizes) == 2 and word == "residual" and weights % x.sizes[0] == 0:
            length = weights // x.sizes[0]  # of a table, of which a sample may use a part
            settings = {} if length == x.sizes[1] else {"length": length}
            if length >= x.sizes[1]:
                return self.step(site, "positions", settings, x, x.sizes, x.channel)
        if word == "multiply" and weights == x.sizes[0] and x.step in self.normalised:
            return self.word(site, "rmsnorm")
        return self.count(site, weights=weights)

    def _adds_bias(self, x: TracedTensor, word: str, weights: int) -> bool:
        """Return whether it was a bias that the step before has from here on."""
        is_last = bool(self.graph.steps) and x.step == self.graph.last
        if word != "residual" or not is_last or weights != x.sizes[0]:
            return False
        [(last, settings)] = self.graph.steps[-1].items()
        if last == "rmsnorm":
            self.graph.steps[-1] = {"layernorm": settings}
        return last == "rmsnorm" or settings.pop("bias", True) is False

    def take_scaled_dot_product_attention(self, site: OperatorSite) -> TracedTensor:
        """Add softmax of queries times keys, times values, as a product of both."""
        queries, keys, values = parts = site.reads[:3]
        flops = 4 * queries.items * keys.shape[-2]
        # [batch, heads, positions, features]; otherwise heads are folded into the batch.
        heads = queries.shape[1] if queries.shape[0] == BATCH else 0
        if len(queries.shape) != 4 or any(len(tensor.sizes) != 2 for tensor in parts):
            return self.product(site, flops)
        if len({tensor.step for tensor in parts}) == 1 and heads:
            parts = self.graph.split(queries, 3)
        width, length = parts[0].sizes
        alike = {tensor.sizes[0] for tensor in parts} == {width}
        if not alike or width != site.items // length or not heads:
            return self.product(site, flops)
        queries, keys, values = parts
        settings = {"by": keys.step, "transpose": True, "heads": heads}
        sizes = (heads * keys.sizes[1], queries.sizes[1])
        # The source has no tensor of scores, and so no shape of one.
        x = self.graph.add("matmul", settings, f"{site.name}.scores", [queries], (), sizes)
        x = self.graph.add("softmax", {}, f"{site.name}.softmax", [x], (), sizes)
        settings = {"by": values.step, "heads": heads}
        return self.graph.add("matmul", settings, site.name, [x], site.shape, queries.sizes, -1)

    def take_einsum(self, site: OperatorSite) -> TracedTensor:
        """Count a sum of products: a multiply-accumulate for each combination of its letters."""
        letters = str(site.args[0]).replace(" ", "").partition("->")[0].split(",")
        # An ellipsis stands for any number of dimensions.
        if len(letters) != len(site.reads) or "." in site.args[0]:
            self.graph.unknown["einsum"] += site.items
            return self.count(site)
        sizes: dict[str, int] = {}
        for text, tensor in zip(letters, site.reads, strict=True):
            sizes |= zip(text, tensor.shape, strict=True)
        return self.product(site, 2.0 * math.prod(sizes.values()) / BATCH)

    def take_lstm(self, site: OperatorSite) -> Any:
        """Add a recurrent layer; return states of all positions, and the last ones."""
        weights = [tensor for tensor in site.weights if tensor.weights]
        biases, layers, _, _, both = site.args[3:8]
        # Four gates share a matrix.
        hidden = weights[0].shape[0] // 4
        settings = {"hidden": hidden, "layers": layers, "bidirectional": both}
        settings |= {"biases": 2 if biases else 0}
        projected = site.shape[-1] // (1 + both)
        if projected != hidden:
            settings["projection"] = projected
        x = self.fit(site.live[0], site, site.live[0].shape[-1])
        self.graph.take_weights(weights)
        y = self.step(site, "lstm", settings, x, (site.shape[-1], x.sizes[1]), -1)
        return y, y, y

    def take_gru(self, site: OperatorSite) -> Any:
        """Count another recurrent layer: each matrix once for each position."""
        # A model's file has a word for LSTMs alone.
        matrices = [tensor for tensor in site.weights if len(tensor.shape) == 2]
        positions = math.prod(site.live[0].shape[:2]) // BATCH
        flops = 2.0 * positions * sum(math.prod(tensor.shape) for tensor in matrices)
        y = self.product(site, flops)
        return y, y

    take_rnn_tanh = take_rnn_relu = take_gru


def _is_whole(site: OperatorSite) -> bool:
    """Return whether an operator reads all that its tensors' steps give, and no parts."""
    return all(tensor.items == math.prod(tensor.sizes) for tensor in site.live)
