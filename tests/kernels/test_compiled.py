"""Compiled functions compute what they did, once traced for each value of a static argument."""

from concurrent.futures import ThreadPoolExecutor
from math import isqrt

import jax
import numpy as np
import pytest

import paradl.kernels.compiled as compiler
from paradl.kernels.arrays import in_numpy, xp
from paradl.kernels.compiled import MOST_IN_NUMPY, compiled


def test_a_program_a_static_value() -> None:
    traced = []

    @compiled("power")
    def raised(base, *, power):
        traced.append(power)
        return base**power

    assert [raised(base, power=2) for base in (2.0, 3.0)] == [4, 9]
    assert raised(2.0, power=3) == 8
    assert traced == [2, 3]


@compiled(numpy=True)
def double(values):
    return xp.where(in_numpy(), 2 * values, -values)  # so that one sees which of them ran


@pytest.fixture(autouse=True)
def forget():
    double.clear()


def test_a_call_of_few_numbers_runs_in_numpy_however_often_it_is_made() -> None:
    """The 65th call of one shape was once compiled: other digits, after seconds."""
    values = np.arange(3.0)
    assert {float(double(values)[1]) for _ in range(200)} == {2.0}
    assert double.programs == 0


def test_many_numbers_are_compiled_at_once() -> None:
    assert double(np.ones(MOST_IN_NUMPY))[0] == 2
    assert double(np.ones(MOST_IN_NUMPY + 1))[0] == -1


def test_shapes_are_laid_over_each_other() -> None:
    @compiled(numpy=True)
    def add(first, second):
        return first + second if in_numpy() else -first - second

    side = isqrt(MOST_IN_NUMPY) + 1  # of the sum; each of the two is small
    assert np.all(add(np.ones((side, 1)), np.ones((1, side))) == -2)
    assert np.all(add(np.ones((side, 1)), np.ones((1, 2))) == 2)


def test_what_is_part_of_a_program_is_compiled_and_what_is_part_of_numpy_is_not() -> None:
    @compiled()
    def whole(values):
        return double(values)

    @compiled(numpy=True)
    def in_part(values):
        return double(values), double(np.ones(MOST_IN_NUMPY + 1))[:1]

    assert whole(np.ones(1))[0] == -1
    assert in_part(np.ones(1)) == (2, 2)


def test_what_is_not_written_for_numpy_is_compiled() -> None:
    @compiled()
    def is_numpy(values):
        return values * float(in_numpy())

    assert is_numpy(np.ones(1))[0] == 0


def test_few_numbers_need_no_option_of_this_compiler(monkeypatch) -> None:
    """Another jaxlib may not have them: then programs are compiled as it does by default."""
    monkeypatch.setattr(compiler, "OLDER_EMITTERS", {"xla_cpu_no_such_option": False})
    compiler._are_known.cache_clear()

    @compiled(few=True)
    def differentiate(value):
        return jax.grad(lambda x: x**3)(value)

    assert differentiate(2.0) == 12
    monkeypatch.undo()
    compiler._are_known.cache_clear()
    assert compiler._are_known() or jax.version.__version_info__ >= (0, 11)


def test_a_program_that_was_compiled_ahead_is_the_one_that_is_called() -> None:
    @compiled("times")
    def add(values, *, times):
        return values + times

    with ThreadPoolExecutor(2) as pool:
        for _ in range(2):
            add.compile_ahead(pool, jax.ShapeDtypeStruct((3,), np.float64), times=2)
        assert add(np.zeros(3), times=2).tolist() == [2.0, 2.0, 2.0]
        assert add(np.zeros(3), times=5).tolist() == [5.0, 5.0, 5.0]
    assert add.programs == 2


def test_a_bound_program_is_the_one_that_is_called() -> None:
    @compiled()
    def add(values, more):
        return values + more

    once = add(np.full(3, 1 / 3), 2.0)
    bound = add.bind(np.zeros(3), 0.0)
    assert np.array_equal(bound(np.full(3, 1 / 3), 2.0), once)
    assert bound(np.zeros(3), 0.0).dtype == np.float64
    assert add.programs == 1
