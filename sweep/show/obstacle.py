"""The obstacle to a configuration, and ways around it, in one line."""

from typing import Any

from grids.entries.strategies import LIMIT, parse_strategy
from grids.inputs.divisors import divisors
from kernels.names.flags import FORBIDS
from sweep.cube.variables import name_limits

MOST_GROUPS = 12  # group sizes that a line lists


def describe_obstacle(answer: dict[str, Any]) -> str:
    """The limits that forbid a configuration, and ways out; marks forbid nothing."""
    forbidding = [name for name in answer["limit"] if name in name_limits(FORBIDS)]
    ways = [way for name in forbidding if name in WAYS for way in WAYS[name](answer)]
    return "; ".join([f"this configuration is not feasible: {', '.join(forbidding)}", *ways])


def _fit_memory(answer: dict[str, Any]) -> list[str]:
    """Ways to fit in memory: fewer samples, or a larger group."""
    batch, group = answer["largest_batch"], answer["smallest_group"]
    batches = {None: None, 0: "not one sample fits"}
    groups = {None: None, 0: "no group fits"}
    ways = (
        batches.get(batch, f"a replica holds {batch} samples at most"),
        groups.get(group, f"the smallest group that fits has {group} PEs"),
    )
    return [way for way in ways if way is not None]


def _divide_groups(answer: dict[str, Any]) -> list[str]:
    """The group sizes that divide the PEs."""
    pe, group = answer["pe"], answer["group"]
    problem = (
        f"a group of {group} PEs is larger than all {pe:,}"
        if group > pe
        else f"{group} does not divide {pe:,} PEs"
    )
    sizes = divisors(pe)[1:]
    if not sizes:
        return [problem]
    listed = ", ".join(map(str, sizes[:MOST_GROUPS]))
    more = " ..." if len(sizes) > MOST_GROUPS else ""
    return [f"{problem}: group sizes that do are {listed}{more}"]


def _bound_pes(answer: dict[str, Any]) -> list[str]:
    """The largest PE count of a strategy."""
    strategy = parse_strategy(answer["strategy"])
    if strategy.serial:
        return ["serial is one PE"]
    if strategy.several:
        return [f"the limit of {name}: {LIMIT[name]}" for name in strategy.parts]
    return [f"the limit of {strategy.base}: {LIMIT[strategy.base]}"]


WAYS = {
    "memory": _fit_memory,
    "group_does_not_divide": _divide_groups,
    "too_many_pes": _bound_pes,
}
