"""Divisors against the definition."""

import pytest

from grids.inputs.divisors import divisors


@pytest.mark.parametrize("count", range(1, 200))
def test_divisors(count) -> None:
    assert divisors(count) == tuple(n for n in range(1, count + 1) if count % n == 0)


def test_a_machine_of_a_trillion_pes_takes_no_time() -> None:
    assert len(divisors(2**40)) == 41
