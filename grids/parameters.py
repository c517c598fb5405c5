"""Oracle parameters: every number that a spec may fix or make an axis of the cube.

One table serves axes, fixed values, command-line settings and the cube's attributes. A parameter
that is not given keeps the system's (or the strategy's) own value.
"""

import math
from dataclasses import dataclass
from typing import Literal

from grids.errors import InputError
from grids.units import parse

Unit = Literal["B/s", "s", "B", "FLOP/s", "1"]

# The smallest value of what must be positive, far below anything physical.
ABOVE_ZERO = 1e-30
# float64 counts exactly to here and beyond, and no machine or data set is larger.
MOST = 2.0**40


@dataclass(frozen=True)
class Parameter:
    """A number with its unit and bounds; `whole` ones are counts."""

    name: str
    unit: Unit
    meaning: str
    low: float
    high: float = math.inf
    whole: bool = False

    def read(self, value: object, where: str = "") -> float:
        """The value in SI units, checked against the bounds."""
        number = parse(value, self.unit, where)
        if self.whole and number != round(number):
            raise InputError(
                f"expected a whole number, got {value!r}",
                where=where,
                advice=f"{self.name} is {self.meaning}",
            )
        if not self.low <= number <= self.high:
            raise InputError(
                f"expected {self._bounds()}, got {value!r}",
                where=where,
                advice=f"{self.name} is {self.meaning}",
            )
        return number

    def _bounds(self) -> str:
        unit = "" if self.unit == "1" else f" {self.unit}"
        low = "more than 0" if self.low == ABOVE_ZERO else f"at least {self.low:g}"
        high = "" if math.isinf(self.high) else f" and at most {self.high:g}"
        return f"{low}{high}{unit}"


_ALL = (
    Parameter("pe", "1", "the number of processing elements (PEs)", 1, MOST, whole=True),
    Parameter(
        "batch",
        "1",
        "samples a replica under weak scaling, of the whole mini-batch under strong scaling",
        1,
        MOST,
        whole=True,
    ),
    Parameter("intra_bandwidth", "B/s", "bandwidth inside a node", ABOVE_ZERO),
    Parameter("inter_bandwidth", "B/s", "bandwidth of every level beyond a node", ABOVE_ZERO),
    Parameter("intra_latency", "s", "start-up of a message inside a node", 0),
    Parameter("inter_latency", "s", "start-up of a message beyond a node", 0),
    Parameter("staging_bandwidth", "B/s", "bandwidth through host memory (halo)", ABOVE_ZERO),
    Parameter("staging_latency", "s", "start-up through host memory (halo)", 0),
    Parameter("peak_flops", "FLOP/s", "peak FLOP/s of a PE", ABOVE_ZERO),
    Parameter("efficiency", "1", "the part of the peak FLOP/s that layers reach", ABOVE_ZERO, 1),
    Parameter("memory_bandwidth", "B/s", "memory bandwidth of a PE", ABOVE_ZERO),
    Parameter("memory_capacity", "B", "memory of a PE", ABOVE_ZERO),
    Parameter("delta", "B", "bytes an item", ABOVE_ZERO, 1024),
    Parameter("gamma", "1", "the part of the memory that buffer reuse leaves", ABOVE_ZERO, 1),
    Parameter("phi", "1", "contention of the gradient exchange", 1),
    Parameter("phi_halo", "1", "contention of the halo exchange", 1),
    Parameter("phi_gather", "1", "contention of the gather where a spatial split ends", 1),
    Parameter("segments", "1", "segments (micro-batches) of a pipeline", 1, MOST, whole=True),
    Parameter("group", "1", "PEs of a group (a replica) in hybrids", 1, MOST, whole=True),
)

PARAMETERS = {parameter.name: parameter for parameter in _ALL}

# Of what neither system nor strategy says anything.
DEFAULTS = {
    "delta": 4.0,  # single precision
    "gamma": 1.0,  # no buffer is reused
    "segments": 4.0,
}

# The axes along which every layer is reduced anew: what its time depends on, and how it is split.
LAYERED = ("pe", "group", "peak_flops", "efficiency", "memory_bandwidth", "delta")
