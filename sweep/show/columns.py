"""Values as people read them, and columns of values: four digits, the unit in the header."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeGuard

from rich.cells import cell_len

from paradl.grids.entries.parameters import PARAMETERS
from paradl.grids.reading.units import PREFIXES, format_quantity
from paradl.kernels.names.layout_terms import EVERY_TERM
from paradl.kernels.names.terms import TERMS
from paradl.sweep.answers.types.schemas import ANSWERS, list_answer_fields
from paradl.sweep.show.visible import escape_invisible

INTERVAL = "80 % interval"  # the header of its column
PROSE = 20  # characters; text of several words wraps, but to no less than this
# Percentiles that are counts; those of all other intervals are seconds.
COUNTS = ("intervals.epochs",)

# Units of fields inside an answer: rows of formulas, intervals, parameters of `explain`.
INSIDE = {"seconds_per_epoch": "s/epoch", **dict.fromkeys(EVERY_TERM, "s/epoch")}
INSIDE_SCALED = {
    "seconds_per_iteration": "s",
    "gradient_delta": "B",
    **dict.fromkeys(("p10", "p50", "p90"), "s"),
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
        if fact.scaled == scaled and fact.unit != "1" and " " not in fact.unit
    }


# Written in a column's header, and after a value that stands alone.
UNITS = _list_units(scaled=False) | INSIDE
# Written with an SI prefix: in the header, or in each cell where no prefix suits all values.
PREFIXED = (
    {row.name: row.unit for row in PARAMETERS.values() if row.unit != "1"}
    | _list_units(scaled=True)
    | INSIDE_SCALED
)


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
        words = max((cell_len(word) for cell in self.cells for word in cell.split()), default=0)
        return min(self.width, max(PROSE, words))


def measure_text(text: str) -> int:
    """Return the width of a text's widest line [characters]."""
    return max(map(cell_len, text.split("\n")))


def make_column(key: str, rows: Sequence[Mapping[str, Any]]) -> Column:
    """Make a column; its header has the unit where one prefix suits all of its numbers."""
    # Rows of several kinds may lack a column: its cell is a dash.
    values = [row.get(key) for row in rows]
    unit = PREFIXED.get(key)
    size, prefix = _choose_prefix(values) if unit else (None, "")
    if size is not None:
        values = [value / size if _is_number(value) else value for value in values]
    shown = UNITS.get(key, f"{prefix}{unit}" if size is not None else "")
    # A column of dashes and a few numbers is still one of numbers.
    is_number = any(map(_is_number, values))
    return Column(
        escape_invisible(key),
        tuple(_format_lines(value, unit if size is None else None) for value in values),
        f"[{shown}]" if shown and is_number else "",
        is_number,
    )


def _choose_prefix(values: Sequence[object]) -> tuple[float | None, str]:
    """Choose size and name of an SI prefix for all numbers; None: they are too far apart."""
    sizes = [abs(float(value)) for value in values if _is_number(value) and value]
    # Beyond a factor of 1e4, four digits would show the smallest as 0.
    if not sizes or not max(sizes) < 1e4 * min(sizes):
        return None, ""
    return next((prefix for prefix in PREFIXES if max(sizes) >= prefix[0]), PREFIXES[-1])


def _is_number(value: object) -> TypeGuard[float]:
    """Return whether a value is a number, which neither a bool nor NaN is here."""
    return isinstance(value, int | float) and not isinstance(value, bool) and value == value


def _format_lines(value: object, unit: str | None) -> str:
    """Format a cell; a tuple has one line per item."""
    lines = value if isinstance(value, tuple) else (value,)
    return "\n".join(escape_invisible(format_cell(line, unit)) for line in lines)


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


def format_digits(value: float) -> str:
    """Format a number with four digits; up to a billion without an exponent."""
    text = f"{value:.4g}"
    # Of the rounded number: 9999.6 has four digits as 10,000, and `g` writes 1e+04.
    return f"{float(text):,.0f}" if 1e4 <= abs(float(text)) < 1e9 else text


def format_alone(key: str, value: object) -> str:
    """Format a value outside of columns, with the unit of its key or of its key's prefix."""
    whole, _, name = key.rpartition(".")
    text = format_cell(value, None if whole in COUNTS else PREFIXED.get(whole, PREFIXED.get(name)))
    # Some terms share their name with a part of the memory.
    of_another = name in EVERY_TERM and whole not in ("", "terms", "exchanges")
    if name not in UNITS or of_another or not _is_number(value):
        return text
    # Hidden communication is listed among terms that add up to the time, and is not part of it.
    hidden = name in TERMS and TERMS[name].part == "hidden"
    return f"{text} {UNITS[name]}" + (" (no part of the sum)" if hidden else "")


def format_value(parameter: str, value: float | None) -> str:
    """Format a parameter's value with its unit."""
    if value is None:
        return "-"
    row = PARAMETERS[parameter]
    if row.unit == "1":
        return f"{value:,.0f}" if row.whole else f"{value:.4g}"
    return format_quantity(value, row.unit)


def format_coordinate(axis: str, value: Any) -> str:
    """Format a value along an axis: a parameter's with its unit, names and row numbers as text."""
    is_parameter = axis in PARAMETERS and isinstance(value, int | float)
    return format_value(axis, value) if is_parameter else str(value)


def format_duration(seconds: float, digits: int = 3) -> str:
    """Format a duration in seconds, minutes, hours or days, whichever planners would use."""
    # From two of a unit on: 90 min say more than 1.5 h.
    units = (("d", 86400.0), ("h", 3600.0), ("min", 60.0))
    unit, size = next((unit for unit in units if seconds >= 2 * unit[1]), ("s", 1.0))
    return f"{float(f'{seconds / size:.{digits}g}'):,g} {unit}"


def format_percent(value: float | None) -> str:
    """Format a share: 0.687 is 68.7%."""
    return "-" if value is None else f"{value:.1%}"


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
