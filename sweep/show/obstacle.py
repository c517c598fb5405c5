"""Why a configuration is infeasible and what would make it feasible, in one line."""

from typing import Any

from grids.entries.strategies import parse_strategy
from grids.entries.strategy_names import LIMIT
from grids.inputs.factors import divisors
from kernels.names.flags import FORBIDS
from sweep.cube.variables import name_limits

MOST_GROUPS = 12  # group sizes that fit on a line


def describe_obstacle(answer: dict[str, Any]) -> str:
    """Name the limits that forbid a configuration, and ways out."""
    # `limit` also names marks, which forbid nothing.
    forbidding = [name for name in answer["limit"] if name in name_limits(FORBIDS)]
    advice = [text for name in forbidding if name in ADVICE for text in ADVICE[name](answer)]
    return "; ".join([f"this configuration is not feasible: {', '.join(forbidding)}", *advice])


def _fit_memory(answer: dict[str, Any]) -> list[str]:
    batch, group = answer["largest_batch"], answer["smallest_group"]
    advice = []
    if batch is not None:
        most = f"a replica holds at most {batch} samples"
        advice.append(most if batch else "not one sample fits")
    if group is not None:
        advice.append(f"the smallest group that fits has {group} PEs" if group else "no group fits")
    return advice


def _list_group_sizes(answer: dict[str, Any]) -> list[str]:
    pe, group = answer["pe"], answer["group"]
    problem = (
        f"a group of {group} PEs is larger than all {pe:,}"
        if group > pe
        else f"{group} does not divide {pe:,} PEs"
    )
    # Without 1: a group of one PE is plain data parallelism.
    sizes = divisors(pe)[1:]
    if not sizes:
        return [problem]
    listed = ", ".join(map(str, sizes[:MOST_GROUPS]))
    rest = " ..." if len(sizes) > MOST_GROUPS else ""
    return [f"{problem}: valid group sizes are {listed}{rest}"]


def _state_limits(answer: dict[str, Any]) -> list[str]:
    strategy = parse_strategy(answer["strategy"])
    if strategy.serial:
        return ["serial runs on one PE"]
    if strategy.laid:
        return list(answer["obstacles"])
    names = strategy.parts if strategy.several else [strategy.base]
    return [f"the limit of {name}: {LIMIT[name]}" for name in names]


ADVICE = {
    "memory": _fit_memory,
    "group_does_not_divide": _list_group_sizes,
    "does_not_divide": lambda answer: answer["obstacles"],
    "too_many_pes": _state_limits,
}
