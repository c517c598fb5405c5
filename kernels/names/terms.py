"""Terms: the parts of an iteration's time, in the order in which they are told and added.

One table: a field of `Terms` is a term's row. Apart from the kernels that compute them
(`kernels.configuration.run` makes `Terms` a pytree): whoever only names them needs no JAX.
"""

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from kernels.arrays import Cells

# hidden: time that passes while PEs compute, and so is part of no sum.
Part = Literal["compute", "communication", "hidden"]
Per = Literal["sample", "iteration"]


@dataclass(frozen=True)
class Term:
    """A part of the time. per: whether an epoch pays it for each sample, or each iteration.

    once: an iteration pays it once, however many passes' gradients are accumulated.
    """

    name: str
    part: Part
    per: Per
    meaning: str
    once: bool = False


def describe_term(part: Part, per: Per, meaning: str, once: bool = False) -> dict[str, Any]:
    """The row of a term, as the metadata of its field."""
    return {"part": part, "per": per, "meaning": meaning, "once": once}


# `field` and no helper around it: type checkers then know that a term has no default.
@dataclass(frozen=True)
class Terms:
    """Seconds of each part of the time; a field is a row of `TERMS`."""

    forward_backward: "Cells" = field(
        metadata=describe_term("compute", "sample", "time of forward and backward passes")
    )
    pipeline_bubble: "Cells" = field(
        metadata=describe_term(
            "compute", "sample", "time stages wait for their first and after their last segment"
        )
    )
    weight_update: "Cells" = field(
        metadata=describe_term("compute", "iteration", "time of weight updates", once=True)
    )
    # What Table III does not have, and is 0 there.
    pass_overhead: "Cells" = field(
        metadata=describe_term(
            "compute", "iteration", "time of a pass whatever the batch: reading weights"
        )
    )
    launch_wait: "Cells" = field(
        metadata=describe_term(
            "compute", "iteration", "time that PEs wait for their hosts to launch layers"
        )
    )
    split_overhead: "Cells" = field(
        metadata=describe_term(
            "compute", "iteration", "time that dividing layers costs beside arithmetic"
        )
    )
    gradient_packing: "Cells" = field(
        metadata=describe_term(
            "compute", "iteration", "time of copying gradients to host memory and back", once=True
        )
    )
    input_wait: "Cells" = field(
        metadata=describe_term(
            "compute", "iteration", "time that PEs wait for samples to come in", once=True
        )
    )
    gradient_exchange: "Cells" = field(
        metadata=describe_term(
            "communication",
            "iteration",
            "time of the gradient exchange across replicas",
            once=True,
        )
    )
    layer_collectives: "Cells" = field(
        metadata=describe_term(
            "communication", "iteration", "time of layer-wise collectives inside a group"
        )
    )
    halo_exchange: "Cells" = field(
        metadata=describe_term(
            "communication", "iteration", "time of halo exchanges inside a group"
        )
    )
    split_gather: "Cells" = field(
        metadata=describe_term(
            "communication", "iteration", "time of gathers where a spatial split ends"
        )
    )
    sample_scatter: "Cells" = field(
        metadata=describe_term(
            "communication", "iteration", "time of handing out samples through host memory"
        )
    )
    point_to_point: "Cells" = field(
        metadata=describe_term(
            "communication", "iteration", "time of transfers from stage to stage"
        )
    )
    log_files: "Cells" = field(
        metadata=describe_term(
            "communication", "iteration", "time of opening log files at exchanges (plain software)"
        )
    )
    straggler_wait: "Cells" = field(
        metadata=describe_term(
            "communication", "iteration", "time that PEs wait for the slowest of them"
        )
    )
    hidden_communication: "Cells" = field(
        metadata=describe_term(
            "hidden",
            "iteration",
            "time of communication while PEs compute, beside the other terms",
            once=True,
        )
    )

    def add(self, part: Part, per: Per | None = None) -> "Cells":
        """Seconds of all terms of a part, or of those that are paid so."""
        first, *others = (getattr(self, name) for name in list_terms(part, per))
        total: Cells = sum(others, first)
        return total

    @property
    def compute(self) -> "Cells":
        """[s] computing."""
        # Two sums first, as `kernels.configuration.run` keeps them: both agree to the last bit.
        return self.add("compute", "sample") + self.add("compute", "iteration")

    @property
    def communication(self) -> "Cells":
        """[s] communicating."""
        return self.add("communication")


TERMS = {each.name: Term(each.name, **each.metadata) for each in fields(Terms)}


def list_terms(part: Part, per: Per | None = None) -> tuple[str, ...]:
    """The names of the terms of a part, or of those that are paid so."""
    return tuple(
        term.name
        for term in TERMS.values()
        if term.part == part and (per is None or term.per == per)
    )
