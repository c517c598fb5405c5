"""Choices of formula: the keys of a spec that take one of a few words, and which one by default.

One table: a key that is added here is a key of every spec. Its readers take it from there: the
kernels' options (grids/formulas.py), the layers' times, the meaning of the axis `batch`.
"""

from typing import Literal

from grids.entries.entry import Record
from grids.entries.oracles import OracleName


class Choices(Record):
    """The keys of a spec that choose formulas."""

    # Table III verbatim, or the machine as it is (grids/entries/oracles.py).
    oracle: OracleName = "machine"
    # Whether `batch` counts the samples of a replica (b) or of the whole mini-batch (B).
    scaling: Literal["weak", "strong"] = "weak"
    # Compute times as measured, where a model has some for the device, or the roofline throughout.
    times: Literal["measured", "roofline"] = "measured"
    # The algorithm of all-reduce and all-gather. auto: the machine's fastest for each class of
    # sizes, Table III's ring; best, of Table III alone: the cheaper of ring and tree.
    collectives: Literal["auto", "ring", "tree", "two-level", "best"] = "auto"
    # Of Table III alone, and gradients whose weights a group replicates: one ring of p, or inside
    # the groups first.
    allreduce: Literal["ring", "hierarchical"] = "ring"
    # Of Table III alone. table: its sums, halos and bounds as written; authors: the layers that the
    # authors' tool and experiments split and count (docs/oracle.md).
    conventions: Literal["table", "authors"] = "table"
    # I = D/B an epoch, or rounded up, as loaders do that keep the last, smaller batch.
    iterations: Literal["exact", "ceil"] = "exact"
    # The optimizer whose weight update takes time, and whose states take memory.
    optimizer: Literal["sgd", "adam", "none"] = "sgd"
    # Whether layers run forward again in the backward pass, so that less is kept. No formula of
    # Table III.
    recompute: Literal["none", "full"] = "none"
