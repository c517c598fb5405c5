"""Compiled functions compute what they did, once traced for each value of a static argument."""

from kernels.compiled import compiled


def test_a_program_a_static_value() -> None:
    traced = []

    @compiled("power")
    def raised(base, *, power):
        traced.append(power)
        return base**power

    assert [raised(base, power=2) for base in (2.0, 3.0)] == [4, 9]
    assert raised(2.0, power=3) == 8
    assert traced == [2, 3]
