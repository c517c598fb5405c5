"""The ResNet family with bottleneck blocks, version 1.5.

He et al., "Deep Residual Learning for Image Recognition", CVPR 2016, table 1; version 1.5, which
everybody trains, has a stage's stride on the 3x3 convolution instead of the first 1x1. Convolutions
have no bias: the batch normalisation behind each has one. Layers are named as in torchvision.

With groups a ResNeXt (Xie et al., CVPR 2017): 32x4d has 3x3 convolutions of 32 groups, 4 filters
each where a ResNet's has 64.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from grids.entries.entry import Count, Record
from grids.models.steps import Fc, Residual, Step, Steps, make_plain
from grids.models.windows import AdaptivePool, Conv, Pool

# A bound for each stage; what is too much in all, the layer table refuses.
Blocks = Annotated[Count, Field(le=400)]

EXPANSION = 4  # a block gives four times the filters of its 3x3 convolution


class ResNet(Record):
    """ResNet-50 is {name: resnet, stages: [3, 4, 6, 3]}."""

    name: Literal["resnet"]
    # Blocks in each stage. The largest that was published has 8 + 64 + 256 + 8.
    stages: Annotated[tuple[Blocks, ...], Field(min_length=1, max_length=8)]
    width: Annotated[Count, Field(le=2**20)] = (
        64  # filters of the stem, and of the 3x3 convolutions of the first stage
    )
    groups: Annotated[Count, Field(le=2**10)] = 1  # of the 3x3 convolutions
    group_width: Annotated[Count, Field(le=2**10)] = 64  # filters of a group for 64 of the width

    def make_steps(self) -> Steps:
        stages = (
            self._make_stage(index, blocks, self.width * 2**index)
            for index, blocks in enumerate(self.stages)
        )
        return (
            *_convolve("1", self.width, kernel=7, stride=2),
            make_plain("relu", "relu"),
            # 224 is 112 behind the stem, 56 behind this, and 7 behind the fourth stage.
            Step(maxpool=Pool(name="maxpool", kernel=(3,), stride=(2,), padding=(1,))),
            *(step for stage in stages for step in stage),
            Step(adaptive_avgpool=AdaptivePool(name="avgpool", extent=(1,))),
            Step(fc=Fc(name="fc", outputs="targets")),
        )

    def _make_stage(self, index: int, blocks: int, width: int) -> Steps:
        """Blocks of one width, of which the first halves the extents.

        Not those of the first stage: there the pooling has done it.
        """
        inner = width * self.group_width // 64 * self.groups
        strides = (1 if index == 0 else 2, *(1 for _ in range(blocks - 1)))
        return tuple(
            step
            for block, stride in enumerate(strides)
            for step in _make_block(
                f"layer{index + 1}.{block}",
                _Widths(inner, self.groups, width * EXPANSION),
                stride,
                projects=block == 0,
            )
        )


@dataclass(frozen=True)
class _Widths:
    """Filters of a block's 3x3 convolution, its groups, and what the block gives."""

    inner: int
    groups: int
    outputs: int


def _make_block(name: str, widths: _Widths, stride: int, *, projects: bool) -> Steps:
    inner, outputs = widths.inner, widths.outputs
    body = (
        *_convolve("1", inner, kernel=1),
        make_plain("relu", "relu1"),
        *_convolve(
            "2", inner, kernel=3, stride=stride, groups=widths.groups
        ),  # version 1.5: not the 1x1 before it
        make_plain("relu", "relu2"),
        *_convolve("3", outputs, kernel=1),
    )
    # Only where sizes change, once a stage: ResNet-50 has four projections beside 49 convolutions.
    shortcut = _convolve("", outputs, kernel=1, stride=stride) if projects else ()
    return (
        Step(residual=Residual(name=name, body=body, shortcut=shortcut)),
        make_plain("relu", f"{name}.relu3"),
    )


def _convolve(number: str, filters: int, *, kernel: int, stride: int = 1, groups: int = 1) -> Steps:
    conv = Conv(
        name=f"conv{number}",
        filters=filters,
        kernel=(kernel,),
        stride=(stride,),
        padding=(kernel // 2,),  # keeps the extents, but for the stride
        groups=groups,
        bias=False,
    )
    return Step(conv=conv), make_plain("batchnorm", f"bn{number}")
