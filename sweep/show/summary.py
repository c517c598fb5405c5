"""The sentence that says what a configuration reaches: time, rate, MFU, memory."""

from paradl.grids.reading.units import format_quantity
from paradl.sweep.show.columns import Ranged, format_digits, format_percent, format_ranged
from paradl.sweep.show.data import Row


def find_range(row: Row, time: str = "iteration_time") -> Ranged:
    """Return a time of a row of `best`, or of a prediction, with its 80 % interval.

    Rows state the interval of one time; those of others have the same ratios to it.
    """
    known = row.get("intervals") or {}
    if "iteration_time" in known:
        ends = known["iteration_time"]
        low, high, of = ends["p10"], ends["p90"], row["iteration_time"]
    else:
        name = "train_time" if row.get("train_time_p10") is not None else "epoch_time"
        low, high, of = row.get(f"{name}_p10"), row.get(f"{name}_p90"), row.get(name)
    value = row[time]
    if value is None or low is None or high is None:
        return Ranged(value, None, None)
    return Ranged(value, low * value / of, high * value / of)


def write_memory(row: Row) -> str:
    """Write the memory of the fullest PE beside what a PE has."""
    return f"{row['memory'] / 1e9:,.3g} of {row['memory_capacity'] / 1e9:,.3g} GB"


def write_summary(row: Row) -> str:
    """Write what a row of `best`, or a prediction, reaches; it has a time."""
    tokens = row.get("tokens_per_pe_second")
    rate = "samples_per_pe_second" if tokens is None else "tokens_per_pe_second"
    word = "samples" if tokens is None else "tokens"
    trained = row.get("train_time")
    whole = [] if trained is None else [f"{format_quantity(trained, 's', 3)} in all"]
    return ", ".join(
        [
            f"{format_ranged(find_range(row), 's')} an iteration",
            *whole,
            f"{format_digits(row[rate])} {word}/s a PE",
            f"MFU {format_percent(row['mfu'])}",
            write_memory(row),
        ]
    )
