"""Keys of a spec that choose a formula by one of a few words, and what each oracle lacks.

The oracle `paper` is Table III of ParaDL verbatim; `machine` models machines in detail
(docs/machine.md). A key that is added here is a key of every spec. It is used by the kernels'
options (`Grid.options`), the layers' times, and the meaning of the axis `batch`.
"""

from collections.abc import Mapping
from typing import Literal

from paradl.grids.entries.entry import Record
from paradl.kernels.options import Attention, ContextExchange, LossLogits, Optimizer, OracleName


class Choices(Record):
    """The keys of a spec that choose formulas."""

    # Table III verbatim, or a detailed machine.
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
    optimizer: Optimizer = "sgd"
    # Whether layers run forward again in the backward pass, to keep less memory. Not in Table III.
    recompute: Literal["none", "full"] = "none"
    # Of networks with blocks: whether the attention of a block keeps its scores in memory; how PEs
    # that share a sequence exchange keys and values; what the loss keeps of logits: all of them
    # (whole: fp32 alone, as Megatron-LM; plain: as PyTorch), an eighth at a time, or none. auto: as
    # the system's software does.
    attention: Attention = "fused"
    context: ContextExchange = "ring"
    loss: LossLogits = "auto"


# Why one oracle does not have a parameter of the other, and what to write instead.
REFUSED: dict[str, str] = {
    "gamma": "memory is counted tensor by tensor, without a reuse factor; leave it out, or write "
    "'oracle: paper'",
    "delta": "it follows from the precision: write 'system: \"NAME:precision=amp\"', or "
    "'oracle: paper'",
}

# Choices that an oracle does not have, and what to write instead.
REFUSED_CHOICES: dict[OracleName, tuple[tuple[str, str, str], ...]] = {
    "paper": (
        ("recompute", "full", "write 'oracle: machine'"),
        ("collectives", "two-level", "write 'allreduce: hierarchical', or 'oracle: machine'"),
    ),
    "machine": (
        ("collectives", "best", "write 'collectives: auto', or 'oracle: paper'"),
        ("allreduce", "hierarchical", "write 'collectives: two-level', or 'oracle: paper'"),
        ("conventions", "authors", "leave it out, or write 'oracle: paper'"),
    ),
}


def add_former_choices(definition: Mapping[str, object]) -> dict[str, object]:
    """Add to a store's definition what was implied before a choice existed."""
    # Definitions without oracle and calibration are from the time of Table III alone.
    written = {"oracle": "paper", "calibration": "none", **definition}
    return written if written["oracle"] == "machine" else {"conventions": "authors", **written}
