"""Spreads of the toy's times: against draws, and cause by cause."""

from dataclasses import fields, replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from toys import LAYERS, NETWORK, PROCESSOR, TIMES, bounds, placement, run

from kernels import uncertainty
from kernels.calibrated import iteration_terms
from kernels.calibration import Calibration, Uncertainty
from kernels.case import Case
from kernels.compiled import compiled
from kernels.division import Division
from kernels.percentiles import PERCENTILES
from kernels.strategy import group_work
from kernels.uncertainty import move_times, own_error, quantile

CALIBRATION = Calibration(
    **{each.name: np.array(0.5 + 0.1 * n) for n, each in enumerate(fields(Calibration))}
)
SIZE = len(fields(Calibration))
STAGED = replace(NETWORK, staging_latency=np.array(0.1), staging_bandwidth=np.array(10.0))
SURE = Uncertainty(
    directions=np.zeros((SIZE, SIZE)),
    serial_time=np.array(0.0),
    serial=np.array(0.0),
    group=np.array(0.0),
    reduce=np.array(0.0),
    exchange=np.array(0.0),
    widening=np.array(1.0),
)
# Compiled once for all cases: step by step each operation is compiled by itself, for 10 s.
spread = compiled()(uncertainty.spread)
CASES = [("none", 4.0, 1.0), ("filter", 1.0, 2.0), ("channel", 3.0, 2.0), ("spatial", 2.0, 2.0)]


def case(group, p1, p2, uncertainty=SURE) -> Case:
    places = placement(factors=(1, 1, 2)) if group == "spatial" else placement()
    work = group_work(Division(LAYERS, PROCESSOR, places, p2, 4.0, group), TIMES)
    return Case(work, bounds(), run(p1, p2), STAGED, PROCESSOR, CALIBRATION, uncertainty)


@pytest.mark.parametrize(("group", "p1", "p2"), CASES)
def test_the_first_order_is_what_draws_show(group, p1, p2) -> None:
    draw = np.random.default_rng(1)
    directions = draw.normal(size=(SIZE, SIZE)) * 0.01
    uncertain = replace(SURE, directions=directions, serial_time=np.array(0.02))
    found = spread(case(group, p1, p2, uncertain))
    steps, slower = draw.normal(size=(4000, SIZE)), draw.normal(size=4000)

    def times(step, serial):
        offsets = Calibration(*(step @ directions))
        return jnp.stack(move_times(case(group, p1, p2), offsets, 0.02 * serial))

    compute, communication = np.asarray(jax.jit(jax.vmap(times))(steps, slower)).T
    for name, values in (
        ("compute", compute),
        ("communication", communication),
        ("total", compute + communication),
    ):
        expected = np.log(values).std()
        assert float(getattr(found, name)) == pytest.approx(expected, rel=0.06), name


@pytest.mark.parametrize(("group", "p1", "p2"), CASES)
def test_who_is_sure_has_no_spread(group, p1, p2) -> None:
    found = spread(case(group, p1, p2))
    assert [float(each) for each in vars(found).values()] == [0, 0, 0]


def test_errors_are_of_the_flows_that_they_name() -> None:
    uncertain = replace(
        SURE,
        serial=np.array(0.1),
        group=np.array(0.2),
        reduce=np.array(0.3),
        exchange=np.array(0.4),
        widening=np.array(2.0),
    )
    data = spread(case("none", 4.0, 1.0, uncertain))
    assert (float(data.compute), float(data.communication)) == pytest.approx((0.2, 0.6))
    alone = spread(case("filter", 1.0, 2.0, uncertain))
    assert (float(alone.compute), float(alone.communication)) == pytest.approx((0.4, 0.8))
    terms = iteration_terms(case("filter", 3.0, 2.0))
    hybrid = spread(case("filter", 3.0, 2.0, uncertain))
    reduced, exchanged = float(terms.gradient_exchange), float(terms.layer_collectives)
    expected = 2 * np.hypot(0.3 * reduced, 0.4 * exchanged) / (reduced + exchanged)
    assert float(hybrid.communication) == pytest.approx(expected)
    whole = own_error(terms, case("filter", 3.0, 2.0, uncertain))
    assert float(hybrid.total) == pytest.approx(float(whole))


@compiled()
def derivatives(case: Case) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Both times' by the offsets and by the serial time; their sum's by the offsets twice."""

    def times(offsets, serial):
        return jnp.stack(move_times(case, Calibration(*offsets), serial))

    offsets, serial = jnp.zeros(SIZE), jnp.zeros(())
    slopes = jax.jacrev(times, (0, 1))(offsets, serial)
    return *slopes, jax.hessian(lambda at: times(at, serial).sum())(offsets)


@pytest.mark.parametrize(("group", "p1", "p2"), [*CASES, ("filter", 3.0, 2.0), ("none", 1.0, 1.0)])
def test_a_machine_without_a_path_through_host_memory_has_derivatives(group, p1, p2) -> None:
    """It is told as one without start-up and of infinite bandwidth."""
    direct = replace(NETWORK, staging_latency=np.array(0.0), staging_bandwidth=np.array(np.inf))
    asked = replace(case(group, p1, p2), network=direct)

    slopes, of_serial, curvature = map(np.asarray, derivatives(asked))
    through_host = [each.name for each in fields(Calibration)].index("packing")
    assert np.isfinite(slopes).all()
    assert np.isfinite(curvature).all()
    assert of_serial[0] > 0
    assert (slopes[:, through_host] == 0).all()


def test_one_pe_does_not_communicate() -> None:
    uncertain = replace(SURE, exchange=np.array(0.4))
    assert float(spread(case("none", 1.0, 1.0, uncertain)).communication) == 0


def test_percentiles_lie_about_the_median() -> None:
    low, median, high = (float(quantile(2.0, 0.1, percent)) for percent in PERCENTILES)
    assert median == 2
    assert low * high == pytest.approx(4)
    assert high == pytest.approx(2 * np.exp(0.15332))
