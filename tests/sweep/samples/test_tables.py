"""Tables of all machines at once equal those that are built alone."""

from functools import partial
from itertools import product

import jax
import numpy as np

from paradl.grids.grid import Grid
from paradl.grids.spec import Spec
from paradl.sweep.samples.tables import SharedTables, build_table

AXES = {
    "model": ["alexnet", "vgg16"],
    "dataset": "imagenet",
    "system": ["abci", "dgx-a100", "dgx1-v100"],
    "strategy": [
        "serial",
        "data",
        "data+spatial:group=4",
        "data+pipeline:group=4,segments=8",
        "data+filter",
        "filter",
    ],
    "pe": [1, 2, 8, 64],
    "batch": [1, 32],
}


def test_tables_with_shared_parts_equal_those_built_alone() -> None:
    grid = Grid.from_spec(Spec.model_validate({"axes": AXES}))
    shared = SharedTables(grid, grid.axes, layered=False)
    # The order of samples: the systems of a network follow one another.
    for model, system, strategy in product(range(2), range(3), range(6)):
        index = (model, 0, system, strategy)
        alone = build_table(grid, index, grid.axes)
        together = shared.find(index[:3], strategy)
        # Sums of layers are rounded in another order.
        jax.tree.map(partial(np.testing.assert_allclose, rtol=1e-14), together.case, alone.case)
