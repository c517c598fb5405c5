"""Precisions of training: which peak computes, and how many bytes everything has.

One table, as docs/machine.md states it: a precision sets the peak and the bytes together.
Micikevicius et al., "Mixed precision training", ICLR 2018: fp16 on the wire and while computing,
with masters in fp32. Rajbhandari et al., "ZeRO", SC20, section 3.1: the bytes of their states.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

from grids.entries.entry import expect_one_of
from kernels.names.recipes import Recipe

PrecisionName = Literal["fp32", "tf32", "amp", "bf16"]
Optimizer = Literal["none", "sgd", "adam"]

# Bytes that an optimizer keeps of a weight: nothing; the momentum; two moments. 4 each, always.
OPTIMIZER_BYTES: dict[Optimizer, int] = {"none": 0, "sgd": 4, "adam": 8}


@dataclass(frozen=True)
class Precision:
    """Bytes of one precision.

    item [B]: of an item of a tensor, and of a weight while computing. gradient [B]: of a weight's
    gradient in memory and on the wire. master [B]: of a weight's copy in fp32, where it has one.
    peak: whose dense peak on a data sheet.
    """

    item: int
    gradient: int
    master: int
    peak: str
    meaning: str
    source: str

    @property
    def weight(self) -> int:
        """Bytes of a weight with its copy in fp32."""
        return self.item + self.master

    def count_state_bytes(self, optimizer: Optimizer) -> int:
        """Bytes that stay in memory for each weight: itself, its gradient, the optimizer's."""
        return self.weight + self.gradient + OPTIMIZER_BYTES[optimizer]


_ZERO = "Rajbhandari et al., ZeRO, SC20, section 3.1"

PRECISIONS: dict[PrecisionName, Precision] = {
    "fp32": Precision(
        *(4, 4, 0, "fp32 without tensor cores"), "single precision throughout", "IEEE 754"
    ),
    "tf32": Precision(
        *(4, 4, 0, "tf32 of the tensor cores"),
        "tensors of 4 bytes, products with 10 bits of mantissa",
        "NVIDIA A100 Tensor Core GPU architecture, white paper, 2020",
    ),
    "amp": Precision(
        *(2, 2, 4, "fp16 of the tensor cores; plain fp16 without any: 21.2 TFLOP/s on a P100"),
        "automatic mixed precision: fp16, with masters in fp32",
        f"Micikevicius et al., Mixed precision training, ICLR 2018; {_ZERO}",
    ),
    "bf16": Precision(
        *(2, 2, 4, "bf16 of the tensor cores"),
        "mixed precision with bf16 in the place of fp16",
        f"Kalamkar et al., A study of bfloat16 for deep learning training, 2019; {_ZERO}",
    ),
}


def _make_recipe(
    name: PrecisionName, gradients: int = 0, more: int = 0, read: float = 0, peak: str = ""
) -> Recipe:
    """A precision's bytes with Adam; gradients, read: where they differ, more: of the states."""
    of = PRECISIONS[name]
    states = of.master + OPTIMIZER_BYTES["adam"] + more
    return Recipe(of.item, gradients or of.gradient, states, of.item, read or of.item, peak)


# Of transformers, as Megatron-LM has them (docs dist_optimizer.md): of bf16 gradients are summed in
# fp32, of fp16 there is a copy of them in fp32, of fp8 only the inputs of products have a byte; of
# mxfp8 32 of them share a scale of a byte (OCP Microscaling formats 1.0), of nvfp4 16 half bytes.
RECIPES: Mapping[str, Recipe] = {
    "bf16": _make_recipe("bf16", gradients=4),
    "fp16": _make_recipe("amp", more=4),
    "fp32": _make_recipe("fp32"),
    "fp8": _make_recipe("bf16", gradients=4, read=1, peak="fp8"),
    "mxfp8": _make_recipe("bf16", gradients=4, read=1 + 1 / 32, peak="mxfp8"),
    "nvfp4": _make_recipe("bf16", gradients=4, read=1 / 2 + 1 / 16, peak="nvfp4"),
    "zero": _make_recipe("amp"),
}

AnyPrecision = Annotated[PrecisionName, expect_one_of("precision", tuple(PRECISIONS))]
