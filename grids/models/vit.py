"""The vision transformer family.

Dosovitskiy et al., "An image is worth 16x16 words", ICLR 2021, table 1, as in torchvision: an
image's patches as a sequence, a class token and learned positions, then blocks of attention and of
two linear layers, each behind a normalisation and beside a shortcut.
"""

from typing import Annotated, Literal

from pydantic import Field

from grids.entries.entry import Count, Record
from grids.models.attention import Attention
from grids.models.sequences import ClassToken, FirstToken, Linear, Positions, ToSequence
from grids.models.steps import Fc, Residual, Step, Steps, make_plain
from grids.models.windows import Conv


class VisionTransformer(Record):
    """ViT-B/16 is {name: vit, patch: 16, blocks: 12, heads: 12, features: 768, hidden: 3072}."""

    name: Literal["vit"]
    patch: Count  # extent of a patch
    blocks: Annotated[Count, Field(le=400)]
    heads: Count
    features: Count
    hidden: Count  # features between the two linear layers of a block

    def make_steps(self) -> Steps:
        patches = Conv(
            name="conv_proj", filters=self.features, kernel=(self.patch,), stride=(self.patch,)
        )
        return (
            Step(conv=patches),
            Step(to_sequence=ToSequence()),
            Step(class_token=ClassToken(name="class_token")),
            Step(positions=Positions(name="pos_embedding")),
            *(step for number in range(self.blocks) for step in self._make_block(number)),
            make_plain("layernorm", "ln"),
            Step(first_token=FirstToken()),
            Step(fc=Fc(name="head", outputs="targets")),
        )

    def _make_block(self, number: int) -> Steps:
        name = f"encoder_layer_{number}"
        attention = (
            make_plain("layernorm", "ln_1"),
            Step(attention=Attention(name="self_attention", heads=self.heads)),
        )
        mlp = (
            make_plain("layernorm", "ln_2"),
            Step(linear=Linear(name="linear_1", features=self.hidden)),
            make_plain("gelu", "gelu"),
            Step(linear=Linear(name="linear_2", features=self.features)),
        )
        return (
            Step(residual=Residual(name=f"{name}.attention", body=attention)),
            Step(residual=Residual(name=f"{name}.mlp", body=mlp)),
        )
