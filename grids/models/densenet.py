"""The DenseNet family: each layer adds channels to all that came before it.

Huang et al., "Densely Connected Convolutional Networks", CVPR 2017, table 1 (DenseNet-BC), with
torchvision's names. Normalisation and ReLU stand before each convolution; a concatenation behind
every layer is the copy that frameworks make.
"""

from typing import Annotated, Literal

from pydantic import Field

from grids.entries.entry import Count, Record
from grids.models.steps import Concat, Fc, Step, Steps, make_plain
from grids.models.windows import AdaptivePool, Conv, Pool

BOTTLENECK = 4  # filters of a layer's 1x1 convolution for each of its 3x3


class DenseNet(Record):
    """DenseNet-121 is {name: densenet, growth: 32, blocks: [6, 12, 24, 16]}."""

    name: Literal["densenet"]
    growth: Annotated[Count, Field(le=2**12)]  # channels that a layer adds
    # Layers of each block. DenseNet-264 has 6 + 12 + 64 + 48.
    blocks: Annotated[
        tuple[Annotated[Count, Field(le=400)], ...], Field(min_length=1, max_length=8)
    ]

    def make_steps(self) -> Steps:
        channels, steps = 2 * self.growth, list(_make_stem(2 * self.growth))
        for number, layers in enumerate(self.blocks, start=1):
            name = f"denseblock{number}"
            steps += [self._make_layer(f"{name}.denselayer{n}") for n in range(1, layers + 1)]
            channels += layers * self.growth
            if number < len(self.blocks):
                channels //= 2
                steps += _make_transition(f"transition{number}", channels)
        return (
            *steps,
            *_activate("", "5"),
            Step(adaptive_avgpool=AdaptivePool(name="avgpool", extent=(1,))),
            Step(fc=Fc(name="classifier", outputs="targets")),
        )

    def _make_layer(self, name: str) -> Step:
        """What came in, and `growth` channels more."""
        body = (
            *_activate("", "1"),
            _convolve("conv1", BOTTLENECK * self.growth, kernel=1),
            *_activate("", "2"),
            _convolve("conv2", self.growth, kernel=3),
        )
        return Step(concat=Concat(name=name, branches=((), body)))


def _make_stem(filters: int) -> Steps:
    return (
        _convolve("conv0", filters, kernel=7, stride=2),
        *_activate("", "0"),
        Step(maxpool=Pool(name="pool0", kernel=(3,), stride=(2,), padding=(1,))),
    )


def _make_transition(name: str, filters: int) -> Steps:
    """Half the channels, half the extents."""
    return (
        *_activate(f"{name}.", ""),
        _convolve(f"{name}.conv", filters, kernel=1),
        Step(avgpool=Pool(name=f"{name}.pool", kernel=(2,))),
    )


def _activate(scope: str, number: str) -> Steps:
    return (
        make_plain("batchnorm", f"{scope}norm{number}"),
        make_plain("relu", f"{scope}relu{number}"),
    )


def _convolve(name: str, filters: int, *, kernel: int, stride: int = 1) -> Step:
    conv = Conv(
        name=name,
        filters=filters,
        kernel=(kernel,),
        stride=(stride,),
        padding=(kernel // 2,),
        bias=False,
    )
    return Step(conv=conv)
