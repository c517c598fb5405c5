"""The two oracles: named choices of the same formulas, and of the parameters that they know.

`paper` is Table III of ParaDL verbatim; `machine` describes machines as they are (docs/machine.md).
"""

from typing import Literal

OracleName = Literal["paper", "machine"]

# Why a parameter of one oracle is no parameter of the other, and what to write instead.
REFUSED: dict[str, str] = {
    "gamma": "memory is counted tensor by tensor: no factor is left to guess; leave it out, or "
    "write 'oracle: paper'",
    "delta": "it follows from the precision: write 'system: \"NAME:precision=amp\"', or "
    "'oracle: paper'",
}

# Choices of formula that an oracle does not have, and what to write instead.
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
