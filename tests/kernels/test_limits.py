"""Limits: every flag by itself, and at its border."""

from dataclasses import replace

import numpy as np
import pytest
from toys import NETWORK, TIMES, bounds, divide, placement, run

from paradl.kernels.names.flags import FORBIDS, MARKS, Limit
from paradl.kernels.oracle.limits import find_invariant_flags, limits
from paradl.kernels.oracle.table_iii import reduce_table

pytestmark = pytest.mark.usefixtures("in_numpy")


def flags(group="none", memory=10.0, capacity=10.0, setup=None, **kept) -> Limit:
    work = reduce_table(divide(placement(), 1.0, group), TIMES)
    setup = setup or run()
    flags_without_memory = find_invariant_flags(
        bounds(**kept), setup, NETWORK, setup.segments if np.all(setup.group > 1) else 1.0
    )
    limit = limits(work.pipelined, flags_without_memory, setup, memory, capacity)
    return Limit(int(limit))


def test_nothing_forbids_a_group_that_fits() -> None:
    assert flags() == Limit(0)


def test_memory_that_is_just_enough_is_enough() -> None:
    assert flags(memory=10.0, capacity=np.nextafter(10.0, 0)) == Limit.MEMORY


def test_a_machine_has_a_size() -> None:
    small = replace(NETWORK, size=7.0)
    for p1, p2, limit in ((4.0, 2.0, Limit.MACHINE_TOO_SMALL), (7.0, 1.0, Limit(0))):
        raised = find_invariant_flags(bounds(), run(p1=p1, p2=p2), small, 1.0)
        assert Limit(int(raised.group)) == limit


def test_an_epoch_of_less_than_one_iteration_is_marked() -> None:
    assert flags(setup=run(p1=8.0)) == Limit(0)  # 16 samples, 2 for each of 8
    assert flags(setup=run(p1=9.0)) == Limit.BATCH_EXCEEDS_DATASET


def test_unknown_memory_is_no_verdict() -> None:
    assert flags(memory=np.nan) == Limit(0)


def test_every_flag_forbids_or_marks() -> None:
    every = Limit(0)
    for limit in Limit:
        every |= limit
    assert (every, Limit(0)) == (FORBIDS | MARKS, FORBIDS & MARKS)
    assert MARKS == Limit.UNEVEN | Limit.BATCH_EXCEEDS_DATASET
