"""Parallelisms: what is said of each of them, once, and which can be combined.

Read without JAX; what they compute is in `kernels.parallelism`.
"""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class ParallelismFacts:
    """Facts of a parallelism inside a replica.

    meaning, limit: in words, for the catalogue. part: what each PE has, in words. splits: what of a
    layer it divides, None where layers stay whole. segmented: whether samples pass in segments.
    most_segments: the largest number that may be asked for. alone: why it is combined with data
    parallelism alone; None where it may be with others.
    """

    meaning: str
    limit: str
    part: str
    splits: Literal["rows", "weights"] | None = None
    segmented: bool = False
    most_segments: int = 2**53
    alone: str | None = None


# Those of Table III first, in its order.
KINDS: dict[str, ParallelismFacts] = {
    "spatial": ParallelismFacts(
        meaning="height, width (and depth) of samples divided; halo exchange",
        limit="each factor of p <= the extents of the layers it splits",
        part="a part of each sample",
        splits="rows",
    ),
    "pipeline": ParallelismFacts(
        meaning="contiguous stages of layers; segments flow through them",
        limit="p <= G: convolutions, matrices; and poolings in Table III",
        part="a stage: contiguous layers",
        segmented=True,
    ),
    "filter": ParallelismFacts(
        meaning="filters, or columns of linear layers, divided; outputs gathered",
        limit="p <= min F",
        part="its filters of each split layer",
        splits="weights",
    ),
    "channel": ParallelismFacts(
        meaning="channels, or rows of linear layers, divided; outputs reduced",
        # The first layer has the sample's channels, three of an image: it stays whole.
        limit="p <= min C (of a filter: C/g), from the second layer on",
        part="its channels of each split layer",
        splits="weights",
    ),
    "placement": ParallelismFacts(
        meaning="operators on a node's PEs, messages between; in segments",
        limit="p = 2 or 4 that divides a node, S <= 16; machine oracle",
        part="its operators",
        segmented=True,
        most_segments=16,
        alone="operators are placed whole",
    ),
}

# Inside a replica, from the outermost to those whose PEs are neighbours.
NESTING = ("pipeline", "placement", "spatial", "filter", "channel")
# As strategies are written.
WRITTEN = ("spatial", "filter", "channel", "pipeline", "placement")

# What others call them.
ALSO = {
    "tensor": "'filter' or 'channel', which divide the tensors of layers",
    "tp": "'filter' or 'channel', which divide the tensors of layers",
    "dp": "'data'",
    "ddp": "'data'",
    "pp": "'pipeline'",
    "gpipe": "'pipeline'",
    **dict.fromkeys(
        ("fsdp", "zero", "deepspeed"),
        "'data' with weights, gradients or optimizer states sharded across replicas; sharding is "
        "not modelled yet: 'data' keeps all of them on every PE",
    ),
    "megatron": "'filter' and 'channel' in turn, so that one exchange serves two layers; the pair "
    "is not modelled yet: 'data+filter' and 'data+channel' exchange after each layer",
}


def explain_conflict(names: tuple[str, ...]) -> str | None:
    """Why parallelisms cannot share a replica; None where they can."""
    for name in names:
        if KINDS[name].alone and len(names) > 1:
            return f"{name} goes with data alone: {KINDS[name].alone}"
    by_weights = [name for name in names if KINDS[name].splits == "weights"]
    if len(by_weights) > 1:
        return "a layer divided both ways: not modelled"
    return None
