"""Limits of layouts: how far a transformer scales at its fastest layout, and what it waits for."""

from pathlib import Path

from grids.library import find
from grids.reading.errors import InputError
from sweep.answers.types.fitting import FitAnswer, LayoutLimitRow
from sweep.questions.fit import fit
from sweep.questions.layout_provision import describe_fastest, list_counts


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
    most = 0.0
    for pe in list_counts(find("system", system, Path()).most_pes):
        answer = fit(model, pe, system=system, global_batch=global_batch, length=length, by="time")
        row = _describe(answer, most, efficiency)
        most = max(most, row["tokens_per_pe_second"] or 0)
        rows.append(row)
    return rows


def _describe(answer: FitAnswer, most: float, least: float) -> LayoutLimitRow:
    """The fastest layout; most: tokens a second of a PE that fewer PEs reach."""
    row, time = describe_fastest(answer)
    rate = row["tokens_per_pe_second"]
    reached = rate / max(most, rate) if rate else None
    waits = {n: s for n, s in time["terms"].items() if n not in WORK} if time else {}
    return {
        **row,
        "efficiency": reached,
        "efficient": reached is not None and reached >= least,
        "binds": max(waits, key=waits.__getitem__) if time else None,
        "share": max(waits.values()) / time["iteration_time"] if time else None,
    }


# Terms that a single PE has, too: work, and not what scaling costs.
WORK = ("products", "attention", "elementwise", "logits")
