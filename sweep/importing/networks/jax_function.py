"""A JAX function as a model's file, from its jaxpr: nothing is computed.

XLA fuses element-wise operations, so only operations that a model's file has a word for become
steps: matrix products, convolutions, windows, activations (by the names of `jax.nn`), sums of two
tensors, normalisations (a scale of channels and a shift). All others cost nothing, like views.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import jax
from jax.extend.core import Literal

from sweep.importing.networks.graph import (
    BATCH,
    ImportedNetwork,
    TracedGraph,
    TracedTensor,
    expect_sizes,
    finish,
)
from sweep.importing.networks.jax_operators import JaxOperators
from sweep.importing.networks.operator_steps import OperatorSite, view

# Functions of jax.nn, by the names of their jaxprs.
WORDS = {
    **{word: word for word in ("relu", "relu6", "silu", "gelu", "elu", "leaky_relu", "mish")},
    **{"hard_sigmoid": "hardsigmoid", "hard_silu": "hardswish", "hard_swish": "hardswish"},
    **{"swish": "silu", "softmax": "softmax", "_softmax": "softmax", "sigmoid": "sigmoid"},
    **{"tanh": "tanh", "logistic": "sigmoid", "erf": "gelu", "hard_tanh": "hardtanh"},
    "exp": "softmax",  # written out: its backward pass reads the output, too
}
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
    sizes = (1, *sample) if tokens else tuple(sample)
    if not tokens and channels_last:
        sizes = (sample[-1], *sample[:-1])
    tracer = _JaxprTracer(TracedGraph(expect_sizes(sizes, "shapes")))
    parameters = [
        TracedTensor(tuple(var.aval.shape), weights=((f"{n}", math.prod(var.aval.shape)),))
        for n, var in enumerate((*closed.jaxpr.constvars, *closed.jaxpr.invars[:-1]))
    ]
    entered = replace(
        tracer.graph.enter((BATCH, *sample)), channel=len(sample) if channels_last else 1
    )
    tracer.walk(closed.jaxpr, parameters, [entered])
    used = sum(tracer.graph.counted.values())
    left = sum(size for tensor in parameters for _, size in tensor.weights) - used
    notes = (f"{left:,} parameters, or constants, have no step: not imported",) if left else ()
    label = name or getattr(function, "__name__", "network").strip("<>")
    title = f"{label}, imported from JAX"
    return finish(tracer.graph, label, title, "jaxpr", used, allow_unknown, notes)


def _find_layout(jaxpr: Any, rank: int) -> bool:
    """Return whether channels are last, as the first convolution has them; else they are."""
    for equation in jaxpr.eqns:
        if equation.primitive.name == "conv_general_dilated":
            return bool(equation.params["dimension_numbers"].lhs_spec[1] == rank)
        for inner in _list_inner(equation):
            if _has_convolution(inner):
                return _find_layout(inner, rank)
    return True


def _has_convolution(jaxpr: Any) -> bool:
    return any(
        equation.primitive.name == "conv_general_dilated"
        or any(map(_has_convolution, _list_inner(equation)))
        for equation in jaxpr.eqns
    )


def _list_inner(equation: Any) -> list[Any]:
    """Return the jaxprs that an equation calls."""
    inner = [equation.params[key] for key in INNER if key in equation.params]
    return [getattr(jaxpr, "jaxpr", jaxpr) for jaxpr in inner]


class _JaxprTracer(JaxOperators):
    """Walks a jaxpr, equation by equation."""

    def walk(self, jaxpr: Any, constants: Sequence[Any], arguments: Sequence[Any]) -> list[Any]:
        """Return the outputs of a jaxpr for its constants and arguments."""
        known: dict[Any, Any] = dict(
            zip((*jaxpr.constvars, *jaxpr.invars), (*constants, *arguments), strict=True)
        )
        for equation in jaxpr.eqns:
            reads = [None if isinstance(v, Literal) else known.get(v) for v in equation.invars]
            outputs = self.take(equation, reads)
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
        params, (body,) = equation.params, _list_inner(equation)
        constants, carried = params["num_consts"], params["num_carry"]
        fixed, state = reads[:constants], reads[constants : constants + carried]
        outputs: list[Any] = []
        for turn in range(params["length"]):
            parts = [
                _slice(tensor, turn, params["length"]) for tensor in reads[constants + carried :]
            ]
            outputs = self.walk(body, [], [*fixed, *state, *parts])
            state = outputs[:carried]
        return outputs


def _slice(tensor: Any, turn: int, length: int) -> Any:
    """Return one of `length` parts of a scanned tensor."""
    if tensor is None:
        return None
    parts = tuple((f"{name}[{turn}]", size // length) for name, size in tensor.weights)
    return replace(tensor, shape=tensor.shape[1:], weights=parts)
