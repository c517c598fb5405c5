"""A group of PEs that all do the same: the toy's sums by hand."""

from dataclasses import replace

import numpy as np
import pytest
from toys import TIMES, divide, placement

from paradl.kernels.options import Options
from paradl.kernels.oracle.reduction import reduce_part
from paradl.kernels.oracle.table_iii import reduce_table
from paradl.kernels.paper.sums import held, merged, total
from paradl.kernels.work.group import share

pytestmark = pytest.mark.usefixtures("in_numpy")


def test_sums_over_the_layers() -> None:
    values = np.array([[1.0, 10], [2, 20], [3, 30]])
    assert np.asarray(total(values)).tolist() == [6, 60]
    assert merged(values).tolist() == [[6, 60]]


def test_share_is_a_part_of_split_layers_only() -> None:
    split, p2 = np.array([[1.0], [0.0]]), np.array([1.0, 2, 4])
    assert share(split, p2).tolist() == [[1, 1 / 2, 1 / 4], [1, 1, 1]]


def test_held_is_the_sum_of_the_shares() -> None:
    values, split, p2 = np.array([[8.0], [3.0]]), np.array([[1.0], [0.0]]), np.array([1.0, 2, 4])
    shares = total(values * share(split, p2))
    assert np.asarray(held(values, split, p2)).tolist() == np.asarray(shares).tolist()


def test_the_group_of_one_pe_does_everything() -> None:
    division = divide(placement(), 1.0, "none")
    work = reduce_table(division, TIMES)
    assert work.forward_backward == 1 + 2 + 4 + 8 + 2 + 4
    assert work.update == 0.5 + 1 + 3
    assert work.gradient == 72 + 288 + 1280
    assert work.activations.tolist() == [2 * (224 + 202)]
    assert work.parameters.tolist() == [2 * 1640 + 22]


def test_it_exchanges_nothing() -> None:
    table = divide(placement(), 1.0, "none")
    work = reduce_table(table, TIMES)
    names = ("halo_items", "halo_exchanges", "split_items", "stage_items")
    assert [getattr(work, name) for name in names] == [0, 0, 0, 0]
    assert work.gathered.tolist() == work.gathers.tolist() == [0]
    assert work.replicated == work.pipelined == 0
    whole = placement(split=(0, 0, 0))
    machine = replace(table, placement=whole, options=Options(oracle="machine"))
    halos = reduce_part(machine, TIMES).sent["spatial"]
    assert (halos.halo_items, halos.halo_exchanges, halos.split_items, halos.logged) == (0,) * 4
