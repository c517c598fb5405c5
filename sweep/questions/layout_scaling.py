"""Layouts on several numbers of PEs: how far a transformer scales, the fewest PEs for a deadline,
and fronts.

All look at the fastest layout of each number of PEs, or at those that trade time for memory.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import log
from pathlib import Path
from typing import Any

import numpy as np

from paradl.grids.library import find
from paradl.grids.reading.errors import InputError
from paradl.grids.reading.units import parse_duration, parse_quantity
from paradl.kernels.names.statistics import EFFICIENCY
from paradl.kernels.names.stored import PERCENTILES
from paradl.sweep.answers.types.fitting import (
    UNSUPPORTED,
    FastestLayout,
    LayoutFrontRow,
    LayoutLimitRow,
    LayoutProvisionRow,
    LayoutRow,
    TimeParts,
)
from paradl.sweep.cases.probability import find_odds
from paradl.sweep.questions.fit import fit
from paradl.sweep.questions.pareto import Against, FrontGoal, merge_fronts

# Terms that a single PE has, too: work, and not what scaling costs.
WORK = ("products", "attention", "elementwise", "logits")


def list_layout_limits(
    model: str,
    efficiency: float | str = EFFICIENCY,
    *,
    system: str = "dgx-h100",
    **options: Any,
) -> list[LayoutLimitRow]:
    """A row for 1, 2, 4 ... PEs of a system with the fastest layout of each.

    efficiency: the least that counts as efficient, of tokens per PE and second over the most that
    any fewer PEs reach. options: as in `fit`. InputError: an efficiency beyond 0 to 1, and what
    `fit` refuses.
    """
    efficiency = parse_quantity(efficiency, "1", "efficiency", "80%")
    if not 0 < efficiency <= 1:
        raise InputError(f"expected above 0 to 1, got {efficiency:g}", where="efficiency")
    rows: list[LayoutLimitRow] = []
    # Compared with the best of fewer PEs, since few transformers fit on a single one.
    most = 0.0  # tokens per PE and second that fewer PEs reach
    for row, first in list_fastest(model, system, **options):
        time = first["time"] if first else None
        rate = row["tokens_per_pe_second"] or 0.0
        most = max(most, rate)
        reached = rate / most if time else None
        waits = {n: s for n, s in time["terms"].items() if n not in WORK} if time else {}
        rows.append(
            {
                **row,
                "efficiency": reached,
                "efficient": reached is not None and reached >= efficiency,
                "binds": max(waits, key=waits.__getitem__) if time else None,
                "share": max(waits.values()) / time["iteration_time"] if time else None,
            }
        )
    return rows


def list_layout_provisions(
    model: str,
    deadline: float | str,
    tokens: float | str,
    *,
    system: str = "dgx-h100",
    **options: Any,
) -> list[LayoutProvisionRow]:
    """A row for 1, 2, 4 ... PEs with the fastest layout, until one meets the deadline.

    deadline: seconds, or a text with a unit, such as "60 d". tokens: to train on. options: as in
    `fit`. InputError: a deadline not above 0, and what `fit` refuses.
    """
    seconds = parse_duration(deadline, "deadline", "60 d")
    rows: list[LayoutProvisionRow] = []
    for row, first in list_fastest(model, system, tokens=tokens, **options):
        time = first["time"] if first else None
        train_time = time["train_time"] if time else None
        rows.append(
            {
                **row,
                "train_time": train_time,
                "pe_hours": time["pe_hours"] if time else None,
                "cost": time["cost"] if time else None,
                "meets": train_time is not None and train_time <= seconds,
                "holds": _find_odds(time, train_time, seconds) if time and train_time else None,
            }
        )
        # Counts ascend, so this one is the fewest.
        if rows[-1]["meets"]:
            break
    return rows


def list_layout_fronts(
    model: str,
    pe: Sequence[int] | None = None,
    *,
    against: Against = "memory",
    objective: FrontGoal = "epoch_time",
    system: str = "dgx-h100",
    **options: Any,
) -> list[LayoutFrontRow]:
    """Layouts that no other one beats in two quantities, the fastest first, as `pareto` lists them.

    pe: numbers of PEs; None: 1, 2, 4 ... and all of the system. objective: epoch_time is the time
    of a token, pe_hours that of a PE. options: as in `fit`. InputError: train_time, costs, which
    are PE-hours on one system, twice PE-hours, and what `fit` refuses.
    """
    if objective not in ("epoch_time", "pe_hours"):
        known = ("epoch_time", "pe_hours")
        raise InputError.unknown("objective of layouts", objective, known, where="objective")
    costs = ("memory", "pe", "pe-hours")[: 3 if objective == "epoch_time" else 2]
    if against not in costs:
        raise InputError.unknown("cost of layouts", against, costs, where="against")
    rows: list[LayoutFrontRow] = []
    points: list[tuple[float, float]] = []
    for row, first in list_fastest(model, system, pe, front=against == "memory", **options):
        if first is None or first["time"] is None:
            continue
        # Seconds of a token: those of one PE go as PE-hours do, those of all PEs as the time.
        alone, all_of_them = (
            1 / first["time"][name] for name in ("tokens_per_pe_second", "tokens_per_second")
        )
        cost = {"memory": first["memory"], "pe": row["pe"], "pe-hours": alone}[against]
        points.append((all_of_them if objective == "epoch_time" else alone, cost))
        rows.append({**row, "memory": first["memory"]})
    # The shape also holds without any point.
    table = np.array(points).reshape(-1, 2)
    columns = {"time": table[:, 0], "cost": table[:, 1], "row": np.arange(len(rows))}
    return [rows[number] for number in merge_fronts(None, columns)["row"].tolist()]


def list_fastest(
    model: str,
    system: str,
    pes: Iterable[int] | None = None,
    *,
    front: bool = False,
    **options: Any,
) -> Iterator[tuple[FastestLayout, LayoutRow | None]]:
    """The fastest layout of each number of PEs, or its front; None: none fits.

    pes: None: 1, 2, 4 ... and all of the system. options: as in `fit`.
    """
    most = find("system", system, Path()).most_pes
    # All PEs of the system, too, which may be no power of two.
    for pe in pes or sorted({most, *(1 << bit for bit in range(most.bit_length()))}):
        # A front needs every layout, other questions the fastest one.
        number = None if front else 1
        answer = fit(model, pe, system=system, by="time", most=number, front=front, **options)
        # What the software does not run is no answer, however much fits of it.
        runs = [row for row in answer["layouts"] if UNSUPPORTED not in row["remarks"]]
        reason = UNSUPPORTED if answer["layouts"] else answer["losers"][0]["reason"]
        layouts: Sequence[LayoutRow | None] = runs or [None]
        for row in layouts:
            time = row["time"] if row else None
            yield (
                {
                    "model": answer["model"],
                    "system": answer["system"],
                    "pe": answer["pe"],
                    "global_batch": answer["global_batch"],
                    "layout": row["layout"] if row else None,
                    "remarks": row["remarks"] if row else [],
                    "iteration_time": time["iteration_time"] if time else None,
                    "tokens_per_pe_second": time["tokens_per_pe_second"] if time else None,
                    "mfu": time["mfu"] if time else None,
                    "reason": None if row else reason,
                },
                row,
            )


def _find_odds(time: TimeParts, train_time: float, deadline: float) -> float:
    """Probability that the deadline holds, from the interval of the time."""
    wide = log(time["iteration_time_p90"] / time["iteration_time_p10"])
    spread = wide / (PERCENTILES[90] - PERCENTILES[10])
    return find_odds(log(deadline / train_time) / spread)


# By command, with --sequence.
QUESTIONS: Mapping[str, Callable[..., Sequence[Mapping[str, Any]]]] = {
    "limits": list_layout_limits,
    "pareto": list_layout_fronts,
    "provision": list_layout_provisions,
}
