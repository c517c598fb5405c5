"""Lines: the speed-up of each contender over PE counts, in each draw.

SU = SU^M x SE x N x E(b) / E(b N)
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from grids.convergence.entry import Convergence
from grids.models.layers import Floats
from kernels.flags import FORBIDS, Limit
from sweep.questions.hybrid.contenders import Contender
from sweep.questions.hybrid.draws import Draws
from sweep.questions.hybrid.epochs import draw_epochs

if TYPE_CHECKING:
    from sweep.questions.hybrid.times import Times


@dataclass(frozen=True)
class Line:
    """A contender's training with 1, 2 ... PEs [count].

    split: SU^M. efficiency [count]: SE. epochs [count]: infinite where the batch never converges.
    extrapolated [count]: whether nobody measured that batch. limits [count]: flags. speedup [draw,
    count]: of the whole training, the expected one first; 0 where there is none.
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
        """The largest PE count."""
        return len(self.limits)

    @property
    def expected(self) -> Floats:
        """Speed-ups [count] without any draw."""
        expected: Floats = self.speedup[0]
        return expected

    def find_forbidding(self) -> int:
        """Flags that forbid any count that groups divide."""
        group = self.contender.group
        return int(np.bitwise_or.reduce(self.limits[group - 1 :: group])) & FORBIDS


@dataclass(frozen=True)
class Paces:
    """Of each contender SU^M [draw, 1] and SE [draw, count], and limits [count].

    Apart from epochs: how fast samples pass, whatever they are good for.
    """

    split: Floats
    efficiency: Floats
    limits: NDArray[np.uint16]


def find_paces(
    contenders: Sequence[Contender],
    times: "dict[str, Times]",
    draws: Draws,
    most: int,
    efficiency: float | None,
) -> list[Paces]:
    """The paces of contenders up to `most` PEs; times by strategy, without any where all is given.

    efficiency: SE where it is given. A split that only its speed-up is known of scales across its
    replicas as data parallelism does across as many PEs.
    """
    seconds = {
        each.label: times[each.strategy].draw(draws.errors[:, number])
        for number, each in enumerate(contenders)
        if each.strategy in times
    }
    return [
        Paces(
            split=_find_split(each, seconds),
            efficiency=_find_efficiency(each, seconds, most)
            if efficiency is None
            else np.full((1, most), efficiency),
            limits=_find_limits(each, times, most),
        )
        for each in contenders
    ]


def _find_split(contender: Contender, seconds: dict[str, Floats]) -> Floats:
    """SU^M [draw, 1]: as given, or of one group alone."""
    if contender.split is not None:
        return np.array([[contender.split]])
    group = contender.group
    split: Floats = seconds["data"][:, :1] / seconds[contender.label][:, group - 1 : group]
    return split


def _find_efficiency(contender: Contender, seconds: dict[str, Floats], most: int) -> Floats:
    """SE [draw, count]: of the contender's own times, or of data's with as many replicas."""
    group = contender.group
    own = seconds.get(contender.label)
    if own is not None:
        return own[:, group - 1 : group] / own
    replicas = np.maximum(np.arange(1, most + 1) // group, 1)
    data = seconds["data"]
    return data[:, :1] / data[:, replicas - 1]


def _find_limits(contender: Contender, times: "dict[str, Times]", most: int) -> NDArray[np.uint16]:
    """Flags [count]; of a split that the oracle does not know, data's and of counts that divide."""
    strategy = contender.strategy or "data"
    flags = times[strategy].limits if strategy in times else np.zeros(most, np.uint16)
    uneven = np.arange(1, most + 1) % contender.group > 0
    return flags | np.where(uneven, np.uint16(Limit.GROUP_DOES_NOT_DIVIDE), np.uint16(0))


def make_line(
    contender: Contender, paces: Paces, convergence: Convergence, draws: Draws, samples: float
) -> Line:
    """The line of a contender whose replicas take `samples` an iteration."""
    replicas = np.arange(1, len(paces.limits) + 1) // contender.group
    batches = replicas * np.float64(samples)
    epochs = draw_epochs(convergence, batches, draws.laws, draws.stays)
    alone = draw_epochs(convergence, np.array([samples]), draws.laws, draws.stays)
    speedup = paces.split * paces.efficiency * replicas * alone / epochs
    forbidden = (paces.limits & np.uint16(FORBIDS)) > 0
    return Line(
        contender=contender,
        split=float(paces.split[0, 0]),
        efficiency=paces.efficiency[0],
        epochs=epochs[0],
        extrapolated=np.array([convergence.is_extrapolated(round(batch)) for batch in batches]),
        limits=paces.limits,
        speedup=np.where(forbidden, 0.0, speedup),
    )
