"""Precisions of training: the peak that computes, and the bytes of everything.

A precision sets peak and bytes together (docs/machine.md). Micikevicius et al., "Mixed precision
training", ICLR 2018: fp16 for compute and communication, with fp32 masters. Rajbhandari et al.,
"ZeRO", SC20, section 3.1: bytes of states.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

from paradl.grids.entries.entry import expect_one_of
from paradl.kernels.names.recipes import Recipe
from paradl.kernels.options import KeptStates, Optimizer

PrecisionName = Literal["fp32", "tf32", "amp", "bf16", "fp8", "mxfp8", "nvfp4"]

# Bytes of states per weight, always fp32: none, momentum, two moments.
OPTIMIZER_BYTES: dict[Optimizer, int] = {"none": 0, "sgd": 4, "adam": 8}


@dataclass(frozen=True)
class Precision:
    """Bytes of one precision.

    item [B]: per item of a tensor, and per weight in compute. gradient [B]: per weight, in memory
    and in messages. master [B]: per weight's fp32 copy, if there is one. peak: which dense peak of
    a data sheet counts.
    """

    item: int
    gradient: int
    master: int
    peak: str
    meaning: str
    source: str

    @property
    def weight(self) -> int:
        """Bytes of a weight including its fp32 copy."""
        return self.item + self.master

    def count_state_bytes(self, optimizer: Optimizer) -> int:
        """Bytes kept in memory per weight: weight, gradient and optimizer states."""
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
    "fp8": Precision(
        *(2, 2, 4, "fp8 of the tensor cores"),
        "bf16 with products of transformers in fp8",
        "Micikevicius et al., FP8 formats for deep learning, 2022",
    ),
    "mxfp8": Precision(
        *(2, 2, 4, "mxfp8 of the tensor cores"),
        "as fp8, with a scale for each 32 items",
        "OCP Microscaling formats 1.0, 2023",
    ),
    "nvfp4": Precision(
        *(2, 2, 4, "nvfp4 of the tensor cores"),
        "bf16 with products of transformers in half a byte, with a scale for each 16 items",
        "NVIDIA, Pretraining large language models with NVFP4, 2025",
    ),
}
# Only layouts of transformers compute in them.
NARROW: tuple[PrecisionName, ...] = ("fp8", "mxfp8", "nvfp4")


def _make_recipe(
    name: PrecisionName, gradients: int = 0, more: int = 0, read: float = 0, peak: str = ""
) -> Recipe:
    """Return a precision's bytes with Adam.

    gradients, read: if different; more: additional bytes of states.
    """
    precision = PRECISIONS[name]
    states = precision.master + OPTIMIZER_BYTES["adam"] + more
    item, gradients = precision.item, gradients or precision.gradient
    return Recipe(item, gradients, states, item, read or item, peak)


# For transformers, as in Megatron-LM (docs dist_optimizer.md): bf16 gradients are summed in fp32,
# fp16 gradients have an fp32 copy, in fp8 only the inputs of products are one byte; in mxfp8, 32 of
# them share a scale of one byte (OCP Microscaling formats 1.0), in nvfp4 16 half bytes do.
RECIPES: Mapping[str, Recipe] = {
    "bf16": _make_recipe("bf16", gradients=4),
    "fp16": _make_recipe("amp", more=4),
    "fp32": _make_recipe("fp32"),
    "fp8": _make_recipe("bf16", gradients=4, read=1, peak="fp8"),
    "mxfp8": _make_recipe("bf16", gradients=4, read=1 + 1 / 32, peak="mxfp8"),
    "nvfp4": _make_recipe("bf16", gradients=4, read=1 / 2 + 1 / 16, peak="nvfp4"),
    "zero": _make_recipe("amp"),
}


# Bytes of an optimizer's moments per weight, beside its fp32 copy. In bf16: DeepSeek-V3, 2024,
# section 3.3.3. In 8 bits: Dettmers et al. 2022, a constant of 4 bytes for each 256 (bitsandbytes).
# Adafactor (Shazeer and Stern 2018) without its sums of rows and columns. Muon, Lion, SGD: one.
MOMENTS: Mapping[KeptStates, float] = {
    **dict.fromkeys(("usual", "fp8_weights"), OPTIMIZER_BYTES["adam"]),
    **dict.fromkeys(("bf16_moments", "narrow"), OPTIMIZER_BYTES["adam"] / 2),
    "adam_8bit": 2 * (1 + 4 / 256),
    "adafactor": 0,
    "one_moment": 4,
}


def narrow_states(recipe: Recipe, states: KeptStates) -> Recipe:
    """Return the recipe with fewer bytes of some states: weights as products read them, MOMENTS."""
    weights = recipe.weights
    if states in ("fp8_weights", "narrow"):
        weights = min(weights, recipe.read)
    less = OPTIMIZER_BYTES["adam"] - MOMENTS[states]
    return recipe._replace(weights=weights, states=recipe.states - less)


AnyPrecision = Annotated[PrecisionName, expect_one_of("precision", tuple(PRECISIONS))]
