"""PE counts beyond what 24 and 31 bits hold are answered exactly."""

import jax
import numpy as np

import paradl
from paradl.kernels.blocks.summary import Line, tabulate_line
from paradl.kernels.names.flags import Limit
from paradl.sweep.cube.variables import type_statistics

ROWS = 2**23 + 10


def test_rows_beyond_2_to_the_23() -> None:
    """Packed into one word with the flags, their numbers overflowed: nothing was the largest."""
    limit = np.zeros((ROWS, 1), np.uint16)
    limit[-1] = Limit.MEMORY
    with jax.enable_x64(True):
        p = np.arange(1.0, ROWS + 1).reshape(-1, 1)
        query = Line(p, 1 / p, 0 * p, p, limit, np.full((1, 1), 1.0))
        statistics = type_statistics(np.asarray(jax.jit(tabulate_line)(query)))
    assert statistics["largest_pe"].tolist() == [ROWS - 1]
    assert statistics["forbidden_by"].tolist() == [Limit.MEMORY]
    assert statistics["count_memory"].tolist() == [1]


def test_odd_pe_counts_beyond_2_to_the_24(tmp_path) -> None:
    """They are no single-precision numbers: 16777217 was answered as 16777216."""
    spec = {
        "oracle": "paper",
        "axes": {
            "model": "alexnet",
            "dataset": "imagenet",
            "system": "abci",
            "strategy": "data",
            "pe": [1, 16777217],
            "batch": 1,
        },
    }
    url = tmp_path / "cube.zarr"
    cube = paradl.run(spec, url)
    for source in (str(url), cube):
        (row,) = paradl.limits(source).to_dict("records")
        assert row["largest_pe"] == 16777217
        assert row["fastest_pe"] == 16777217
        (ranked,) = paradl.best(source).to_dict("records")
        assert ranked["pe"] == 16777217
