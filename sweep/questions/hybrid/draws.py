"""Joint draws of the unknown in the machine, in its oracle and in the law of epochs.

The same for every question: what all contenders share moves them together, and ratios are known
better than times. The first draw, number 0, is what is expected.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from grids.inputs.draws import draw_normals
from grids.models.layers import Floats

# Chances then move by 1.4 points (standard deviation) from one set of draws to another, 0.9 to 2.1
# over nine questions; of 32 machines they moved by 20. In all a question takes 3.0 s of CPU.
COUNT = 512
# Columns for as many in every question, so that one hybrid more moves no other's interval.
MOST_CONTENDERS = 14
PERCENTS = (10, 50, 90)


@dataclass(frozen=True)
class Draws:
    """Normal numbers of mean 0 and variance 1, 0 in the first row.

    laws [draw, 2]: as `Convergence.draw_laws` takes them. stays [draw]: whether epochs stay as
    they are below the smallest measured batch; False: they go on along the law, as in the first
    row. errors [draw, contender]: those of the oracle itself, one a contender, whatever its PEs.
    """

    laws: Floats
    stays: NDArray[np.bool_]
    errors: Floats


def make_draws() -> Draws:
    """The draws of all questions."""
    contenders = [f"contender {number}" for number in range(MOST_CONTENDERS)]
    names = ("fewest_epochs", "critical_batch", "stays", *contenders)
    drawn = draw_normals(names, COUNT)
    normals = np.concatenate([np.zeros((1, len(names))), drawn])
    # No measurement prefers one form of the law: each has half of the draws.
    return Draws(laws=normals[:, :2], stays=normals[:, 2] > 0, errors=normals[:, 3:])


def find_percentiles(drawn: Floats) -> dict[str, float]:
    """p10, p50 and p90 of drawn values [draw], without the first, which is what is expected.

    Values that were drawn, and no mean of two: some may be infinite.
    """
    values = np.percentile(drawn[1:], PERCENTS, method="inverted_cdf")
    return {f"p{percent}": float(value) for percent, value in zip(PERCENTS, values, strict=True)}
