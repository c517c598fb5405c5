"""Units of the columns of tables: those of answers' fields, and of the records inside them."""

from grids.entries.parameters import PARAMETERS
from kernels.names.terms import TERMS
from sweep.answers.types.schemas import ANSWERS

# Of formulas' rows, of intervals, and of what `explain` evaluated formulas with.
INSIDE = {
    "seconds_per_epoch": "s/epoch",
    **dict.fromkeys(TERMS, "s/epoch"),
}
INSIDE_SCALED = {
    "seconds_per_iteration": "s",
    "gradient_delta": "B",
    **dict.fromkeys(("p10", "p50", "p90"), "s"),
    **dict.fromkeys(("group_latency", "replica_latency", "halo_latency"), "s"),
    **dict.fromkeys(("group_bandwidth", "replica_bandwidth", "halo_bandwidth"), "B/s"),
}


def _list_units(scaled: bool) -> dict[str, str]:
    """The units of fields by name; those in words belong to schemas alone."""
    facts = (
        (name, field.fact)
        for answer in ANSWERS.values()
        for name, field in answer.list_fields().items()
    )
    return {
        name: fact.unit
        for name, fact in facts
        if fact.scaled == scaled and fact.unit != "1" and " " not in fact.unit
    }


# Written in a column's head, and behind a value that stands alone.
UNITS = _list_units(scaled=False) | INSIDE
# Written in a column's head with an SI prefix, or in each cell where no prefix suits them all.
PREFIXED = (
    {each.name: each.unit for each in PARAMETERS.values() if each.unit != "1"}
    | _list_units(scaled=True)
    | INSIDE_SCALED
)
