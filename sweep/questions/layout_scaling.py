"""Layouts on 1, 2, 4 ... PEs: how far a transformer scales, and the fewest PEs for a deadline.

Both look at the fastest layout of each number of PEs.
"""

from collections.abc import Iterator
from math import log
from pathlib import Path

from scipy.special import ndtr, ndtri

from grids.library import find
from grids.reading.errors import InputError
from grids.reading.units import parse_quantity
from sweep.answers.types.fitting import (
    FastestLayout,
    LayoutLimitRow,
    LayoutProvisionRow,
    TimeParts,
)
from sweep.questions.fit import fit

# Terms that a single PE has, too: work, and not what scaling costs.
WORK = ("products", "attention", "elementwise", "logits")


def list_layout_limits(
    model: str,
    efficiency: float = 0.5,
    *,
    system: str = "dgx-h100",
    global_batch: int | None = None,
    length: int | None = None,
) -> list[LayoutLimitRow]:
    """A row for 1, 2, 4 ... PEs of a system with the fastest layout of each.

    efficiency: tokens a second of a PE over the most that any fewer PEs reach, of which a number of
    PEs is efficient. Others as in `fit`. InputError: an efficiency beyond 0 to 1, and what `fit`
    refuses.
    """
    if not 0 < efficiency <= 1:
        raise InputError(f"expected above 0 to 1, got {efficiency:g}", where="efficiency")
    rows: list[LayoutLimitRow] = []
    most = 0.0  # tokens a second of a PE that fewer PEs reach
    for row, time in list_fastest(model, system, global_batch, length):
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
    tokens: float,
    *,
    system: str = "dgx-h100",
    global_batch: int | None = None,
    length: int | None = None,
    price: float | None = None,
) -> list[LayoutProvisionRow]:
    """A row for 1, 2, 4 ... PEs with the fastest layout, until one meets the deadline.

    deadline: seconds, or a text with a unit, such as "60 d". tokens: to train on. Others as in
    `fit`. InputError: a deadline not above 0, and what `fit` refuses.
    """
    seconds = parse_quantity(deadline, "s", "deadline", example="60 d")
    if not seconds > 0:
        raise InputError(f"expected more than 0 s, got {deadline}", where="deadline")
    rows: list[LayoutProvisionRow] = []
    for row, time in list_fastest(model, system, global_batch, length, tokens, price):
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
        if rows[-1]["meets"]:
            break
    return rows


def list_fastest(
    model: str,
    system: str,
    global_batch: int | None,
    length: int | None,
    tokens: float | None = None,
    price: float | None = None,
) -> Iterator[tuple[FastestLayout, TimeParts | None]]:
    """The fastest layout of 1, 2, 4 ... and all PEs of a system, and its time; None: none fits."""
    most = find("system", system, Path()).most_pes
    for pe in sorted({most, *(1 << bit for bit in range(most.bit_length()))}):
        answer = fit(
            *(model, pe),
            system=system,
            global_batch=global_batch,
            length=length,
            by="time",
            tokens=tokens,
            price=price,
            most=1,
        )
        first = next(iter(answer["layouts"]), None)
        time = first["time"] if first else None
        yield (
            {
                "model": answer["model"],
                "system": answer["system"],
                "pe": answer["pe"],
                "global_batch": answer["global_batch"],
                "layout": first["layout"] if first else None,
                "iteration_time": time["iteration_time"] if time else None,
                "tokens_per_pe_second": time["tokens_per_pe_second"] if time else None,
                "mfu": time["mfu"] if time else None,
                "reason": None if first else answer["losers"][0]["reason"],
            },
            time,
        )


def _find_odds(time: TimeParts, train_time: float, deadline: float) -> float:
    """The probability that the deadline holds, of the interval that times have."""
    deviation = log(time["iteration_time_p90"] / time["iteration_time_p10"]) / (2 * ndtri(0.9))
    return float(ndtr(log(deadline / train_time) / deviation))
