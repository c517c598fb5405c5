"""Seconds of a step from rates: what a step has of steps, samples or tokens, over their rate."""

import re

from paradl.grids.reading.errors import InputError, shorten
from paradl.grids.reading.units import parse_quantity

Row = dict[str, str]  # fields by our columns, as text

TOKENS = "tokens_per_pe"  # of a step
STEPS, SAMPLES, OF_PE = "steps_per_second", "samples_per_second", "tokens_per_second_per_pe"
RATES = (STEPS, SAMPLES, "tokens_per_second", OF_PE)
SPEEDS = ("total_s", *RATES)  # a row with one of these is a step
# Columns of logs alone: tokens of a step, batch and PEs of a configuration, a mean of all steps.
STEP_TOKENS, STATED_BATCH, STATED_PES, MEAN = "step_tokens", "stated_batch", "stated_p", "mean"
COUNTS = (STEP_TOKENS, TOKENS, "global_batch", "samples_per_replica", "replicas", "p")
LENGTH = re.compile(r"\blength=(\d+)")
ROUNDED = 0.0006  # steps per second: half of three decimals, and a little for samples
MOST_DOUBT = 0.05  # samples per replica


def add_seconds(row: Row, where: str) -> Row:
    """Return the row with the global batch that a log tells, and seconds from a rate.

    InputError: a rate of 0, or what a step has is not known.
    """
    numbers = {
        name: parse_quantity(row[name], "1", f"{where}: {name}") if row.get(name) else 0.0
        for name in (*RATES, *COUNTS)
    }
    length = int(match[1]) if (match := LENGTH.search(row.get("dataset", ""))) else 0
    replicas, pes = numbers["replicas"], numbers["p"]
    batch = numbers["global_batch"] or replicas * numbers["samples_per_replica"]
    if not batch and (stated := row.get(STATED_BATCH) or _infer_batch(numbers, length)):
        row, batch = row | {"global_batch": stated}, float(stated)
    name = next((name for name in SPEEDS if row.get(name)), "total_s")
    if name == "total_s":
        return row
    if not numbers[name] > 0:
        raise InputError(f"{name}: expected more than 0, got {shorten(row[name])}", where=where)
    tokens = numbers[TOKENS] * pes or batch * length
    of_pe = numbers[TOKENS] or (pes and tokens / pes)
    step = dict(zip(RATES, (1.0, batch, tokens, of_pe), strict=True))[name]
    if not step:
        advice = "write global_batch, or samples_per_replica and replicas, into the mapping file"
        advice += f"; and the data set's length, or {TOKENS}" if "tokens" in name else ""
        raise InputError(f"{name}: what a step has is not known", where=where, advice=advice)
    return row | {"total_s": repr(step / numbers[name])}


def _infer_batch(numbers: dict[str, float], length: int) -> str:
    """Return the batch of a log's tokens of a step, or of its two rates, if whole per replica."""
    replicas, rate = numbers["replicas"] or 1.0, numbers[STEPS]
    samples, doubt = (numbers[SAMPLES] / rate, ROUNDED / rate) if rate else (0.0, 0.0)
    if length and numbers[STEP_TOKENS]:
        samples, doubt = numbers[STEP_TOKENS] / length, 0.0
    each = samples / replicas
    is_whole = abs(each - round(each)) <= doubt * each <= MOST_DOUBT
    return f"{round(each) * replicas:.0f}" if each and is_whole else ""
