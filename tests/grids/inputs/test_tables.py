"""Tables that share parts equal tables that are built alone, to the last bit."""

from functools import partial
from itertools import product

import jax
import numpy as np

from grids.grid import Grid
from grids.inputs.tables import SharedParts, build_table
from grids.spec import Spec

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
    shared = partial(build_table, parts=SharedParts())
    # The order of samples: the systems of a network follow one another.
    for model, system, strategy in product(range(2), range(3), range(6)):
        index = (model, 0, system, strategy)
        together = grid.build(shared, index, None, None)
        alone = grid.build(build_table, index, None, None)
        jax.tree.map(np.testing.assert_array_equal, together, alone)
