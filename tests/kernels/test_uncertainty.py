"""Spreads of the toy's times: against draws, and cause by cause."""

from dataclasses import fields, replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from toys import LAYERS, NETWORK, PROCESSOR, TIMES, placement, run

from kernels import uncertainty
from kernels.calibrated import iteration_terms
from kernels.calibration import Calibration
from kernels.compute import PE
from kernels.group import GroupWork
from kernels.network import Network
from kernels.run import Options, Run
from kernels.strategy import group_work
from kernels.uncertainty import STEPS, Uncertainty, moved_times, own_error, quantile

KNOWN = Calibration(
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
spread = jax.jit(uncertainty.spread, static_argnames="options")
CASES = [("none", 4.0, 1.0), ("filter", 1.0, 2.0), ("channel", 3.0, 2.0), ("spatial", 2.0, 2.0)]


def asked(group, p1, p2):
    places = placement(factors=(1, 1, 2)) if group == "spatial" else placement()
    work = group_work(group, LAYERS, TIMES, places, p2, "ring")
    return work, run(p1, p2), STAGED, PROCESSOR, KNOWN, Options()


@pytest.mark.parametrize(("group", "p1", "p2"), CASES)
def test_the_first_order_is_what_draws_show(group, p1, p2) -> None:
    draw = np.random.default_rng(1)
    directions = draw.normal(size=(SIZE, SIZE)) * 0.01
    doubt = replace(SURE, directions=directions, serial_time=np.array(0.02))
    found = spread(*asked(group, p1, p2), doubt)
    steps, slower = draw.normal(size=(4000, SIZE)), draw.normal(size=4000)

    work, setup, network, pe, known, options = asked(group, p1, p2)

    def times(step, serial):
        offsets = Calibration(*(step @ directions))
        with_offsets = (offsets, 0.02 * serial)
        return jnp.stack(moved_times(work, setup, network, pe, known, options, *with_offsets))

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
    found = spread(*asked(group, p1, p2), SURE)
    assert [float(each) for each in vars(found).values()] == [0, 0, 0]


def test_errors_are_of_the_flows_that_they_name() -> None:
    doubt = replace(
        SURE,
        serial=np.array(0.1),
        group=np.array(0.2),
        reduce=np.array(0.3),
        exchange=np.array(0.4),
        widening=np.array(2.0),
    )
    data = spread(*asked("none", 4.0, 1.0), doubt)
    assert (float(data.compute), float(data.communication)) == pytest.approx((0.2, 0.6))
    alone = spread(*asked("filter", 1.0, 2.0), doubt)
    assert (float(alone.compute), float(alone.communication)) == pytest.approx((0.4, 0.8))
    terms = iteration_terms(*asked("filter", 3.0, 2.0))
    hybrid = spread(*asked("filter", 3.0, 2.0), doubt)
    reduced, exchanged = float(terms.gradient_exchange), float(terms.layer_collectives)
    expected = 2 * np.hypot(0.3 * reduced, 0.4 * exchanged) / (reduced + exchanged)
    assert float(hybrid.communication) == pytest.approx(expected)
    work, setup, *_ = asked("filter", 3.0, 2.0)
    assert float(hybrid.total) == pytest.approx(float(own_error(terms, work, setup, doubt)))


@jax.jit
def derivatives(
    work: GroupWork, setup: Run, network: Network, pe: PE, known: Calibration
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Of both times, by the offsets and by the serial time; of their sum, by the offsets twice."""

    def times(offsets, serial):
        at = Calibration(*offsets)
        return jnp.stack(moved_times(work, setup, network, pe, known, Options(), at, serial))

    offsets, serial = jnp.zeros(SIZE), jnp.zeros(())
    slopes = jax.jacrev(times, (0, 1))(offsets, serial)
    return *slopes, jax.hessian(lambda at: times(at, serial).sum())(offsets)


@pytest.mark.parametrize(("group", "p1", "p2"), [*CASES, ("filter", 3.0, 2.0), ("none", 1.0, 1.0)])
def test_a_machine_without_a_path_through_host_memory_has_derivatives(group, p1, p2) -> None:
    """It is told as one without start-up and of infinite bandwidth."""
    direct = replace(NETWORK, staging_latency=np.array(0.0), staging_bandwidth=np.array(np.inf))
    work, setup, _, pe, known, _ = asked(group, p1, p2)
    slopes, of_serial, curvature = map(np.asarray, derivatives(work, setup, direct, pe, known))
    through_host = [each.name for each in fields(Calibration)].index("packing")
    assert np.isfinite(slopes).all()
    assert np.isfinite(curvature).all()
    assert of_serial[0] > 0
    assert (slopes[:, through_host] == 0).all()


def test_one_pe_does_not_communicate() -> None:
    doubt = replace(SURE, exchange=np.array(0.4))
    assert float(spread(*asked("none", 1.0, 1.0), doubt).communication) == 0


def test_percentiles_lie_about_the_median() -> None:
    low, median, high = (float(quantile(2.0, 0.1, percent)) for percent in STEPS)
    assert median == 2
    assert low * high == pytest.approx(4)
    assert high == pytest.approx(2 * np.exp(0.15332))
