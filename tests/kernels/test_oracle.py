"""The two stages together: exact reductions of Table III, what is undefined, the best group."""

from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from toys import LAYERS, NETWORK, PROCESSOR, bounds, divide, placement, run

from paradl.kernels.configuration.answers import Answer
from paradl.kernels.configuration.case import Case
from paradl.kernels.configuration.run import Terms
from paradl.kernels.names.flags import FORBIDS, Limit
from paradl.kernels.oracle.answer import choose_answer, evaluate
from paradl.kernels.oracle.formulas import reduce_layers

pytestmark = pytest.mark.usefixtures("in_numpy")

GROUPS = ("spatial", "pipeline", "filter", "channel")
NAMES = [field.name for field in fields(Terms)]


def ask(group, p1=1.0, p2=1.0, places=None, kept=None, layers=LAYERS, **changes) -> Answer:
    setup = run(p1, p2, **changes)
    places = placement() if places is None else places
    work = reduce_layers(divide(places, p2, group, layers))
    return evaluate(Case(work, kept or bounds(), setup, NETWORK, PROCESSOR))


def numbers(result: Answer) -> list[float]:
    return [float(getattr(result.terms, name)) for name in NAMES] + [float(result.memory)]


def test_what_cannot_be_is_undefined() -> None:
    result = ask("none", kept=bounds(fits=False, defined=False))
    assert np.isnan(numbers(result)).all()
    assert Limit(int(result.limit)) == Limit.TOO_MANY_PES


def test_a_group_that_does_not_divide_p_is_undefined() -> None:
    result = ask("filter", p1=3.0, p2=2.0, p=7.0)
    assert np.isnan(numbers(result)).all()
    assert Limit(int(result.limit)) == Limit.GROUP_DOES_NOT_DIVIDE


def test_infeasible_is_not_undefined() -> None:
    result = ask("filter", p2=16.0, kept=bounds(fits=False))
    assert np.isfinite(numbers(result)).all()
    assert Limit(int(result.limit)) == Limit.TOO_MANY_PES


def test_replicas_and_group_are_stated() -> None:
    result = ask("filter", p1=3.0, p2=2.0)
    assert (result.replicas, result.group) == (3, 2)


def choice(times: np.ndarray, limit: np.ndarray) -> Answer:
    """Answers with these epoch times [choices, cells], split into compute and communication."""
    nothing = np.zeros(())
    terms = Terms(*[nothing] * len(NAMES))
    group = np.arange(2.0, 2 + len(times))[:, None]
    return Answer(
        terms,
        compute=times / 4,
        communication=times * 3 / 4,
        memory=times * 10,
        limit=limit,
        replicas=12 / group,
        group=group,
        segments=nothing,
        batch=nothing,
        global_batch=nothing,
        iterations=nothing,
    )


undefined_or_time = st.one_of(st.just(np.nan), st.integers(1, 5).map(float))
flags = st.sampled_from([0, Limit.UNEVEN, Limit.MEMORY, Limit.TOO_MANY_PES | Limit.UNEVEN])


@given(cells=st.lists(st.tuples(undefined_or_time, flags), min_size=6, max_size=6))
def test_the_best_group_is_the_fastest_that_is_allowed(cells) -> None:
    """Three group sizes of two cells; where none is allowed, the fastest of all."""
    times = np.array([time for time, _ in cells]).reshape(3, 2)
    limit = np.array([int(flag) for _, flag in cells], np.uint16).reshape(3, 2)
    result = choose_answer(choice(times, limit))
    for cell in range(2):
        order = [np.inf if np.isnan(seconds) else seconds for seconds in times[:, cell]]
        allowed = [n for n in range(3) if not limit[n, cell] & FORBIDS and np.isfinite(order[n])]
        best = min(allowed or range(3), key=order.__getitem__)
        assert np.asarray(result.group)[cell] == best + 2
        assert np.asarray(result.replicas)[cell] == 12 / (best + 2)
        assert result.limit[cell] == limit[best, cell]
        np.testing.assert_equal(np.asarray(result.memory)[cell], times[best, cell] * 10)
