"""A JAX function as a model's file, from its jaxpr: nothing is computed.

XLA fuses element-wise operations, so only operations that a model's file has a word for become
steps: matrix products, convolutions, windows, activations (by the names of `jax.nn`), sums of two
tensors, normalisations (a scale of channels and a shift). All others cost nothing, like views.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import jax
from jax.extend.core import Literal

from paradl.grids.reading.errors import InputError, format_count
from paradl.sweep.importing.networks.graph import (
    BATCH,
    ImportedNetwork,
    Sizes,
    TracedGraph,
    TracedTensor,
    expect_sizes,
    finish,
)
from paradl.sweep.importing.networks.operator_steps import (
    OperatorSite,
    OperatorSteps,
    short,
    unusual,
    view,
)

# x times a function of x: one activation, which frameworks write out.
GATED = {"tanh": "gelu", "gelu": "gelu", "sigmoid": "silu"}

# Functions of jax.nn, by the names of their jaxprs.
WORDS = {
    **{word: word for word in ("relu", "relu6", "silu", "gelu", "elu", "leaky_relu", "mish")},
    **{"hard_sigmoid": "hardsigmoid", "hard_silu": "hardswish", "hard_swish": "hardswish"},
    **{"swish": "silu", "softmax": "softmax", "_softmax": "softmax", "sigmoid": "sigmoid"},
    **{"tanh": "tanh", "logistic": "sigmoid", "erf": "gelu", "hard_tanh": "hardtanh"},
    "exp": "softmax",  # written out: its backward pass reads the output, too
}
# Parameters in which primitives keep the jaxpr that they call.
INNER = ("jaxpr", "call_jaxpr", "fun_jaxpr")
COMBINED = {"add": "residual", "add_any": "residual", "sub": "residual", "mul": "multiply"}
COMBINED |= {"div": "multiply", "max": "residual", "min": "residual"}
REFUSED = {"while", "cond", "custom_call", "pure_callback", "sort", "fft", "scatter", "ffi_call"}


def trace_model(
    function: Callable[..., Any], *shapes: Any, name: str = "", allow_unknown: bool = False
) -> ImportedNetwork:
    """Return the network of `function(*weights, samples)`; weights may also be closed over.

    shapes: of each argument, as arrays, `jax.ShapeDtypeStruct`s or trees of them; the last is the
    shape of one sample, such as (224, 224, 3), or (length,) of tokens. `text` of the answer is a
    model's file. InputError: operators that are not known.

    >>> import jax, paradl
    >>> weights = jax.ShapeDtypeStruct((784, 10), "float32")
    >>> network = paradl.trace_model(lambda w, x: x.reshape(-1, 784) @ w, weights, (28, 28, 1))
    >>> network.table.kinds, int(network.table.w.sum())
    (('fc',), 7840)
    """
    *weights, sample = shapes
    tokens = len(sample) == 1
    kind = "int32" if tokens else "float32"
    batch = jax.ShapeDtypeStruct((BATCH, *sample), kind)
    # Shapes and types alone: weights of gigabytes are neither made nor read.
    structs = [
        jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype), w) for w in weights
    ]
    closed = jax.make_jaxpr(function)(*structs, batch)
    channels_last = _find_layout(closed.jaxpr, len(sample))
    # A token is one number at its position.
    sizes = (1, *sample) if tokens else tuple(sample)
    if not tokens and channels_last:
        sizes = (sample[-1], *sample[:-1])
    tracer = _JaxprTracer(TracedGraph(expect_sizes(sizes, "shapes")))
    parameters = [
        TracedTensor(tuple(var.aval.shape), weights=((f"{n}", math.prod(var.aval.shape)),))
        for n, var in enumerate((*closed.jaxpr.constvars, *closed.jaxpr.invars[:-1]))
    ]
    channel = len(sample) if channels_last else 1
    entered = replace(tracer.graph.enter((BATCH, *sample)), channel=channel)
    tracer.walk(closed.jaxpr, parameters, [entered])
    used = sum(tracer.graph.counted.values())
    left = sum(size for tensor in parameters for _, size in tensor.weights) - used
    lost = f"not imported, for lack of a step: {format_count(left, 'parameter')}, or constants"
    # A lambda is called <lambda>, and a partial function has no name.
    label = name or getattr(function, "__name__", "network").strip("<>")
    title = f"{label}, imported from JAX"
    return finish(tracer.graph, label, title, "jaxpr", used, allow_unknown, (lost,) if left else ())


def _find_layout(jaxpr: Any, rank: int) -> bool:
    """Return whether channels are last, by the first convolution; True if there is none."""
    first = next(_list_convolutions(jaxpr), None)
    return first is None or bool(first.params["dimension_numbers"].lhs_spec[1] == rank)


def _list_convolutions(jaxpr: Any) -> Iterator[Any]:
    """Yield the convolutions of a jaxpr, and of those that it calls, in their order."""
    for equation in jaxpr.eqns:
        if equation.primitive.name == "conv_general_dilated":
            yield equation
        for inner in _list_inner(equation):
            yield from _list_convolutions(inner)


def _list_inner(equation: Any) -> list[Any]:
    """Return the jaxprs that an equation calls."""
    inner = [equation.params[key] for key in INNER if key in equation.params]
    return [getattr(jaxpr, "jaxpr", jaxpr) for jaxpr in inner]


def _has_more(outer: Any, inner: Any) -> bool:
    """True if a variable has more dimensions than that of the body which it belongs to."""
    return bool(outer.aval.ndim > inner.aval.ndim)


class _JaxprTracer(OperatorSteps):
    """Walks a jaxpr, equation by equation; a method `take_NAME` for each primitive with a step.

    scores: steps that give scores of pairs of positions.
    """

    def __init__(self, graph: TracedGraph) -> None:
        super().__init__(graph)
        self.scores: set[str] = set()

    def walk(self, jaxpr: Any, constants: Sequence[Any], arguments: Sequence[Any]) -> list[Any]:
        """Return the outputs of a jaxpr for its constants and arguments."""
        known: dict[Any, Any] = dict(
            zip((*jaxpr.constvars, *jaxpr.invars), (*constants, *arguments), strict=True)
        )
        for equation in jaxpr.eqns:
            reads = [None if isinstance(v, Literal) else known.get(v) for v in equation.invars]
            outputs = self.take(equation, reads)
            # An operator of several outputs that is only counted gives one tensor.
            known.update(zip(equation.outvars, outputs, strict=False))
        return [None if isinstance(v, Literal) else known.get(v) for v in jaxpr.outvars]

    def take(self, equation: Any, reads: list[Any]) -> list[Any]:
        """Return the outputs of an equation."""
        kind, params = equation.primitive.name, equation.params
        shapes = [tuple(var.aval.shape) for var in equation.outvars]
        tensors = [tensor for tensor in reads if tensor is not None]
        live = [tensor for tensor in tensors if not tensor.is_weight]
        # Computed from weights alone: the same for all samples, so its step is none of the
        # network's.
        if not live:
            merged = tuple(dict.fromkeys(pair for t in tensors for pair in t.weights))
            return [TracedTensor(shape, weights=merged) for shape in shapes]
        word = WORDS.get(str(params.get("name", kind)))
        site = OperatorSite(kind, word or kind, shapes[0], [params], tensors, live)
        if word and len(live) == 1 and len(tensors) == 1:
            activated = self.word(site, word)
            # Softmax of scores still weighs values, which the next product has to know.
            if live[0].step in self.scores:
                self.scores.add(str(activated.step))
            return [activated]
        if kind == "scan":
            return self.scan(equation, reads)
        inner = _list_inner(equation)
        if inner and kind not in REFUSED:
            return self.walk(inner[0], [], reads)
        operator = getattr(self, f"take_{kind}", None)
        if operator is not None:
            return [operator(site)]
        if kind in COMBINED and len(tensors) > 1:
            return [self.combine(site, COMBINED[kind])]
        # Element by element, XLA fuses it with its neighbours; of several tensors traffic remains.
        if kind in REFUSED or len({tensor.step for tensor in live}) > 1:
            self.graph.unknown[kind] += math.prod(shapes[0]) // BATCH
            return [self.count(site)]
        return [view(live[0], shape) for shape in shapes]

    def scan(self, equation: Any, reads: list[Any]) -> list[Any]:
        """Walk the body as often as it runs, each time with its part of the scanned tensors."""
        length, (body,) = equation.params["length"], _list_inner(equation)
        # What is scanned, or stacked, has a dimension more than in the body. JAX's own names of
        # these numbers changed with 0.12.
        scanned = sum(map(_has_more, equation.invars, body.invars))
        carried = len(equation.outvars) - sum(map(_has_more, equation.outvars, body.outvars))
        first = len(reads) - scanned
        fixed, state = reads[: first - carried], reads[first - carried : first]
        outputs: list[Any] = []
        for turn in range(length):
            parts = [_slice(tensor, turn, length) for tensor in reads[first:]]
            outputs = self.walk(body, [], [*fixed, *state, *parts])
            state = outputs[:carried]
        return outputs

    def name_step(self, site: OperatorSite, word: str) -> str:
        """Return the name of a step: its word, since jaxprs have no names of modules."""
        return {"rmsnorm": "norm", "adaptive_avgpool": "pool"}.get(word, word)

    def weighted(
        self, word: str, settings: dict[str, Any], site: OperatorSite, x: TracedTensor, sizes: Sizes
    ) -> TracedTensor:
        """Add a step with a weight, without a bias until one is added; a shared one is counted."""
        weights = [pair for tensor in site.weights for pair in tensor.weights]
        if any(name in self.graph.counted for name, _ in weights):
            width = math.prod(site.weights[0].shape) // sizes[0]
            return self.count(site, flops=2.0 * site.items * width)
        self.graph.take_weights(site.weights)
        return self.step(site, word, x, sizes, -1, **settings, bias=False)

    def take_conv_general_dilated(self, site: OperatorSite) -> TracedTensor:
        """Add a convolution, or a transposed one, whose input is dilated."""
        params, x, weight = site.args[0], site.live[0], site.reads[-1]
        dims = params["dimension_numbers"]
        kernel = [weight.shape[n] for n in dims.rhs_spec[2:]]
        known = any(name in self.graph.counted for name, _ in weight.weights)
        if len(kernel) == 1 or not weight.weights or known:
            # Along a sequence, or with the weights of another one: only its counts.
            taken = math.prod(kernel) * weight.shape[dims.rhs_spec[1]]
            return self.count(
                site, flops=2.0 * site.items * taken, weights=self.graph.take_weights([weight])
            )
        sizes = tuple(site.shape[n] for n in (dims.out_spec[1], *dims.out_spec[2:]))
        before = [x.shape[n] for n in dims.lhs_spec[2:]]
        image = (x.shape[dims.lhs_spec[1]], *before)
        if x.sizes != image:
            x = self.graph.count("copy", [x], x.shape, image, channel=dims.lhs_spec[1])
        settings: dict[str, Any] = {"filters": sizes[0], "kernel": short(kernel)}
        if any(n != 1 for n in params["lhs_dilation"]):
            stride = params["lhs_dilation"]
            grown = [(n - 1) * s + k for n, s, k in zip(before, stride, kernel, strict=True)]
            cut = [a - b for a, b in zip(grown, sizes[1:], strict=True)]
            settings |= {"stride": short(stride)} | _pad_transposed(cut)
            word = "transposed_conv"
        else:
            spans = [d * (k - 1) + 1 for d, k in zip(params["rhs_dilation"], kernel, strict=True)]
            windows = [*zip(before, sizes[1:], params["window_strides"], spans, strict=True)]
            settings |= unusual(stride=params["window_strides"], dilation=params["rhs_dilation"])
            settings |= _pad(windows, params["padding"])
            word = "conv"
        groups = params["feature_group_count"]
        if groups > 1:
            settings["groups"] = "channels" if groups == x.sizes[0] else groups
        self.graph.take_weights([weight])
        settings["bias"] = False  # until one is added
        return self.step(site, word, x, sizes, dims.out_spec[1], **settings)

    def take_dot_general(self, site: OperatorSite) -> TracedTensor:
        """Add a matrix for rows of a tensor, or the product of two tensors."""
        (contracted, _), (batched, _) = site.args[0]["dimension_numbers"]
        width = math.prod(site.reads[0].shape[n] for n in contracted)
        if len(site.live) > 1:
            return self._multiply_two(site, width, len(batched))
        (weight,) = site.weights
        if batched or not weight.weights:
            # A matrix for each of several parts, such as experts.
            weights = self.graph.take_weights([weight])
            return self.count(site, flops=2.0 * site.items * width, weights=weights)
        return self.multiply(site, site.live[0], weight, width, math.prod(weight.shape) // width)

    def _multiply_two(self, site: OperatorSite, width: int, batched: int) -> TracedTensor:
        """Add scores of queries and keys, or the sum of values that scores weigh, in heads."""
        one, other = site.live[:2]
        flops = 2.0 * site.items * width
        if batched != 2 or len(one.sizes) != 2 or len(other.sizes) != 2:
            return self.count(site, flops=flops)
        # Frameworks write queries times keys, or keys times queries.
        for x, by in ((one, other), (other, one)):
            scored, heads = x.step in self.scores, site.items // (x.sizes[1] * by.sizes[1])
            if not scored and x.sizes[0] == by.sizes[0] == heads * width:
                settings = {"by": by.step, "transpose": True, "heads": heads}
                sizes = (heads * by.sizes[1], x.sizes[1])
                y = self.graph.add("matmul", settings, "scores", [x], site.shape, sizes, -1)
                self.scores.add(str(y.step))
                return y
            if scored and width == by.sizes[1] and x.sizes[0] % width == 0:
                settings = {"by": by.step, "heads": x.sizes[0] // width}
                sizes = (by.sizes[0], x.sizes[1])
                return self.graph.add("matmul", settings, "context", [x], site.shape, sizes, -1)
        return self.count(site, flops=flops)

    def take_reduce_window_max(self, site: OperatorSite) -> TracedTensor:
        return self._pool("maxpool", site)

    def take_reduce_window_sum(self, site: OperatorSite) -> TracedTensor:
        return self._pool("avgpool", site)

    def _pool(self, word: str, site: OperatorSite) -> TracedTensor:
        params, x = site.args[0], site.live[0]
        places = [n for n in range(1, len(x.shape)) if n != x.channel % len(x.shape)]
        kernel, stride = (
            [params[key][n] for n in places] for key in ("window_dimensions", "window_strides")
        )
        extents = [site.shape[n] for n in places]
        windows = [*zip(x.sizes[1:], extents, stride, kernel, strict=True)]
        settings = {"kernel": short(kernel), "stride": short(stride)}
        settings |= _pad(windows, [params["padding"][n] for n in places])
        return self.step(site, word, x, (x.sizes[0], *extents), x.channel, **settings)

    def take_reduce_sum(self, site: OperatorSite) -> TracedTensor:
        """Add the mean of all places of an image; of other dimensions it is a statistic."""
        x, axes = site.live[0], set(site.args[0]["axes"])
        places = {n for n in range(1, len(x.shape)) if n != x.channel % len(x.shape)}
        if len(x.sizes) < 3 or axes != places or x.items != math.prod(x.sizes):
            return view(x, site.shape)
        return self.pool_all(site, x)

    def take_gather(self, site: OperatorSite) -> TracedTensor:
        """Add rows of a table, or return a part of a tensor."""
        table = site.reads[0]
        return self.embed(site, table) if table.is_weight else view(table, site.shape)

    def take_concatenate(self, site: OperatorSite) -> TracedTensor:
        """Join channels side by side, or add a class token; others are copies."""
        dimension, x = site.args[0]["dimension"], site.live[0]
        weights = self.graph.take_weights(site.weights)
        if len(site.live) == 1 and weights and site.shape[dimension] == x.shape[dimension] + 1:
            return self.add_class_token(site, self.fit(x, site, site.shape[-1]))
        same = len({tensor.sizes[1:] for tensor in site.live}) == 1 and not weights
        if same and dimension == x.channel % len(x.shape):
            return self.graph.join("concat", "concat", site.live, site.shape)
        return self.count(site, weights=weights)

    def combine(self, site: OperatorSite, word: str) -> TracedTensor:
        """Combine two tensors item by item, or one with a bias, a scale or a shift."""
        x = max(site.live, key=lambda tensor: math.prod(tensor.shape))
        if len(site.live) > 1:
            steps = {tensor.step for tensor in site.live}
            # A normalisation that is written out: x less its mean, over its deviation.
            if len(steps) == 1:  # a tensor and a statistic of it
                return view(x, site.shape)
            one, other = site.live[:2]
            if word == "multiply" and self._gate(one, other):
                return view(TracedTensor(x.shape, self.graph.last, x.sizes, x.channel), site.shape)
            alike = one.sizes == other.sizes
            if alike or (word == "multiply" and len(one.sizes) == len(other.sizes)):
                return self.graph.join(word, word, [one, other], site.shape)
            return self.count(site)
        weights = self.graph.take_weights(site.weights)
        if not weights or (word == "residual" and self._shift(x, weights)):
            return view(x, site.shape)
        if word == "multiply" and weights == x.sizes[0]:
            return self.step(site, "rmsnorm", x, x.sizes, x.channel)
        if word == "residual" and len(x.sizes) == 2 and weights == math.prod(x.sizes):
            return self.step(site, "positions", x, x.sizes, -1)
        return self.count(site, weights=weights)

    def _gate(self, one: TracedTensor, other: TracedTensor) -> bool:
        """Turn the last step, a function of x, into its product with x, if both are those."""
        last = self.graph.last
        inner = next((t for t in (one, other) if t.step != last), one)
        word = next(iter(self.graph.steps[-1]))
        gated = last in (one.step, other.step) and self.graph.sources.get(last) == inner.step
        if not gated or word not in GATED:
            return False
        self.graph.steps[-1] = {GATED[word]: self.graph.steps[-1][word]}
        return True

    def _shift(self, x: TracedTensor, weights: int) -> bool:
        """Give the last step, or the one that the last sum reads, a bias; a scale its shift."""
        if weights != x.sizes[0] or x.step != self.graph.last:
            return False
        for step in reversed(self.graph.steps[-2:]):
            ((word, settings),) = step.items()
            if word == "rmsnorm":
                norm = "layernorm" if len(x.sizes) == 2 else "batchnorm"
                self.graph.steps[-1] = {norm: settings}
                return True
            if isinstance(settings, dict) and settings.get("bias") is False:
                del settings["bias"]
                return True
            if word != "residual":
                return False
        return False


def _slice(tensor: Any, turn: int, length: int) -> Any:
    """Return one of `length` parts of a scanned tensor."""
    if tensor is None:
        return None
    parts = tuple((f"{name}[{turn}]", size // length) for name, size in tensor.weights)
    return replace(tensor, shape=tensor.shape[1:], weights=parts)


def _pad(windows: Sequence[tuple[int, ...]], padding: Any) -> dict[str, Any]:
    """Return the padding of windows: (rows in, rows out, stride, span) of each dimension."""
    sides = [tuple(pair) for pair in padding]
    if all(low == high for low, high in sides):
        return {} if not any(low for low, _ in sides) else {"padding": short([a for a, _ in sides])}
    if all(after == math.ceil(before / stride) for before, after, stride, _ in windows):
        return {"padding": "same"}
    raise InputError(f"a window is padded on one side: {sides}", advice="use equal padding")


def _pad_transposed(cut: Sequence[int]) -> dict[str, Any]:
    """Return padding and output padding that take rows off a transposed convolution."""
    padding = [math.ceil(rows / 2) if rows > 0 else 0 for rows in cut]
    more = [2 * pad - rows for pad, rows in zip(padding, cut, strict=True)]
    return unusual(padding=padding, output_padding=more)
