"""The U-Net family: a way down and up again, with what was there at each level beside it.

Ronneberger et al., MICCAI 2015; in three dimensions Cicek et al., MICCAI 2016; as MLPerf Training
has it (unet3d, from nnU-Net, Isensee et al. 2021): strided convolutions in the place of poolings,
instance normalisation, transposed convolutions of 2 with stride 2, as many filters as inputs at
each level of the way up. A convolution with a normalisation behind it has no bias.
"""

from typing import Annotated, Literal

from pydantic import Field

from grids.entries.entry import Count, Record
from grids.models.steps import Concat, Step, Steps, make_plain
from grids.models.windows import Conv, TransposedConv


class UNet(Record):
    """MLPerf's 3-D U-Net is {name: unet, filters: [32, 64, 128, 256, 320, 320]}."""

    name: Literal["unet"]
    # Of each level, from the largest extents to the smallest.
    filters: Annotated[
        tuple[Annotated[Count, Field(le=2**16)], ...], Field(min_length=2, max_length=8)
    ]

    def make_steps(self) -> Steps:
        return (
            *self._make_level(0),
            Step(conv=Conv(name="output", filters="targets", kernel=(1,))),
        )

    def _make_level(self, level: int) -> Steps:
        """Down to this level, all below it, and two convolutions of both."""
        filters = self.filters[level]
        down = (
            *_convolve("down1", filters, stride=1 if level == 0 else 2),
            *_convolve("down2", filters),
        )
        if level == len(self.filters) - 1:
            return down
        raised = TransposedConv(name="up", filters=filters, kernel=(2,), stride=(2,))
        below = (*self._make_level(level + 1), Step(transposed_conv=raised))
        return (
            *down,
            Step(concat=Concat(name=f"level{level + 1}", branches=((), below))),
            *_convolve("up1", filters),
            *_convolve("up2", filters),
        )


def _convolve(name: str, filters: int, stride: int = 1) -> Steps:
    conv = Conv(name=name, filters=filters, kernel=(3,), stride=(stride,), padding=(1,), bias=False)
    return (
        Step(conv=conv),
        make_plain("instancenorm", f"{name}_norm"),
        make_plain("relu", f"{name}_relu"),
    )
