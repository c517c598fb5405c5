"""Quantities of machines and specs, and how they are read and written.

A `Parameter` is a row of grids/entries/parameters.py; a `Scale` knows the usual size of a quantity,
a `Prior` the distribution of a parameter that was not measured.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Literal

from paradl.grids.reading.errors import InputError, shorten
from paradl.grids.reading.units import EXAMPLES, has_unit, parse_quantity
from paradl.kernels.options import OracleName

Unit = Literal["B/s", "s", "B", "FLOP/s", "W", "1"]
Owner = Literal["device", "network", "software", "run"]

# The smallest positive value, far below anything physical.
ABOVE_ZERO = 1e-30
# float64 is exact beyond this, and no machine or data set is larger.
MOST = 2.0**40


@dataclass(frozen=True)
class Scale:
    """The usual range of a quantity, `low` to `high`; a number outside it lacks its unit.

    `inter_bandwidth: 25` means 25 GB/s but would be read as 25 B/s; "25 B/s" is taken as written.
    """

    noun: str
    unit: Unit
    low: float
    high: float
    customary: str  # the unit that people think in

    def read(self, value: object, where: str = "") -> float:
        """Parse to SI units; without a unit the value must be of the usual size, or 0."""
        number = parse_quantity(value, self.unit, where)
        if number > 0 and not self.low <= number <= self.high and not has_unit(value):
            # A small number probably lacks the customary unit; a large one could mean anything.
            meant = f"{number:g} {self.customary}" if number < 1e5 else EXAMPLES[self.unit]
            raise InputError(
                f"{number:g} {self.unit} is not a plausible {self.noun}",
                where=where,
                advice=f"write its unit, such as {meant!r}",
                page="wrong-value",
            )
        return number

    def __get_pydantic_json_schema__(self, _core: object, _handler: object) -> dict[str, object]:
        return {"type": ["number", "string"], "unit": self.unit}

    def write(self, number: float) -> float | str:
        """Write a number so that `read` accepts it: with its unit if of unusual size."""
        usual = number <= 0 or self.low <= number <= self.high
        return number if usual else f"{number!r} {self.unit}"


LATENCY = Scale("latency", "s", 0, 1, "us")  # [9 us to 3 ms]; only the high end reveals a slip
BANDWIDTH = Scale("bandwidth", "B/s", 1e6, 1e18, "GB/s")  # [12.5 GB/s to 3.35 TB/s]
SPEED = Scale("speed", "FLOP/s", 1e9, 1e21, "TFLOP/s")  # [15.7 to 67 TFLOP/s]
CAPACITY = Scale("memory", "B", 1e6, 1e18, "GB")  # [16 to 80 GB]
POWER = Scale("power", "W", 1, 1e5, "W")  # [150 to 1,400 W]


@dataclass(frozen=True)
class Prior:
    """The distribution of a parameter before any run of a machine, by precision.

    spread: standard deviation of the logarithm; 0.7 is a factor of two.
    """

    median: Mapping[str, float]
    spread: Mapping[str, float]
    source: str


@dataclass(frozen=True)
class Parameter:
    """A number with its unit and bounds.

    whole: a count. scale: its usual range, for values without a unit. default: the value if neither
    system nor strategy states one. layered: the layers' times or division depend on it, so that
    layers are reduced again for each value. free: a spec may fix it; otherwise it is an axis of
    every cube. chosen: set by users for each training; otherwise it is a property, such as a
    bandwidth. oracle: the only one that has it; None: both. prior: for machines that were not
    measured. owner: what states it. words: names of values; names of bits may be joined by +.
    """

    name: str
    unit: Unit
    meaning: str
    low: float
    high: float = math.inf
    whole: bool = False
    scale: Scale | None = None
    default: float | None = None
    layered: bool = False
    free: bool = True
    chosen: bool = False
    oracle: OracleName | None = None
    prior: Prior | None = None
    owner: Owner = "run"
    words: Mapping[str, int] = field(default_factory=dict)

    def read(self, value: object, where: str = "") -> float:
        """Parse a value to SI units and check its bounds."""
        if self.words:
            value = self._read_words(value, where)
        unit = "count" if self.whole else self.unit
        read = self.scale.read if self.scale else partial(parse_quantity, unit=unit)
        number = read(value, where=where)
        if not self.low <= number <= self.high:
            named = "" if self.unit == "1" else f" {self.unit}"
            low = "more than 0" if self.low == ABOVE_ZERO else f"at least {_write_bound(self.low)}"
            high = "" if math.isinf(self.high) else f" and at most {_write_bound(self.high)}"
            raise InputError(
                f"expected {low}{high}{named}, got {shorten(value)}",
                where=where,
                advice=f"{self.name} is {self.meaning}",
            )
        return number

    def write(self, number: float) -> float | str:
        """Write a value in SI units so that `read` accepts it."""
        if self.words:
            return self._write_words(int(number))
        return self.scale.write(number) if self.scale else number

    def _read_words(self, value: object, where: str) -> object:
        """Number of a text's words; other values as they are. InputError: an unknown word."""
        if isinstance(value, bool):  # YAML's on and off
            value = "on" if value else "off"
        if not isinstance(value, str) or value.strip().lstrip("-").isdecimal():
            return value
        words = [word.strip() for word in re.split("[+,]", value)]
        for word in words:
            if word not in self.words:
                raise InputError.unknown(self.name, word, self.words, where=where)
        return sum(self.words[word] for word in {*words})

    def _write_words(self, number: int) -> float | str:
        """Words of a number; the number itself if it has none."""
        single = [word for word, value in self.words.items() if value == number]
        bits = [word for word, value in self.words.items() if value > 0 and number & value]
        is_whole = bool(bits) and sum(self.words[word] for word in bits) == number
        return single[0] if single else "+".join(bits) if is_whole else number


def _write_bound(value: float) -> str:
    """Write a bound; whole ones with all digits, such as 1,099,511,627,776 PEs."""
    return f"{value:,.0f}" if float(value).is_integer() and 1e3 <= value < 2**54 else f"{value:g}"


# Times that a clock can measure; anything else is a slip, and its sums might overflow.
SECONDS = Parameter("this", "s", "a measured time", 1e-12, 1e9)
