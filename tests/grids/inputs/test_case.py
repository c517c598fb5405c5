"""Cases: effects of settings on the kernels' inputs and on the answers."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from paradl.grids.entries.strategies import parse_strategy
from paradl.grids.inputs.case import build_case, divide_rows
from paradl.grids.inputs.values import Settings
from paradl.grids.inputs.workload import Workload
from paradl.grids.library import find
from paradl.kernels.arrays import Cells
from paradl.kernels.configuration.answers import Answer
from paradl.kernels.configuration.case import Case
from paradl.kernels.divisors import list_divisors
from paradl.kernels.names.flags import FORBIDS
from paradl.kernels.names.terms import TERMS
from paradl.kernels.oracle.answer import answer_case
from paradl.kernels.work.layers import Layers


def workload(model="resnet50", dataset="imagenet-226", system="abci", measured=True) -> Workload:
    network, data = find("model", model, Path()), find("dataset", dataset, Path())
    machine = find("system", system, Path())
    seconds = network.seconds(data, machine.pe.device) if measured else None
    return Workload(network.table(data), data.samples, machine, seconds)


WORKLOAD = workload()


def case(
    strategy="data", pe=(64,), batch=(32,), scaling="weak", of=WORKLOAD, axes=None, **fixed
) -> Case:
    axes = {"pe": np.array(pe, float), "batch": np.array(batch, float)} | (axes or {})
    built = build_case(of, parse_strategy(strategy), axes, Settings(fixed, scaling))
    assert isinstance(built, Case)
    return built


def layers(of: Workload) -> Layers:
    axes = {"pe": np.array([64.0]), "batch": np.array([32.0])}
    return divide_rows(of, parse_strategy("data"), axes, Settings({})).groups.layers


def number(value: Cells) -> float:
    """Return the only value of an array."""
    return float(np.asarray(value).item())


def numbers(query: Case) -> np.ndarray:
    """Return all terms, and the memory, of a case of one cell."""
    result = answer_case(query)
    return np.array(
        [*(getattr(result.terms, name).item() for name in TERMS), number(result.memory)]
    )


# Overrides by parameters.


def test_a_system_as_it_stands() -> None:
    network, pe = case().network, case().pe
    assert network.span.tolist() == [4, 68, 136, 4352]
    assert network.latency.ravel().tolist() == [9e-6, 40.31e-6, 40.49e-6, 40.98e-6]
    assert network.bandwidth.ravel().tolist() == [50e9, 12.5e9, 12.5e9, 12.5e9]
    assert (number(network.staging_latency), number(network.staging_bandwidth)) == (3e-3, 16e9)
    assert (number(network.phi_halo), number(network.phi_gather)) == (8, 2)
    assert (number(pe.peak_flops), number(pe.efficiency)) == (15.7e12, 0.5)
    assert (number(pe.memory_capacity), number(pe.memory_bandwidth)) == (16e9, 900e9)


def test_intra_is_the_node_and_inter_all_levels_beyond() -> None:
    fixed = {"intra_latency": 1.0, "intra_bandwidth": 2.0}
    network = case(**fixed).network
    assert network.latency.ravel().tolist() == [1, 40.31e-6, 40.49e-6, 40.98e-6]
    assert network.bandwidth.ravel().tolist() == [2, 12.5e9, 12.5e9, 12.5e9]
    network = case(inter_latency=1.0, inter_bandwidth=2.0).network
    assert network.latency.ravel().tolist() == [9e-6, 1, 1, 1]
    assert network.bandwidth.ravel().tolist() == [50e9, 2, 2, 2]


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("staging_latency", "network"),
        ("staging_bandwidth", "network"),
        ("phi_halo", "network"),
        ("phi_gather", "network"),
        ("peak_flops", "pe"),
        ("efficiency", "pe"),
        ("memory_bandwidth", "pe"),
        ("memory_capacity", "pe"),
        ("delta", "run"),
        ("gamma", "run"),
        ("phi", "run"),
        ("segments", "run"),
    ],
)
def test_a_parameter_is_fixed_or_an_axis(name, part) -> None:
    fixed = case(**{name: 3.0})
    assert getattr(getattr(fixed, part), name).item() == 3
    axis = case(axes={name: np.array([3.0, 5.0])})
    values = getattr(getattr(axis, part), name)
    assert values.shape[:2] == (1, 1)
    assert values.ravel().tolist() == [3, 5]


def test_an_axis_of_bandwidths_spares_the_other_levels() -> None:
    bandwidth = case(axes={"inter_bandwidth": np.array([1e9, 2e9])}).network.bandwidth
    assert bandwidth.shape == (4, 1, 1, 2)
    assert bandwidth[:, 0, 0, 1].tolist() == [50e9, 2e9, 2e9, 2e9]


def test_hosts_feed_what_their_system_states() -> None:
    system = WORKLOAD.system.model_copy(update={"input_rate": 500.0})
    assert number(case(of=replace(WORKLOAD, system=system)).network.input_rate) == 500
    assert number(case().network.input_rate) == np.inf


def test_a_system_without_staging_has_none() -> None:
    network = case(of=workload(system="dgx-h100")).network
    assert (number(network.staging_latency), number(network.staging_bandwidth)) == (0, np.inf)


# Replicas, groups and batches.


@pytest.mark.parametrize(
    ("strategy", "pe", "phi"),
    [
        ("data", 64, 1),
        ("data+spatial", 64, 1),  # whole weights: one ring
        ("data+filter", 64, 2),  # four rings on a node's two links
        ("data+pipeline:group=8", 64, 2),
        ("data+channel:group=2", 64, 1),
        ("data+filter", 4, 1),  # one replica
        ("filter", 64, 1),
    ],
)
def test_contention_of_the_gradient_exchange(strategy, pe, phi) -> None:
    assert number(case(strategy, pe=[pe]).run.phi) == phi
    assert number(case(strategy, pe=[pe], phi=3.0).run.phi) == 3


# Compute times.


def test_measured_layers_take_what_was_measured() -> None:
    """ResNet-50 on V100: 3.1195 ms per sample, whatever the bytes per item."""
    for delta in (2.0, 4.0):
        epoch = answer_case(case("serial", pe=[1], delta=delta))
        seconds = number(epoch.terms.forward_backward) / WORKLOAD.samples
        assert seconds == pytest.approx(3.119502e-3, rel=1e-12)


def test_a_faster_pe_speeds_measured_layers_up() -> None:
    usual, twice = (
        numbers(case("serial", pe=[1], peak_flops=n * 15.7e12, memory_bandwidth=n * 900e9))[0]
        for n in (1, 2)
    )
    assert usual / twice == pytest.approx(2)


def test_the_roofline_where_nothing_was_measured() -> None:
    known, unknown = WORKLOAD, workload(measured=False)
    assert (layers(unknown).slowdown == 1).all()
    assert not (layers(known).slowdown == 1).any()


# The best group.


@pytest.mark.parametrize(
    ("strategy", "pe"),
    [
        ("data+filter", 1),
        ("data+filter", 13),  # a prime: only all of them
        ("data+filter", 24),
        ("data+filter", 200),  # groups of 100 and 200 have too many PEs
        ("data+pipeline", 32),
        ("data+spatial", 32),
    ],
)
def test_the_best_group_is_the_fastest_allowed_divisor(strategy, pe) -> None:
    best = answer_case(case(f"{strategy}:group=best", pe=[pe]))
    values = by_group(strategy, pe)
    allowed = [result for result in values if not result.limit.item() & FORBIDS]
    fastest = min(allowed or values, key=time)
    assert best.group == fastest.group
    assert time(best) == pytest.approx(time(fastest), rel=1e-12)


def by_group(strategy, pe, **fixed) -> list[Answer]:
    """Return the answers for every group size that divides p."""
    groups = list_divisors(pe)[1:] or (1,)
    return [answer_case(case(f"{strategy}:group={n}", pe=[pe], **fixed)) for n in groups]


def time(result) -> float:
    return (result.compute + result.communication).item()
