"""Fine-tuning: what of a network is trained, and how the rest is kept.

LoRA (Hu et al. 2021, arXiv 2106.09685): beside a frozen matrix W of h x w, two that are trained, A
of h x r and B of r x w, so that y = x W + x A B. QLoRA (Dettmers et al. 2023, arXiv 2305.14314):
frozen matrices of blocks in 4 bits, from which every product makes 16 bits first.
"""

from collections.abc import Mapping
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from paradl.grids.entries.entry import Count, Name, Record, refuse_bool
from paradl.grids.models.tensors import Role

# Bytes of a weight. nf4: QLoRA, section 3, double quantisation: 4 bits, a constant of 8 bits for 64
# of them, and one of 32 bits for 256 constants. int8: constants of rows are left out.
STORED: Mapping[str, float] = {"nf4": (4 + 8 / 64 + 32 / (64 * 256)) / 8, "int8": 1.0}


class Tuning(Record):
    """Settings of a model: `llama3_8b:lora=16,weights=nf4`, or `tuning` of its file.

    lora: rank r of adapters, which alone are trained. targets: matrices that have them, joined by
    `+`: `all` in blocks but routers (peft's all-linear; QLoRA, section 4), `attention`, `mlp`, or
    names of layers (`query+value`). weights: how frozen matrices of blocks are kept, if not as
    others. freeze: the embedding and so many first blocks are frozen, and no others.
    """

    lora: Count | None = None
    targets: Name = "all"
    weights: Literal["nf4", "int8"] | None = None
    freeze: Annotated[int, BeforeValidator(refuse_bool), Field(ge=0)] | None = None

    @model_validator(mode="after")
    def _check_parts(self) -> Self:
        if (self.lora is None) == (self.freeze is None):
            raise ValueError("expected either lora (the rank of adapters) or freeze")
        if self.lora is None and self.model_fields_set & {"targets", "weights"}:
            raise ValueError("targets, weights: only allowed with lora")
        return self

    def targets_matrix(self, name: str, word: str, role: Role) -> bool:
        """Whether a matrix has an adapter. word: of the step that it is built by."""
        if not self.lora or role.rank or "." not in name:  # only residual steps have parts
            return False
        is_router = word == "experts"
        kinds = {"all": not is_router, "attention": "attention" in word, "mlp": role.of == "ffn"}
        kinds[name.rpartition(".")[2]] = True
        return any(kinds.get(kind, False) for kind in self.targets.split("+"))
