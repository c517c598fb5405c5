"""Terms: the parts of an iteration's time, in the order in which they are told.

Apart from the kernels that find them: whoever only names them needs no JAX.
"""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Term:
    """A part of the time. per: whether an epoch pays it for each sample, or each iteration."""

    name: str
    part: Literal["compute", "communication"]
    per: Literal["sample", "iteration"]
    meaning: str


_ALL = (
    Term("forward_backward", "compute", "sample", "forward and backward passes"),
    Term(
        "pipeline_bubble",
        "compute",
        "sample",
        "time stages wait for their first and after their last segment",
    ),
    Term("weight_update", "compute", "iteration", "weight updates"),
    Term(
        "split_overhead",
        "compute",
        "iteration",
        "time that dividing layers costs beside arithmetic",
    ),
    Term("gradient_exchange", "communication", "iteration", "gradient exchange across replicas"),
    Term(
        "layer_collectives",
        "communication",
        "iteration",
        "layer-wise collectives inside a group",
    ),
    Term("halo_exchange", "communication", "iteration", "halo exchanges inside a group"),
    Term("split_gather", "communication", "iteration", "gathers where a spatial split ends"),
    Term("point_to_point", "communication", "iteration", "transfers from stage to stage"),
)

TERMS = {term.name: term for term in _ALL}
