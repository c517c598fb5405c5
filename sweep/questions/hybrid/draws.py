"""Joint draws of uncertain parameters of the machine, the oracle's errors and the law of epochs.

They are the same for every question and shared by all contenders, so ratios are known better than
times. Draw 0 has the expected values.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from grids.inputs.draws import draw_normals
from kernels.names.arrays import Floats

# With 512 draws, chances vary by 1.4 percentage points (standard deviation) between sets of draws,
# 0.9 to 2.1 over nine questions; with 32 draws by 20. A question takes 3.0 s of CPU.
COUNT = 512
# Every question draws errors for this many, so another hybrid does not move the others' intervals.
MOST_CONTENDERS = 14
PERCENTS = (10, 50, 90)


@dataclass(frozen=True)
class Draws:
    """Standard normal numbers; the first row is 0.

    laws [draw, 2]: for `Convergence.draw_laws`. stays [draw]: whether epochs are constant below the
    smallest measured batch; False: they follow the law, as in the first row. errors [draw,
    contender]: the oracle's own errors, one per contender, whatever its PE count.
    """

    laws: Floats
    stays: NDArray[np.bool_]
    errors: Floats


def make_draws() -> Draws:
    """Make the draws of all questions."""
    contenders = [f"contender {number}" for number in range(MOST_CONTENDERS)]
    names = ("fewest_epochs", "critical_batch", "stays", *contenders)
    drawn = draw_normals(names, COUNT)
    normals = np.concatenate([np.zeros((1, len(names))), drawn])
    # No measurement favours one of the two forms, so each gets half of the draws.
    return Draws(laws=normals[:, :2], stays=normals[:, 2] > 0, errors=normals[:, 3:])


def find_percentiles(drawn: Floats) -> dict[str, float]:
    """Return p10, p50 and p90 of drawn values [draw], without the first, the expected one.

    They are not interpolated between draws, since some may be infinite.
    """
    values = np.percentile(drawn[1:], PERCENTS, method="inverted_cdf")
    return {f"p{percent}": float(value) for percent, value in zip(PERCENTS, values, strict=True)}
