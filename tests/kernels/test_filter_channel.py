"""Filter and channel parallelism of the toy by two PEs."""

import numpy as np
import pytest
from toys import TIMES, divide, placement

from paradl.kernels.options import Options
from paradl.kernels.oracle.table_iii import reduce_table
from paradl.kernels.paper.table import TableWork
from paradl.kernels.work.group import mark_exchanged

pytestmark = pytest.mark.usefixtures("in_numpy")


def by_filter(algorithm="ring") -> TableWork:
    places = placement(split=(1, 1, 0))
    division = divide(places, 2.0, "filter", options=Options(algorithm=algorithm))
    return reduce_table(division, TIMES)


def test_the_last_layer_is_not_exchanged() -> None:
    assert mark_exchanged(np.array([1.0, 0, 1, 1])).tolist() == [1, 0, 1, 0]


def test_split_layers_are_shared_and_the_rest_is_not() -> None:
    sums = by_filter()
    assert sums.forward_backward == (1 + 2 + 4 + 8) / 2 + (2 + 4)
    assert sums.update == (0.5 + 1) / 2 + 3
    assert sums.gradient == (72 + 288) / 2 + 1280


@pytest.mark.parametrize("algorithm", ["ring", "tree"])
def test_collectives_of_one_cost_add_up(algorithm) -> None:
    sums = by_filter(algorithm)
    assert sums.gathered.tolist() == [64 + 128]
    assert sums.gathers.tolist() == [2]


def test_the_best_algorithm_is_chosen_layer_by_layer() -> None:
    sums = by_filter("best")
    assert sums.gathered.tolist() == [64, 128, 0]
    assert sums.gathers.tolist() == [1, 1, 0]
