"""Options: choices between formulas, fixed when a program is compiled. Needs no JAX.

The two oracles are named sets of these options (`grids.spec`).

To add one: a field of `Options` here; the place where the formula is chosen; `Grid.options` in
grids/grid.py (by which oracle, or by which key of `grids.spec`).
Test: tests/test_machine_agreement.py.
"""

from dataclasses import dataclass
from typing import Literal

OracleName = Literal["paper", "machine"]
Algorithm = Literal["ring", "tree", "best", "two-level", "auto"]
Optimizer = Literal["sgd", "adam", "none"]
Cuts = Literal["output", "crossing"]
Conventions = Literal["table", "authors"]
# Rows of a halo: K-1 of every window; K-1 of windows that overlap; the rows that they share.
Halos = Literal["windows", "overlapping", "common"]
Zero = Literal[0, 1, 2, 3]  # stages of ZeRO
# Schedules of pipelines: all segments forward, then all backward; or backward as soon as possible.
Schedule = Literal["gpipe", "1f1b", "zb1p", "zbv"]

Attention = Literal["fused", "unfused"]
ContextExchange = Literal["ring", "all_gather", "all_to_all"]
LossLogits = Literal["auto", "whole", "plain", "chunked", "fused"]
KeptStates = Literal[
    "usual", "fp8_weights", "bf16_moments", "narrow", "adam_8bit", "adafactor", "one_moment"
]
Offload = Literal["none", "states", "activations", "both"]
Rounding = Literal["exact", "ceil"]


@dataclass(frozen=True)
class Options:
    """Choices between formulas.

    oracle: Table III (`kernels.paper`), or machines as they are. algorithm: of collectives.
    iterations: "exact" counts D/B; "ceil" rounds up, so that the last, smaller batch has the
    communication and update of a whole iteration, but only its own samples' compute. recompute:
    "full" runs layers forward again in the backward pass instead of keeping their tensors.
    waits_for_input: whether hosts may be too slow. conventions: of Table III only
    (docs/oracle.md). zero: replicas divide 1: optimizer states, 2: also gradients, 3: also weights.
    schedule: of pipelines. chunks: of layers in each of their stages, which are interleaved.
    attention, context, loss, states, offload: of blocks, as keys of a spec.
    """

    oracle: OracleName = "paper"
    algorithm: Algorithm = "ring"
    allreduce: Literal["ring", "hierarchical"] = "ring"
    iterations: Rounding = "exact"
    optimizer: Optimizer = "sgd"
    recompute: Literal["none", "full"] = "none"
    waits_for_input: bool = False
    conventions: Conventions = "table"
    zero: Zero = 0
    schedule: Schedule = "gpipe"
    chunks: int = 1
    attention: Attention = "fused"
    context: ContextExchange = "ring"
    loss: LossLogits = "auto"
    states: KeptStates = "usual"
    offload: Offload = "none"

    @property
    def verbatim(self) -> bool:
        """True if layers are counted and divided as in Table III."""
        return self.oracle == "paper" and self.conventions == "table"

    @property
    def cuts(self) -> Cuts:
        """Tensors that cross a cut between pipeline stages.

        Only the output of the layer before it (Table III), or all that later layers read.
        """
        return "output" if self.oracle == "paper" else "crossing"

    @property
    def halos(self) -> Halos:
        """The rows of a halo."""
        if self.oracle == "machine":
            return "common"
        return "overlapping" if self.verbatim else "windows"
