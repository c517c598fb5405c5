"""Values as people read them, columns of values, and the sentence that sums up a configuration."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple, TypeGuard

from rich.cells import cell_len

from paradl.grids.entries.parameters import PARAMETERS
from paradl.grids.reading.units import TIMES, find_prefix, format_quantity
from paradl.kernels.names.layout_terms import EVERY_TERM
from paradl.sweep.answers.numbers import read_range
from paradl.sweep.answers.types.prediction import Prediction
from paradl.sweep.answers.types.questions import RankingRow
from paradl.sweep.answers.types.schemas import ANSWERS, list_answer_fields
from paradl.sweep.text.data import Row
from paradl.sweep.text.visible import escape_invisible

DIGITS = 3  # of numbers with an interval
INTERVAL = "80 % interval"  # the header of its column
CHANCE = "P(deadline met)"
PROSE = 20  # characters; text of several words wraps, but to no less than this
# Percentiles that are counts; those of all other intervals are seconds.
COUNTS = ("intervals.epochs",)
PERCENT = ("mfu", "hfu", "bubble_share")
FITS = "fits"  # a probability

# Units of fields inside an answer: rows of formulas, intervals, parameters of `explain`.
INSIDE = {
    **dict.fromkeys(("seconds_per_epoch", *EVERY_TERM), "s/epoch"),
    **dict.fromkeys(("seconds_per_iteration", "p10", "p50", "p90"), "s"),
    **dict.fromkeys(("measured", "predicted"), "s"),  # times of runs
    "gradient_delta": "B",
    **dict.fromkeys(("group_latency", "replica_latency", "halo_latency"), "s"),
    **dict.fromkeys(("group_bandwidth", "replica_bandwidth", "halo_bandwidth"), "B/s"),
}


def _list_units(scaled: bool) -> dict[str, str]:
    """Return the units of answers' fields by name; units in words are for schemas only."""
    facts = (
        (name, field.fact)
        for answer in ANSWERS.values()
        for name, field in list_answer_fields(answer).items()
    )
    return {
        name: fact.unit
        for name, fact in facts
        if (fact.scaled or fact.unit in TIMES) == scaled
        and fact.unit != "1"
        and " " not in fact.unit
    }


# Written in a column's header, and after a value that stands alone.
UNITS = _list_units(scaled=False)
# Written with an SI prefix: in the header, or in each cell where no prefix suits all values.
PREFIXED = (
    {row.name: row.unit for row in PARAMETERS.values() if row.unit != "1"}
    | _list_units(scaled=True)
    | INSIDE
)


class Ranged(NamedTuple):
    """A number and the ends of its 80 % interval, which are None where there is none."""

    value: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Column:
    """A column of a table: key, one text per row, unit in brackets, and its alignment."""

    key: str
    cells: tuple[str, ...]
    unit: str = ""
    is_right: bool = False

    def write_head(self, narrow: bool) -> str:
        """Return the header, its unit below it; narrow: broken where all cells are shorter."""
        broken = narrow and cell_len(self.key) > self.width
        name = "\n".join(self.key.replace("_", "_\n").rsplit(" ", 1)) if broken else self.key
        return f"{name}\n{self.unit}" if self.unit else name

    @cached_property
    def width(self) -> int:
        """Width of the widest cell [characters]."""
        return max(map(measure_text, self.cells), default=0)

    @cached_property
    def least(self) -> int:
        """Smallest usable width [characters]; only prose can wrap."""
        if INTERVAL in self.unit:
            return self.width
        words = max((cell_len(word) for cell in self.cells for word in cell.split()), default=0)
        return min(self.width, max(PROSE, words))


def measure_text(text: str) -> int:
    """Return the width of a text's widest line [characters]."""
    return max(map(cell_len, text.split("\n")))


def make_column(key: str, rows: Sequence[Row]) -> Column:
    """Make a column; its header has the unit where one prefix suits all of its numbers."""
    # Rows of several kinds may lack a column: its cell is a dash.
    values = [row.get(key) for row in rows]
    if key == FITS:
        values = [format_chance(value) if _is_number(value) else value for value in values]
    singles = (value.value if isinstance(value, Ranged) else value for value in values)
    numbers = [*filter(_is_number, singles)]
    unit = PREFIXED.get(key)
    size, shown = _choose_prefix(numbers, unit) if unit else (1.0, UNITS.get(key, ""))
    in_cells = None if size else unit
    heads = [f"[{shown}]"] if shown and numbers else []
    ranged = any(isinstance(value, Ranged) and value.low is not None for value in values)
    heads += [INTERVAL] if ranged else []
    return Column(
        escape_invisible(key),
        tuple(_format_lines(value, size or 1.0, in_cells) for value in values),
        "\n".join(heads),
        # A column of dashes and a few numbers is still one of numbers.
        bool(numbers),
    )


def _choose_prefix(numbers: Sequence[float], unit: str) -> tuple[float | None, str]:
    """Choose size and unit for all numbers of a column; None: they are too far apart."""
    sizes = [abs(number) for number in numbers if number]
    # Beyond a factor of 1e4, four digits would show the smallest as 0.
    if not sizes or not max(sizes) < 1e4 * min(sizes):
        return None, ""
    if unit not in TIMES:
        return find_prefix(max(sizes), unit)
    # Short times are read first: 20 s beside 20 min are no 0.33 min; 0.9 s beside 15 min is 0.9 s.
    least = min(sizes)
    return find_prefix(min(10 * least, 1) if least < 1 and max(sizes) > 100 else least, unit)


def _is_number(value: object) -> TypeGuard[float]:
    """Return whether a value is a number, which neither a bool nor NaN is here."""
    return isinstance(value, int | float) and not isinstance(value, bool) and value == value


def _format_lines(value: object, size: float, unit: str | None) -> str:
    """Format a cell in units of a size; a tuple has one line per item."""
    if isinstance(value, Ranged):
        return format_ranged(value, unit) if unit else _format_ends(value, size, "")
    lines = value if isinstance(value, tuple) else (value,)
    scaled = (line / size if _is_number(line) and size != 1 else line for line in lines)
    return "\n".join(escape_invisible(format_cell(line, unit)) for line in scaled)


def format_ranged(ranged: Ranged, unit: str) -> str:
    """Format a number with its unit, and its interval in the same unit."""
    if ranged.value is None:
        return "-"
    size, whole = find_prefix(abs(ranged.value), unit)
    return _format_ends(ranged, size, f" {whole}")


def _format_ends(ranged: Ranged, size: float, unit: str) -> str:
    """Format a number and its interval, with three digits: the fourth is within it."""
    if ranged.value is None:
        return "-"
    if ranged.low is None or ranged.high is None:
        return f"{format_cell(ranged.value / size)}{unit}"
    value, low, high = (format_digits(end / size, DIGITS) for end in ranged if end is not None)
    return f"{value}{unit} ({low} to {high})"


def format_cell(value: object, unit: str | None = None) -> str:
    """Format a value for people, with its unit if one is given."""
    if value is None or value != value:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if unit is not None and isinstance(value, int | float):
        return format_quantity(value, unit)
    if isinstance(value, float) and not value.is_integer():
        return format_digits(value)
    if isinstance(value, int | float):
        # Larger ones are not exact to the last digit: float64 counts to 2**53, 9e15.
        return f"{value:,.0f}" if abs(value) < 1e15 else f"{value:.4g}"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def format_digits(value: float, digits: int = 4) -> str:
    """Format a number with some digits; up to a billion without an exponent."""
    text = f"{value:.{digits}g}"
    # Of the rounded number: 9999.6 has four digits as 10,000, and `g` writes 1e+04.
    whole = "e" in text or "." not in text
    return f"{float(text):,.0f}" if whole and 1e3 <= abs(float(text)) < 1e9 else text


def format_alone(key: str, value: object) -> str:
    """Format a value outside of columns, with the unit of its key or of its key's prefix."""
    whole, _, name = key.rpartition(".")
    # Some terms share their name with a part of the memory, or with a share.
    of_another = name in EVERY_TERM and whole not in ("", "terms", "exchanges")
    if name in PERCENT and _is_number(value):
        return format_percent(value)
    if name == FITS and _is_number(value):
        return format_chance(value)
    unit = PREFIXED.get(whole, None if of_another else PREFIXED.get(name))
    if isinstance(value, Ranged):
        return format_ranged(value, unit or "")
    text = format_cell(value, None if whole in COUNTS else unit)
    if name in UNITS and _is_number(value):
        text += f" {UNITS[name]}"
    # Hidden communication is listed among terms that add up to the time, and is not part of it.
    is_hidden = whole == "terms" and EVERY_TERM[name].part == "hidden"
    return f"{text} (no part of the sum)" if is_hidden else text


def format_value(parameter: str, value: float | None) -> str:
    """Format a parameter's value with its unit."""
    if value is None:
        return "-"
    row = PARAMETERS[parameter]
    if row.unit == "1":
        return f"{value:,.0f}" if row.whole else f"{value:.4g}"
    return format_quantity(value, row.unit)


def format_coordinate(axis: str, value: object) -> str:
    """Format a value along an axis: a parameter's with its unit, names and row numbers as text."""
    if axis in PARAMETERS and isinstance(value, int | float):
        return format_value(axis, value)
    return str(value)


def format_percent(value: float | None) -> str:
    """Format a share: 0.687 is 68.7%."""
    return "-" if value is None else f"{value:.1%}"


def format_chance(chance: float) -> str:
    """Format a probability: of a model that may be wrong, neither 0 % nor 100 % is certain."""
    return f"{chance:.0%}" if 0.01 <= chance < 0.995 else "over 99%" if chance > 0.5 else "under 1%"


def format_odds(share: float | None) -> str | None:
    """Format the share of draws in which something holds."""
    if share is None:
        return None
    if 0 < share < 1:
        return f"{share:.0%}"
    # There are 32 draws: all or none of them leaves 1 in 32 open.
    return "over 97%" if share else "under 3%"


def format_interval(low: float | None, high: float | None) -> str | None:
    """Format the ends of an 80 % interval; None if they are unknown."""
    if low is None or high is None:
        return None
    # Both alike: a time that happens to be whole has no more digits than the other end.
    return " to ".join(
        f"{end:,}" if isinstance(end, int) else format_digits(end) for end in (low, high)
    )


Time = Literal["iteration_time", "epoch_time", "train_time"]


def find_range(row: RankingRow, time: Time = "iteration_time") -> Ranged:
    """Return a time of a row of `best` with its 80 % interval.

    Rows state the interval of one time; those of others have the same ratios to it.
    """
    name: Time = "train_time" if row.get("train_time_p10") is not None else "epoch_time"
    value, of, (low, high) = row.get(time), row.get(name), read_range(row, name)
    if value is None or of is None or low is None or high is None:
        return Ranged(value, None, None)
    return Ranged(value, low * value / of, high * value / of)


def write_memory(memory: float | None, capacity: float | None, fits: float | None = None) -> str:
    """Write the memory of the fullest PE, what a PE has, and the chance that this suffices."""
    sizes = ("-" if n is None else format_digits(n / 1e9, DIGITS) for n in (memory, capacity))
    return f"{' of '.join(sizes)} GB" + (
        "" if fits is None else f", fits with {format_chance(fits)}"
    )


def write_summary(row: RankingRow | Prediction, iteration: Ranged) -> str:
    """Write what a row of `best`, or a prediction, reaches. iteration: its time."""
    tokens = row.get("tokens_per_pe_second")
    rate = row["samples_per_pe_second"] if tokens is None else tokens
    word = "samples" if tokens is None else "tokens"
    trained = row.get("train_time")
    whole = [] if trained is None else [f"{format_quantity(trained, 's', 3)} in all"]
    return ", ".join(
        [
            f"{format_ranged(iteration, 's')} per iteration",
            *whole,
            f"{'-' if rate is None else format_digits(rate)} {word}/s per PE",
            f"MFU {format_percent(row['mfu'])}",
            write_memory(row["memory"], row["memory_capacity"], row["fits"]),
        ]
    )
