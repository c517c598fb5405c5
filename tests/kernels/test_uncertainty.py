"""Spreads of the toy's times: draws worked out by hand, cause by cause."""

from collections.abc import Mapping
from dataclasses import fields, replace
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
from toys import LAYERS, NETWORK, PROCESSOR, TIMES, bounds, divide, placement, run

from paradl.kernels.arrays import use_numpy
from paradl.kernels.compiled import compiled
from paradl.kernels.configuration.answers import Spread
from paradl.kernels.configuration.case import Case, Uncertainty
from paradl.kernels.machine.software import Software
from paradl.kernels.names.stored import PERCENTILES
from paradl.kernels.options import Options
from paradl.kernels.oracle import uncertainty
from paradl.kernels.oracle.formulas import time_iteration
from paradl.kernels.oracle.reduction import reduce_part
from paradl.kernels.oracle.uncertainty import draw_times, percentiles, quantile

MACHINE = Options(oracle="machine")
draw = compiled(numpy=True)(draw_times)


def find_spread(case: Case) -> Spread:
    """About the case's own times."""
    return uncertainty.spread(case, time_iteration(case))


spread = compiled(numpy=True)(find_spread)

DRAWS = np.exp(np.array([0.3, -0.1, 0.0, -0.4]))
ONES = np.ones(DRAWS.size)
WEIGHTS = float(LAYERS.w.sum())
# Of a pass of two samples: forward 7 s a sample, backward twice that; the update takes 4.5 s.
COMPUTE = 2 * 21 + 4.5


def make_case(
    group: Any = "none",
    p1: float = 1.0,
    p2: float = 1.0,
    software: Mapping[str, float] = MappingProxyType({}),
    serial: np.ndarray = ONES,
    errors: Mapping[str, float] = MappingProxyType({}),
    **factors: np.ndarray,
) -> Case:
    """The toy as a machine runs it; what is not given is known."""
    places = placement(factors=(1, 1, 2)) if group == "spatial" else placement()
    division = divide(places, p2, group, options=MACHINE)
    known: dict[str, Any] = {n: np.array(0.0) for n in ("whole", "group", "reduce", "exchange")}
    known |= {"widening": np.array(1.0)}
    unsure = Uncertainty(
        factors=Software(
            **{field.name: factors.get(field.name, ONES) for field in fields(Software)}
        ),
        serial=serial,
        **known | {name: np.array(value) for name, value in errors.items()},
    )
    network = replace(NETWORK, oversubscription=np.ones(2), size=np.inf)
    with use_numpy():
        work = reduce_part(division, TIMES)
    return Case(
        work=work,
        bounds=bounds(),
        run=run(p1, p2, group=group),
        network=network,
        pe=PROCESSOR,
        software=Software(**software),
        uncertainty=unsure,
        options=MACHINE,
    )


def spread_of(values: np.ndarray) -> float:
    """The standard deviation of the logarithm."""
    return float(np.log(values).std())


def reduce_gradients(node_reduce: Any = 1.0) -> Any:
    """Seconds in which two PEs of a node reduce 4-byte gradients, as a ring: 1 s and 1/4 s/B."""
    return 2 * (1 + 4 * WEIGHTS / 2 / 4 / node_reduce)


def test_a_parameter_moves_what_depends_on_it() -> None:
    """Gradients of two PEs by the bandwidth that they reach."""
    spreads = spread(make_case(p1=2.0, node_reduce=DRAWS))
    seconds = reduce_gradients(DRAWS)
    assert float(spreads.communication) == pytest.approx(spread_of(seconds))
    assert float(spreads.compute) == 0
    assert float(spreads.total) == pytest.approx(spread_of(COMPUTE + seconds))


def test_a_model_that_is_slower_takes_longer_but_for_its_update() -> None:
    spreads = spread(make_case(p1=2.0, serial=DRAWS))
    assert float(spreads.compute) == pytest.approx(spread_of(42 * DRAWS + 4.5))
    assert float(spreads.communication) == 0
    assert float(spreads.total) == pytest.approx(spread_of(42 * DRAWS + 4.5 + reduce_gradients()))


def test_what_is_drawn_together_counts_together() -> None:
    """A machine whose network is slow where its PEs are fast is surer of the total."""
    alike, opposed = (
        spread(make_case(p1=2.0, serial=DRAWS, node_reduce=1 / value))
        for value in (DRAWS, 1 / DRAWS)
    )
    seconds = {value: 42 * DRAWS + 4.5 + reduce_gradients(DRAWS**-value) for value in (1, -1)}
    assert float(alike.total) == pytest.approx(spread_of(seconds[1]))
    assert float(opposed.total) == pytest.approx(spread_of(seconds[-1]))
    assert float(opposed.total) < float(alike.total)


def test_a_wait_grows_with_what_is_computed() -> None:
    """jitter z(2) 42 s, z(2) = 0.5895 (Blom)."""
    spreads = spread(make_case(p1=2.0, software={"jitter": 0.1}, jitter=DRAWS))
    waiting = 0.1 * DRAWS * 0.58946 * 42
    assert float(spreads.communication) == pytest.approx(
        spread_of(reduce_gradients() + waiting), rel=1e-4
    )


def test_no_more_than_all_computing_hides_anything() -> None:
    """Draws of overlap above 1 count as 1: 2/3 of 42 s hide all but the last of two messages."""
    software = {"overlap": 0.9, "bucket": 4 * WEIGHTS / 2}
    spreads = spread(make_case(p1=2.0, software=software, overlap=DRAWS))
    exchange = 2 * (2 * 1 + 4 * WEIGHTS / 2 / 4)  # of two messages
    window = (1 - 1 / 2) * 2 / 3 * np.minimum(0.9 * DRAWS, 1) * 42
    exposed = exchange / 2 + np.maximum(exchange / 2 - window, 0)
    assert float(spreads.communication) == pytest.approx(spread_of(exposed))


@pytest.mark.parametrize(
    ("group", "p1", "p2"), [("none", 4, 1), ("filter", 1, 2), ("spatial", 2, 2)]
)
def test_who_is_sure_has_no_spread(group, p1, p2) -> None:
    spreads = spread(make_case(group, float(p1), float(p2)))
    assert [float(var) for var in vars(spreads).values()] == [0, 0, 0]


def test_one_pe_does_not_communicate() -> None:
    spreads = spread(make_case(errors={"exchange": 0.4, "reduce": 0.4, "whole": 0.1}, rail=DRAWS))
    assert float(spreads.communication) == 0
    assert float(spreads.compute) == float(spreads.total) == pytest.approx(0.1)


ERRORS = {"whole": 0.1, "group": 0.2, "reduce": 0.3, "exchange": 0.4, "widening": 2.0}


def test_errors_are_of_the_flows_that_they_name() -> None:
    data = spread(make_case("none", 4.0, errors=ERRORS))
    assert (float(data.compute), float(data.communication)) == pytest.approx((0.2, 0.6))
    alone = spread(make_case("filter", 1.0, 2.0, errors=ERRORS))
    assert (float(alone.compute), float(alone.communication)) == pytest.approx((0.4, 0.8))


def test_causes_add_up_as_variances() -> None:
    spreads = spread(make_case(p1=2.0, errors=ERRORS, serial=DRAWS))
    exchange = reduce_gradients()
    own = 2 * np.hypot(0.1 * COMPUTE, 0.3 * exchange) / (COMPUTE + exchange)
    drawn = spread_of(42 * DRAWS + 4.5 + exchange)
    assert float(spreads.total) == pytest.approx(np.hypot(drawn, own))
    assert float(spreads.compute) == pytest.approx(np.hypot(spread_of(42 * DRAWS + 4.5), 0.2))


def test_times_of_each_draw() -> None:
    times, error = draw(make_case(p1=2.0, errors=ERRORS, serial=DRAWS, node_reduce=DRAWS))
    expected = 42 * DRAWS + 4.5 + reduce_gradients(DRAWS)
    np.testing.assert_allclose(times, expected, rtol=1e-12)
    exchange = reduce_gradients()
    own = 2 * np.hypot(0.1 * COMPUTE, 0.3 * exchange) / (COMPUTE + exchange)
    assert float(error) == pytest.approx(own)


def test_a_program_finds_what_numpy_does() -> None:
    case = make_case("filter", 2.0, 2.0, errors=ERRORS, serial=DRAWS, node_reduce=DRAWS)
    program = compiled()(find_spread)
    for one, other in zip(vars(spread(case)).values(), vars(program(case)).values(), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-11)
        assert one > 0


def test_percentiles_lie_about_the_median() -> None:
    low, median, high = (float(quantile(2.0, 0.1, percent)) for percent in PERCENTILES)
    assert median == 2
    assert low * high == pytest.approx(4)
    assert high == pytest.approx(2 * np.exp(0.15332))
    assert [float(value) for value in percentiles(2.0, 0.1).values()] == [low, median, high]
