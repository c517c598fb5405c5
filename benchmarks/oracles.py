"""The two oracles: blocks of the machine's, as a part of the rate of Table III's."""

import numpy as np

from benchmarks import spaces
from benchmarks.effort import Effort
from benchmarks.kernel import Block
from benchmarks.report import Report, Row, at_least
from benchmarks.timing import interleaved

# Of Table III's rate: what a machine as it is may cost.
SHARE = 0.6


def measure(effort: Effort) -> Report:
    """Each strategy's largest block, variables and summary, on one core."""
    rows = []
    for kind, make in (("three axes", spaces.wide), ("two axes", spaces.dense)):
        paper, machine = (make(effort.blocks[-1], spaces.EIGHT, each) for each in spaces.ORACLES)
        for position, name in enumerate(spaces.EIGHT):
            timings = interleaved(
                {"paper": Block(paper, position), "machine": Block(machine, position)},
                effort.short_rounds,
            )
            share = timings["machine"].rate_against(timings["paper"])
            rate = np.prod(machine.shape[4:]) / timings["machine"].median
            goals = (at_least(share, SHARE),)
            rows.append(Row(f"{name}, {kind}", rate, "cells/s", share, "oracle: paper", goals))
    return Report("oracles", "blocks of the machine oracle, against Table III", tuple(rows))
