"""Networks of inverted residuals: MobileNetV2, and EfficientNet, whose blocks have gates.

Sandler et al., "MobileNetV2: Inverted Residuals and Linear Bottlenecks", CVPR 2018, table 2; Tan
and Le, "EfficientNet: Rethinking Model Scaling for Convolutional Neural Networks", ICML 2019,
table 1; with torchvision's details. A block widens its channels, filters each by itself, and
narrows them again without an activation; where sizes are those that came in, it adds its input.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from grids.entries.entry import Count, Record
from grids.models.steps import Fc, Multiply, Residual, Step, Steps, make_plain
from grids.models.windows import AdaptivePool, Conv

Width = Annotated[Count, Field(le=2**16)]
Activation = Literal["relu", "relu6", "silu", "hardswish"]


class Stage(Record):
    """Blocks of one width, the first of which has the stride."""

    filters: Width
    blocks: Annotated[Count, Field(le=400)] = 1
    stride: Annotated[Count, Field(le=8)] = 1
    kernel: Annotated[Count, Field(le=63)] = 3
    expansion: Annotated[Count, Field(le=64)] = 6  # times as many channels inside a block


class InvertedResiduals(Record):
    """{name: inverted_residuals, stem: 32, head: 1280, stages: [{filters: 16, expansion: 1}]}."""

    name: Literal["inverted_residuals"]
    stages: Annotated[tuple[Stage, ...], Field(min_length=1, max_length=16)]
    stem: Width
    head: Width
    activation: Activation = "relu6"
    # A gate has so many channels less than come into its block; no gates where nothing is said.
    squeeze: Annotated[Count, Field(le=64)] | None = None

    def make_steps(self) -> Steps:
        steps = list(self._convolve("stem", self.stem, kernel=3, stride=2))
        channels = self.stem
        for number, stage in enumerate(self.stages, start=1):
            for block in range(stage.blocks):
                stride = stage.stride if block == 0 else 1
                sizes = _Block(f"stage{number}.{block}", channels, stride)
                steps += self._make_block(sizes, stage)
                channels = stage.filters
        return (
            *steps,
            *self._convolve("head", self.head, kernel=1),
            Step(adaptive_avgpool=AdaptivePool(name="avgpool", extent=(1,))),
            make_plain("dropout", "dropout"),
            Step(fc=Fc(name="classifier", outputs="targets")),
        )

    def _make_block(self, block: "_Block", stage: Stage) -> Steps:
        """Wider, each channel by itself, narrower."""
        width = block.channels * stage.expansion
        # Where nothing is widened, there is nothing to convolve.
        widen = self._convolve("expand", width, kernel=1) if stage.expansion > 1 else ()
        filtering = self._convolve(
            "depthwise", width, kernel=stage.kernel, stride=block.stride, depthwise=True
        )
        gate = () if self.squeeze is None else (self._make_gate(block, width),)
        narrow = (_make_conv("project", stage.filters, 1), make_plain("batchnorm", "project_bn"))
        body = (*widen, *filtering, *gate, *narrow)
        if block.stride == 1 and block.channels == stage.filters:
            return (Step(residual=Residual(name=block.name, body=body)),)
        return tuple(_rename(block.name, step) for step in body)

    def _make_gate(self, block: "_Block", width: int) -> Step:
        """Squeeze and excitation (Hu et al., CVPR 2018): a weight a channel, from means of all."""
        assert self.squeeze is not None
        gate = (
            Step(adaptive_avgpool=AdaptivePool(name="avgpool", extent=(1,))),
            Step(
                conv=Conv(name="fc1", filters=max(1, block.channels // self.squeeze), kernel=(1,))
            ),
            make_plain(self.activation, "activation"),
            Step(conv=Conv(name="fc2", filters=width, kernel=(1,))),
            make_plain("sigmoid", "sigmoid"),
        )
        return Step(multiply=Multiply(name="gate", gate=gate))

    def _convolve(
        self, name: str, filters: int, *, kernel: int, stride: int = 1, depthwise: bool = False
    ) -> Steps:
        return (
            _make_conv(name, filters, kernel, stride, depthwise=depthwise),
            make_plain("batchnorm", f"{name}_bn"),
            make_plain(self.activation, f"{name}_act"),
        )


@dataclass(frozen=True)
class _Block:
    """A block's name, the channels that come in, and its stride."""

    name: str
    channels: int
    stride: int


def _make_conv(
    name: str, filters: int, kernel: int, stride: int = 1, *, depthwise: bool = False
) -> Step:
    conv = Conv(
        name=name,
        filters=filters,
        kernel=(kernel,),
        stride=(stride,),
        padding=(kernel // 2,),  # keeps the extents, but for the stride
        groups="channels" if depthwise else 1,
        bias=False,
    )
    return Step(conv=conv)


def _rename(scope: str, step: Step) -> Step:
    """A block's step as it is called where no residual stands around it."""
    settings = step.settings.model_copy(update={"name": f"{scope}.{step.settings.name}"})
    return Step.model_validate({step.word: settings})
