"""Options: the choices that select a formula, fixed when a program is compiled.

The two oracles are named choices of these, and the numbers that go with them
(`grids.entries.oracles`).
"""

from dataclasses import dataclass
from typing import Literal

from kernels.batches import Rounding
from kernels.states import Schedule, Zero

Algorithm = Literal["ring", "tree", "best", "two-level", "auto"]
Optimizer = Literal["sgd", "adam", "none"]
Cuts = Literal["output", "crossing"]
Conventions = Literal["table", "authors"]
# Rows of a halo: K-1 of every window; K-1 where neighbours' windows have a row in common; those
# that they have in common.
Halos = Literal["windows", "overlapping", "common"]


@dataclass(frozen=True)
class Options:
    """Formulas.

    algorithm: of collectives.
    iterations: "exact" counts D/B of them; "ceil" rounds up, so that the last, smaller batch pays a
    whole iteration's communication and update, but computes no sample that is not there.
    oracle: Table III (`kernels.paper`), or the machine as it is. recompute: whether the backward
    pass runs layers forward once more instead of keeping all that it reads. waits_for_input:
    whether hosts may be too slow. conventions: of Table III alone (docs/oracle.md). zero: the ZeRO
    stage, 1: replicas divide the optimizer's states among them, 2: gradients too, 3: weights too.
    schedule: of pipelines.
    """

    oracle: Literal["paper", "machine"] = "paper"
    algorithm: Algorithm = "ring"
    allreduce: Literal["ring", "hierarchical"] = "ring"
    iterations: Rounding = "exact"
    optimizer: Optimizer = "sgd"
    recompute: Literal["none", "full"] = "none"
    waits_for_input: bool = False
    conventions: Conventions = "table"
    zero: Zero = 0
    schedule: Schedule = "gpipe"

    @property
    def verbatim(self) -> bool:
        """True if layers are counted and divided as Table III has them."""
        return self.oracle == "paper" and self.conventions == "table"

    @property
    def cuts(self) -> Cuts:
        """Tensors that a cut between two stages of a pipeline carries.

        The output of the layer before it (Table III), or all that crosses it, and it lies where
        that is little.
        """
        return "output" if self.oracle == "paper" else "crossing"

    @property
    def halos(self) -> Halos:
        """The rows of a halo."""
        if self.oracle == "machine":
            return "common"
        return "overlapping" if self.verbatim else "windows"
