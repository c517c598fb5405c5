"""Shape inference: an architecture and a sample shape give the layer table.

A tensor is a sample's C channels by its extents ([d,] h, w). A window of K items with stride S
and P items of padding in all turns an extent X into floor((X + P - K) / S) + 1.
"""

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from grids.models.layers import DIMENSIONS, Layer, LayerTable
from grids.models.steps import (
    AdaptivePool,
    Concat,
    Conv,
    Fc,
    Plain,
    Pool,
    Residual,
    Side,
    Step,
    Steps,
)
from grids.models.tensors import Tensor, sizes, slide
from grids.reading.errors import InputError, ShapeError, shorten

PLAIN_KINDS = {"batchnorm": "norm", "relu": "relu", "dropout": "dropout"}


def layer_table(model: str, steps: Steps, shape: tuple[int, ...], targets: int) -> LayerTable:
    """The layers of the steps of `model` for samples of `shape` (C, [d,] h, w)."""
    walk = _Walk(targets)
    try:
        walk.sequence("", steps, Tensor(shape[0], shape[1:]))
        _refuse_twins(walk.layers)
        return LayerTable.from_layers(walk.layers)
    except InputError as error:
        raise InputError(str(error), where=model) from None


def _refuse_twins(layers: list[Layer]) -> None:
    twins = [name for name, count in Counter(layer.name for layer in layers).items() if count > 1]
    if twins:
        raise InputError(
            f"two layers are called {shorten(twins[0])}", advice="give each its own name"
        )


def _named(scope: str, steps: Steps) -> Iterator[tuple[str, Step]]:
    """Each step with its full name: its own, or its word and a number within the sequence."""
    numbers = Counter[str]()
    for step in steps:
        numbers[step.word] += 1
        yield scope + (step.settings.name or f"{step.word}{numbers[step.word]}"), step


@dataclass
class _Walk:
    """Collects layers in the order in which a sample meets them."""

    targets: int
    layers: list[Layer] = field(default_factory=list)

    def sequence(self, scope: str, steps: Steps, tensor: Tensor) -> Tensor:
        for name, step in _named(scope, steps):
            tensor = self._step(name, step, tensor)
        return tensor

    def _step(self, name: str, step: Step, x: Tensor) -> Tensor:
        match step.settings:
            case Conv() as conv:
                return self._conv(name, conv, x)
            case Fc() as fc:
                return self._fc(name, fc, x)
            case Pool() as pool:
                return self._pool(name, pool, x)
            case AdaptivePool() as pool:
                return self._adaptive_pool(name, pool, x)
            case Residual() as residual:
                return self._residual(name, residual, x)
            case Concat() as concat:
                return self._concat(name, concat, x)
            case Side() as side:
                self.sequence(f"{name}.", side.layers, x)
                return x
            case Plain() if step.word == "flatten":
                return x.flat()  # a view: no layer, nothing to compute or to keep
        return self._plain(name, PLAIN_KINDS[step.word], x)

    def _conv(self, name: str, conv: Conv, x: Tensor) -> Tensor:
        kernel = sizes(name, "kernel", conv.kernel, x)
        y = Tensor(conv.filters, slide(name, conv, conv.stride, x))
        w = x.channels * conv.filters * math.prod(kernel)
        flops = 2 * w * math.prod(y.extents)
        bias = conv.filters if conv.bias else 0
        self._add(name, "conv", x, y, w=w, bias=bias, flops=flops, kernel=kernel)
        return y

    def _fc(self, name: str, fc: Fc, x: Tensor) -> Tensor:
        outputs = self.targets if fc.outputs == "targets" else fc.outputs
        inputs, y = x.flat(), Tensor(outputs, x.flat().extents)
        w = inputs.channels * outputs
        self._add(name, "fc", inputs, y, w=w, bias=outputs if fc.bias else 0, flops=2 * w)
        return y

    def _pool(self, name: str, pool: Pool, x: Tensor) -> Tensor:
        kernel = sizes(name, "kernel", pool.kernel, x)
        y = Tensor(x.channels, slide(name, pool, pool.stride or pool.kernel, x, pool.ceil))
        self._add(name, "pool", x, y, flops=y.items * math.prod(kernel), kernel=kernel)
        return y

    def _adaptive_pool(self, name: str, pool: AdaptivePool, x: Tensor) -> Tensor:
        y = Tensor(x.channels, sizes(name, "extent", pool.extent, x))
        kernel = tuple(math.ceil(a / b) for a, b in zip(x.extents, y.extents, strict=True))
        self._add(name, "pool", x, y, flops=y.items * math.prod(kernel), kernel=kernel)
        return y

    def _plain(self, name: str, kind: str, x: Tensor) -> Tensor:
        # A batch normalisation has a scale and a shift a channel.
        weights = x.channels if kind == "norm" else 0
        self._add(name, kind, x, x, w=weights, bias=weights, flops=x.items)
        return x

    def _residual(self, name: str, residual: Residual, x: Tensor) -> Tensor:
        y = self.sequence(f"{name}.", residual.body, x)
        shortcut = self.sequence(f"{name}.shortcut.", residual.shortcut, x)
        if y != shortcut:
            raise ShapeError(f"{name}.add: the body gives {y}, the shortcut {shortcut}")
        self._add(f"{name}.add", "add", y, y, flops=y.items, inputs=2)
        return y

    def _concat(self, name: str, concat: Concat, x: Tensor) -> Tensor:
        ends = [
            self.sequence(f"{name}.branch{number}.", branch, x)
            for number, branch in enumerate(concat.branches, start=1)
        ]
        if len({end.extents for end in ends}) > 1:
            extents = ", ".join(str(end) for end in ends)
            raise ShapeError(f"{name}.concat: the branches give extents that differ: {extents}")
        y = Tensor(sum(end.channels for end in ends), ends[0].extents)
        self._add(f"{name}.concat", "concat", y, y, flops=y.items)
        return y

    def _add(
        self,
        name: str,
        kind: str,
        x: Tensor,
        y: Tensor,
        *,
        flops: int,
        w: int = 0,
        bias: int = 0,
        kernel: tuple[int, ...] = (),
        inputs: int = 1,
    ) -> None:
        layer = Layer(
            name=name,
            kind=kind,
            x=inputs * x.items,
            y=y.items,
            w=w,
            bias=bias,
            flops=flops,
            channels=x.channels,
            filters=y.channels,
            extents_x=_three(x.extents),
            extents_y=_three(y.extents),
            kernel=_three(kernel),
        )
        self.layers.append(layer)


def _three(sizes: tuple[int, ...]) -> tuple[float, float, float]:
    d, h, w = (1,) * (DIMENSIONS - len(sizes)) + sizes
    return d, h, w
