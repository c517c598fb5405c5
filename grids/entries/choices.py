"""Keys of a spec that choose a formula by one of a few words, with their defaults.

A key that is added here is a key of every spec. It is used by the kernels' options
(`Grid.options`), the layers' times, and the meaning of the axis `batch`.
"""

from typing import Literal

from grids.entries.entry import Record
from grids.entries.oracles import OracleName


class Choices(Record):
    """The keys of a spec that choose formulas."""

    # Table III verbatim, or a detailed machine (grids/entries/oracles.py).
    oracle: OracleName = "machine"
    # Whether `batch` is samples per replica (b) or per global batch (B).
    scaling: Literal["weak", "strong"] = "weak"
    # Measured compute times where a model has them for the device, or the roofline for all.
    times: Literal["measured", "roofline"] = "measured"
    # The algorithm of all-reduce and all-gather. auto: the machine's fastest by message size,
    # Table III's ring; best (Table III only): the cheaper of ring and tree.
    collectives: Literal["auto", "ring", "tree", "two-level", "best"] = "auto"
    # Table III only, for gradients whose weights a group replicates: one ring of p, or inside
    # groups first.
    allreduce: Literal["ring", "hierarchical"] = "ring"
    # Table III only. table: sums, halos and bounds as printed; authors: the layers that the
    # authors' tool and experiments split and count (docs/oracle.md).
    conventions: Literal["table", "authors"] = "table"
    # I = D/B per epoch, or rounded up, as by loaders that keep a smaller last batch.
    iterations: Literal["exact", "ceil"] = "exact"
    # The optimizer, whose update takes time and whose states take memory.
    optimizer: Literal["sgd", "adam", "none"] = "sgd"
    # Whether layers run forward again in the backward pass, to keep less memory. Not in Table III.
    recompute: Literal["none", "full"] = "none"
