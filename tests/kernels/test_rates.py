"""Rates: the formulas taken apart, and put together again, are the formulas."""

from dataclasses import fields, replace

import numpy as np
import pytest
from budgets import limit_examples
from hypothesis import given
from hypothesis import strategies as st
from toys import LAYERS, NETWORK, PROCESSOR, bounds, placement, run

from kernels.case import Case
from kernels.compiled import compiled
from kernels.division import Division
from kernels.options import Options
from kernels.oracle import reduce_layers
from kernels.rates import are_constant, find_rates, iteration_times
from kernels.run import Times
from kernels.strategy import iteration_terms
from kernels.terms import Terms

PLACES = {"spatial": placement(factors=(1, 1, 2)), "pipeline": placement(ends=(2, 3))}
# A path through host memory that is the slower one in start-up alone, and as fast in bandwidth.
STAGED = replace(NETWORK, staging_latency=3.0, staging_bandwidth=4.0)


@compiled()
def both_ways(case: Case) -> tuple[Times, Terms]:
    """An iteration from its rates, and its terms as the formulas have them: compiled once."""
    return iteration_times(find_rates(case), case.run.batch), iteration_terms(case)


@limit_examples(40)
@given(
    group=st.sampled_from(["none", "spatial", "pipeline", "filter", "channel"]),
    algorithm=st.sampled_from(["ring", "tree"]),
    p1=st.sampled_from([1.0, 3.0, 8.0]),
    batch=st.floats(0.5, 1e4),
    network=st.sampled_from([NETWORK, STAGED]),
)
def test_together_they_are_the_formula(group, algorithm, p1, batch, network) -> None:
    p2 = 1.0 if group == "none" else 2.0
    places = PLACES.get(group, placement())
    division = Division(LAYERS, PROCESSOR, places, p2, 4.0, group, options=Options(algorithm))
    setup, options = run(p1, p2, batch=batch), Options(algorithm=algorithm)
    case = Case(reduce_layers(division), bounds(), setup, network, PROCESSOR, options=options)
    apart, whole = both_ways(case)
    for each in fields(Terms):
        expected = float(getattr(whole, each.name))
        assert float(getattr(apart.terms, each.name)) == pytest.approx(expected, rel=1e-12)
    assert float(apart.compute) == pytest.approx(float(whole.compute), rel=1e-12)
    assert float(apart.communication) == pytest.approx(float(whole.communication), rel=1e-12)


def test_no_rate_varies_with_the_batch_and_only_start_ups_with_latency() -> None:
    work = reduce_layers(Division(LAYERS, PROCESSOR, placement(), 2.0, 4.0, "filter"))
    cells = {"p": (3, 1, 1), "batch": (1, 4, 1), "latency": (1, 1, 5)}
    setup = replace(
        run(p2=2.0, p1=np.ones(cells["p"])),
        p=np.full(cells["p"], 2.0),
        spec_batch=np.ones(cells["batch"]),
    )
    slow = replace(NETWORK, latency=np.ones((2, *cells["latency"])))
    found = compiled()(find_rates)(Case(work, bounds(), setup, slow, PROCESSOR))
    assert np.shape(found.startup.communication) == (3, 1, 5)
    assert np.shape(found.sample.communication) == (3, 1, 1)
    assert np.shape(found.fixed.communication) == (3, 1, 1)
    together = iteration_times(found, setup.batch)
    assert np.shape(together.communication) == (3, 4, 5)


def test_the_faster_of_two_algorithms_has_no_rates() -> None:
    assert [are_constant(Options(name)) for name in ("ring", "tree", "best")] == [True, True, False]
