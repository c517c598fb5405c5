"""The two oracles, as choices of formulas and of the parameters that these have.

`paper` is Table III of ParaDL verbatim; `machine` models machines in detail (docs/machine.md).
"""

from collections.abc import Mapping
from typing import Literal

OracleName = Literal["paper", "machine"]

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
