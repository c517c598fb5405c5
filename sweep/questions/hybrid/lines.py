"""Speed-up of each contender over PE counts, in each draw.

SU = SU^M x SE x N x E(b) / E(b N)
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from grids.convergence.entry import Convergence
from kernels.names.arrays import Floats
from kernels.names.flags import FORBIDS, Limit
from sweep.questions.hybrid.contenders import Contender
from sweep.questions.hybrid.epochs import Draws, draw_epochs

if TYPE_CHECKING:
    from sweep.questions.hybrid.times import ContenderTimes


@dataclass(frozen=True)
class SpeedupLine:
    """Training of a contender on 1, 2 ... PEs [count].

    split: SU^M. efficiency [count]: SE. epochs [count]: infinite if the batch never converges.
    extrapolated [count]: whether the batch lies beyond the measured ones. limits [count]: flags.
    speedup [draw, count]: of the whole training, the expected one first; 0 where infeasible.
    """

    contender: Contender
    split: float
    efficiency: Floats
    epochs: Floats
    extrapolated: NDArray[np.bool_]
    limits: NDArray[np.uint16]
    speedup: Floats

    @property
    def most(self) -> int:
        """Largest PE count."""
        return len(self.limits)

    @property
    def expected(self) -> Floats:
        """Expected speed-ups [count]."""
        expected: Floats = self.speedup[0]
        return expected

    def find_forbidding(self) -> int:
        """Return flags that forbid any of the counts that groups divide."""
        group = self.contender.group
        return int(np.bitwise_or.reduce(self.limits[group - 1 :: group])) & FORBIDS


def make_lines(
    contenders: Sequence[Contender],
    times: "Mapping[str, ContenderTimes]",
    convergence: Convergence,
    draws: Draws,
    samples: float,
    most: int,
    efficiency: float | None,
) -> list[SpeedupLine]:
    """Return lines of contenders up to `most` PEs, with `samples` per replica and iteration.

    times: by strategy; empty if the user gave all numbers. efficiency: SE if the user gave it.
    """
    # A contender with a strategy has the strategy's label.
    seconds = {
        contender.label: times[contender.label].draw(draws.errors[:, number])
        for number, contender in enumerate(contenders)
        if contender.label in times
    }
    lines = []
    for contender in contenders:
        replicas = np.arange(1, most + 1) // contender.group
        batches = replicas * np.float64(samples)
        epochs = draw_epochs(convergence, batches, draws.laws, draws.stays)
        # In the same draws, so that the ratio of epochs is known better than either.
        alone = draw_epochs(convergence, np.array([samples]), draws.laws, draws.stays)
        split = _find_split(contender, seconds)
        if efficiency is None:
            scaling = _find_efficiency(contender, seconds, replicas)
        else:
            scaling = np.full((1, most), efficiency)
        limits = _find_limits(contender, times, most)
        speedup = split * scaling * replicas * alone / epochs
        lines.append(
            SpeedupLine(
                contender=contender,
                split=float(split[0, 0]),
                efficiency=scaling[0],
                epochs=epochs[0],
                extrapolated=np.array([convergence.is_extrapolated(round(b)) for b in batches]),
                limits=limits,
                speedup=np.where((limits & np.uint16(FORBIDS)) > 0, 0.0, speedup),
            )
        )
    return lines


def _find_split(contender: Contender, seconds: Mapping[str, Floats]) -> Floats:
    """Return SU^M [draw, 1]: as given, or computed for one group."""
    if contender.split is not None:
        return np.array([[contender.split]])
    group = contender.group
    split: Floats = seconds["data"][:, :1] / seconds[contender.label][:, group - 1 : group]
    return split


def _find_efficiency(
    contender: Contender, seconds: Mapping[str, Floats], replicas: NDArray[np.int64]
) -> Floats:
    """Return SE [draw, count] from the contender's times.

    A contender without times, for which only the speed-up is known, scales over replicas like data
    parallelism over as many PEs.
    """
    times = seconds.get(contender.label)
    if times is not None:
        return times[:, contender.group - 1 : contender.group] / times
    data = seconds["data"]
    return data[:, :1] / data[:, np.maximum(replicas, 1) - 1]


def _find_limits(
    contender: Contender, times: "Mapping[str, ContenderTimes]", most: int
) -> NDArray[np.uint16]:
    """Return flags [count]; a contender without a strategy has those of data parallelism."""
    strategy = contender.strategy or "data"
    flags = times[strategy].limits if strategy in times else np.zeros(most, np.uint16)
    # Arrays have all PE counts, so that counts are positions; groups divide some of them.
    uneven = np.arange(1, most + 1) % contender.group > 0
    return flags | np.where(uneven, np.uint16(Limit.GROUP_DOES_NOT_DIVIDE), np.uint16(0))
