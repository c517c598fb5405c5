"""Facts of a configuration from which its explanation is written, the same for layers and blocks.

`group_facts` finds those of groups that divide layers, `blocks` those of layouts.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from paradl.kernels.names.terms import Term
from paradl.sweep.answers.types.prediction import LayerRow

Formula = tuple[str, str]  # in symbols, and with numbers

# What a PE holds beside tensors (docs/machine.md, Memory per PE).
RESERVED = "reserved: context and workspaces, an assumption"


@dataclass(frozen=True)
class WorkFacts:
    """Formulas of a configuration's work, and the numbers in them.

    terms: name, formulas, and seconds per epoch; those of part hidden overlap compute. passes: as
    many as the terms' formulas leave out. algorithm: of collectives, where formulas are for
    another. memory: by part. values: numbers beside those of the answer, by their names in
    templates and in the legend. layers: rows.
    """

    terms: Sequence[tuple[str, Term, float]]
    memory: Mapping[str, Formula]
    values: Mapping[str, Any]
    passes: float = 1.0
    algorithm: str = ""
    layers: Sequence[LayerRow] = ()
