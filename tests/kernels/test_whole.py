"""Whole numbers: what Python's own integers say."""

from hypothesis import given
from hypothesis import strategies as st

from paradl.kernels.arrays import divides, is_whole

COUNTS = st.integers(1, 2**53 - 1)


@given(COUNTS, COUNTS, st.integers(-1, 1))
def test_one_divides_another(divisor: int, factor: int, aside: int) -> None:
    """Also just beside a multiple, where the quotient is rounded to a whole number."""
    number = max(1, min(divisor * factor, 2**53 - 1 - (2**53 - 1) % divisor) + aside)
    assert divides(float(divisor), float(number)) == (number % divisor == 0)


@given(COUNTS)
def test_whole(number: int) -> None:
    assert is_whole(float(number))
    assert is_whole(number + 0.5) == (number >= 2**52)
