"""The sentence that answers for a place: what is best there, and what speaks against it."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from paradl.grids.reading.errors import format_count
from paradl.grids.reading.units import format_quantity
from paradl.sweep.answers.objectives import Goal

Row = Mapping[str, Any]

DIGITS = 2  # of numbers in sentences
FULL = 0.95  # of the memory: a little more than predicted, and the configuration does not run
# Samples: the largest batch for which Goyal et al. (2017) show that ImageNet loses no accuracy.
PROVEN_BATCH = 8192


def brief(value: float) -> str:
    """Write a number with two digits."""
    return f"{float(f'{value:.{DIGITS}g}'):,g}"


def write_time(time: float, low: float | None = None, high: float | None = None) -> str:
    """Write a time with two digits, and its 80 % interval."""
    if low is None or high is None:
        return format_quantity(time, "s", DIGITS)
    ends = [format_quantity(end, "s", DIGITS) for end in (low, high)]
    return f"{format_quantity(time, 's', DIGITS)} (80 % interval {ends[0]} to {ends[1]})"


def name_row(row: Row) -> str:
    """Write a configuration and its PEs."""
    base, name = str(row["strategy"]).partition(":")[0], str(row["name"])
    size = row.get("group_size") or 1
    is_group = "+" in base and name.startswith(base) and size > 1
    name = f"{base} in groups of {size:g}" if is_group else name
    return f"{name} on {format_count(row['pe'], 'PE')}"


GOALS: dict[Goal, Callable[[Row, str], str]] = {
    "epoch_time": lambda row, what: f"trains an epoch of {what} in {_write_value(row)}",
    "train_time": lambda row, what: f"trains {what} to its target in {_write_value(row)}",
    "pe_hours": lambda row, what: (
        f"trains {what} with {brief(row['value'])} PE-hours{_per_epoch(row)}"
    ),
    "cost": lambda row, what: f"trains {what} for {brief(row['value'])}{_per_epoch(row)}",
}


def _write_value(row: Row) -> str:
    return write_time(row["value"], row["value_p10"], row["value_p90"])


def _per_epoch(row: Row) -> str:
    return "" if row.get("epochs") else " per epoch"


def describe_best(ranking: Sequence[Row], goal: Goal, precision: str, bottleneck: str) -> str:
    """Describe the winner of a place, the caveats of choosing it, and why others are ruled out.

    ranking: the strategies of the place, the best first.
    """
    feasible = [row for row in ranking if row["feasible"]]
    losers: dict[str, list[str]] = {}
    for row in ranking:
        if not row["feasible"]:
            losers.setdefault(row["reason"], []).append(row["strategy"])
    parts = []
    if feasible:
        best = feasible[0]
        parts = [_describe_winner(best, goal, precision), bottleneck, *_warn(best)]
    else:
        row = ranking[0]
        parts = [f"Nothing is feasible for {row['model']} on {row['system']}."]
    parts += [f"Ruled out ({reason}): {', '.join(names)}." for reason, names in losers.items()]
    return " ".join(filter(None, parts))


def _describe_winner(best: Row, goal: Goal, precision: str) -> str:
    batch = f", batch {best['batch']:,.0f}," if best.get("batch") else ""
    memory = ""
    if best["capacity"]:
        sizes = (brief(best[name] / 1e9) for name in ("memory", "capacity"))
        memory = ", using {} of {} GB per PE".format(*sizes)
    what = GOALS[goal](best, f"{best['model']} on {best['dataset']}")
    return f"{name_row(best)} of {best['system']} ({precision}){batch} {what}{memory}."


def _warn(best: Row) -> list[str]:
    """List what speaks against the winner."""
    warnings = []
    if best["capacity"] and best["memory"] > FULL * best["capacity"]:
        filled = best["memory"] / best["capacity"]
        warnings.append(f"Caution: it fills {filled:.0%} of the memory.")
    if not best.get("epochs") and (best.get("global_batch") or 0) > PROVEN_BATCH:
        warnings.append(
            f"Caution: whether a global batch of {best['global_batch']:,.0f} converges is not "
            "modelled."
        )
    return warnings
