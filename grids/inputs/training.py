"""Training of a case: epochs to the target, and the largest global batch, cell by cell.

They depend on PE counts and batches alone, and are found here, ahead of the kernels: a time to the
target costs these a product a cell.
"""

import numpy as np

from grids.convergence.entry import Convergence
from grids.convergence.table import find_epochs
from grids.inputs.values import Settings, Values
from grids.models.layers import Floats
from kernels import batches
from kernels.convergence import spread_epochs
from kernels.run import Run
from kernels.training import Training


def build_training(
    convergence: Convergence | None, run: Run, values: Values, settings: Settings
) -> Training | None:
    """Epochs with the global batch of each cell; None where no law is known.

    NaN beyond the largest batch that converges.
    """
    if convergence is None:
        return None
    batch = np.asarray(run.global_batch)
    # One PE is one replica, whose batch is all of a strong scaling's.
    passes = np.asarray(run.accumulate)
    alone = batches.global_batch(np.asarray(run.spec_batch), passes, settings.scaling)
    return Training(
        epochs=find_epochs(convergence, batch),
        # Of no choice: it has the dimensions of the cells.
        epochs_alone=find_epochs(convergence, alone.reshape(alone.shape[values.leading :])),
        spread=np.asarray(spread_epochs(convergence.law, batch)),
    )


def find_largest_batch(convergence: Convergence | None, values: Values) -> Floats | None:
    """B beyond which the target is never reached, or the user does not go; None: any will do."""
    converges_to = None if convergence is None else convergence.converges_to
    if "max_global_batch" not in values:
        return None if converges_to is None else np.full((1,) * values.rank, float(converges_to))
    return np.minimum(values.get("max_global_batch"), converges_to or np.inf)
