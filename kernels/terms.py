"""Terms: the parts of an iteration's time, in the order in which they are told and added.

Apart from the kernels that find them (`kernels.run.Terms` has a field for each): whoever only names
them needs no JAX.
"""

from dataclasses import dataclass
from typing import Literal

Part = Literal["compute", "communication"]
Per = Literal["sample", "iteration"]


@dataclass(frozen=True)
class Term:
    """A part of the time. per: whether an epoch pays it for each sample, or each iteration."""

    name: str
    part: Part
    per: Per
    meaning: str


_ALL = (
    Term("forward_backward", "compute", "sample", "time of forward and backward passes"),
    Term(
        "pipeline_bubble",
        "compute",
        "sample",
        "time stages wait for their first and after their last segment",
    ),
    Term("weight_update", "compute", "iteration", "time of weight updates"),
    # What Table III does not have, and is 0 there.
    Term(
        "split_overhead",
        "compute",
        "iteration",
        "time that dividing layers costs beside arithmetic",
    ),
    Term(
        "gradient_exchange",
        "communication",
        "iteration",
        "time of the gradient exchange across replicas",
    ),
    Term(
        "layer_collectives",
        "communication",
        "iteration",
        "time of layer-wise collectives inside a group",
    ),
    Term("halo_exchange", "communication", "iteration", "time of halo exchanges inside a group"),
    Term(
        "split_gather", "communication", "iteration", "time of gathers where a spatial split ends"
    ),
    Term("point_to_point", "communication", "iteration", "time of transfers from stage to stage"),
)

TERMS = {term.name: term for term in _ALL}


def list_terms(part: Part, per: Per | None = None) -> tuple[str, ...]:
    """The names of the terms of a part, or of those that are paid so."""
    return tuple(
        term.name for term in _ALL if term.part == part and (per is None or term.per == per)
    )
