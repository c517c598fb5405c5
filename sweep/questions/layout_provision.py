"""Provision of layouts: the fewest PEs, doubling, that train a transformer before a deadline."""

from math import log
from pathlib import Path

from scipy.special import ndtr, ndtri

from grids.library import find
from grids.reading.errors import InputError
from grids.reading.units import parse_quantity
from sweep.answers.types.fitting import FastestLayout, FitAnswer, LayoutProvisionRow, TimeParts
from sweep.questions.fit import fit


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
    for pe in list_counts(find("system", system, Path()).most_pes):
        answer = fit(
            model,
            pe,
            system=system,
            global_batch=global_batch,
            length=length,
            by="time",
            tokens=tokens,
            price=price,
        )
        rows.append(_describe(answer, seconds))
        if rows[-1]["meets"]:
            break
    return rows


def list_counts(most: int) -> list[int]:
    """1, 2, 4 ... and the most PEs that there are."""
    counts = [1 << bit for bit in range(most.bit_length())]
    return counts if counts[-1] == most else [*counts, most]


def describe_fastest(answer: FitAnswer) -> tuple[FastestLayout, TimeParts | None]:
    """The fastest layout of an answer by time, and its time; None where no layout fits."""
    first = next(iter(answer["layouts"]), None)
    time = first["time"] if first else None
    row: FastestLayout = {
        "model": answer["model"],
        "system": answer["system"],
        "pe": answer["pe"],
        "global_batch": answer["global_batch"],
        "layout": first["layout"] if first else None,
        "iteration_time": time["iteration_time"] if time else None,
        "tokens_per_pe_second": time["tokens_per_pe_second"] if time else None,
        "mfu": time["mfu"] if time else None,
        "reason": None if first else answer["losers"][0]["reason"],
    }
    return row, time


def _describe(answer: FitAnswer, deadline: float) -> LayoutProvisionRow:
    """The fastest layout, and how long it trains."""
    row, time = describe_fastest(answer)
    train_time = time["train_time"] if time else None
    return {
        **row,
        "train_time": train_time,
        "pe_hours": time["pe_hours"] if time else None,
        "cost": time["cost"] if time else None,
        "meets": train_time is not None and train_time <= deadline,
        "holds": None if not time or train_time is None else _find_odds(time, train_time, deadline),
    }


def _find_odds(time: TimeParts, train_time: float, deadline: float) -> float:
    """The probability that the deadline holds, of the interval that times have."""
    deviation = log(time["iteration_time_p90"] / time["iteration_time_p10"]) / (2 * ndtri(0.9))
    return float(ndtr(log(deadline / train_time) / deviation))
