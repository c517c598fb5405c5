"""Terms of an iteration of the toy, b = 2 samples a replica, by hand.

Rings of 2: alpha 1 s, beta 1/4 s/B; of more: 2 s and 1/2 s/B. Items have 4 bytes.
"""

from dataclasses import replace

import numpy as np
import pytest
from toys import NETWORK, PROCESSOR, TIMES, bounds, divide, placement, run

from paradl.kernels.configuration.case import Case
from paradl.kernels.configuration.run import add_terms, extend_to_epoch
from paradl.kernels.names.terms import TERMS, Terms, list_terms
from paradl.kernels.options import Options
from paradl.kernels.oracle.formulas import time_iteration
from paradl.kernels.oracle.table_iii import reduce_table

pytestmark = pytest.mark.usefixtures("in_numpy")

ALL = 4 * 1640  # bytes of the gradients
GROUPS = {
    "none": placement(),
    "spatial": placement(factors=(1, 1, 2)),
    "pipeline": placement(ends=(2, 3)),
    "filter": placement(),
    "channel": placement(),
}


def terms(group, p1=1.0, p2=1.0, network=NETWORK, options=None, **changes) -> Terms:
    options = options or Options()
    setup = run(p1, p2, **changes)
    places = GROUPS[group] if p2 > 1 else placement()
    division = divide(places, p2, group, options=options)
    work = reduce_table(division, TIMES)
    case = Case(work, bounds(), setup, network, PROCESSOR, options=options)
    return time_iteration(case).terms


def test_one_pe_computes_and_is_alone() -> None:
    seconds = terms("none")
    assert seconds.forward_backward == 2 * 21
    assert seconds.weight_update == 4.5
    assert seconds.pipeline_bubble == 0
    assert seconds.communication == 0


def test_data() -> None:
    seconds = terms("none", p1=4.0)
    assert seconds.compute == 2 * 21 + 4.5
    assert seconds.gradient_exchange == 2 * 3 * (2 + ALL / 4 / 2)
    assert seconds.communication == seconds.gradient_exchange


@pytest.mark.parametrize("group", ["filter", "channel"])
def test_filter_and_channel(group) -> None:
    seconds = terms(group, p2=2.0)
    assert seconds.forward_backward == 2 * 13.5
    assert seconds.weight_update == 3.75
    # AG + AR of conv1 and of conv2: 2 samples of 64 and 128 items
    assert seconds.layer_collectives == 3 * (1 + 8 * 64 / 2 / 4) + 3 * (1 + 8 * 128 / 2 / 4)
    assert seconds.communication == seconds.layer_collectives


def test_spatial() -> None:
    seconds = terms("spatial", p2=2.0)
    assert seconds.forward_backward == 2 * 13.5
    # two messages each way, of 8 and 16 items for conv1 and of 16 and 32 for conv2
    halos = [2 * (1 + 8 * items / 4) for items in (8, 16, 16, 32)]
    assert seconds.halo_exchange == sum(halos)
    assert seconds.split_gather == 2 * (1 + 8 * 128 / 2 / 4)
    assert seconds.gradient_exchange == 2 * (1 + ALL / 2 / 4)  # weights are replicated
    assert seconds.layer_collectives == seconds.point_to_point == 0


def test_pipeline() -> None:
    """Two segments of one sample; conv2 passes 128 items on."""
    seconds = terms("pipeline", p2=2.0)
    assert seconds.forward_backward == 2 * 15
    assert seconds.pipeline_bubble == 2 * 15 * (2 - 1) / 2
    assert seconds.weight_update == 3
    assert seconds.point_to_point == 2 * (2 + 2 - 2) * (1 + 1 * 4 * 128 / 4)
    assert seconds.communication == seconds.point_to_point


@pytest.mark.parametrize(
    ("group", "items"), [("filter", 180 + 1280), ("channel", 180 + 1280), ("pipeline", 1280)]
)
def test_replicas_of_groups_that_split_weights_reduce_a_part(group, items) -> None:
    seconds = terms(group, p1=4.0, p2=2.0)
    assert seconds.gradient_exchange == 2 * 3 * (2 + 4 * items / 4 / 2)


def test_replicas_of_spatial_groups_make_one_ring_of_all_pes() -> None:
    seconds = terms("spatial", p1=4.0, p2=2.0)
    assert seconds.gradient_exchange == 2 * 7 * (2 + ALL / 8 / 2)


def test_or_reduce_inside_each_group_and_then_across() -> None:
    seconds = terms("spatial", p1=4.0, p2=2.0, options=Options(allreduce="hierarchical"))
    inside, across = 2 * 1 * (1 + ALL / 2 / 4), 2 * 3 * (2 + ALL / 4 / 2)
    assert seconds.gradient_exchange == inside + across


@pytest.mark.parametrize("group", ["none", "filter", "pipeline"])
def test_where_a_group_splits_weights_the_reduction_has_one_level(group) -> None:
    ring = terms(group, p1=4.0, p2=2.0)
    hierarchical = terms(group, p1=4.0, p2=2.0, options=Options(allreduce="hierarchical"))
    assert ring.gradient_exchange == hierarchical.gradient_exchange


def test_phi_multiplies_the_beta_of_the_gradient_exchange_alone() -> None:
    seconds = terms("filter", p1=4.0, p2=2.0, phi=3.0)
    assert seconds.gradient_exchange == 2 * 3 * (2 + 3 * 4 * 1460 / 4 / 2)
    assert seconds.layer_collectives == terms("filter", p1=4.0, p2=2.0).layer_collectives


def test_inside_the_group_phi_does_not_count() -> None:
    options = Options(allreduce="hierarchical")
    seconds = terms("spatial", p1=4.0, p2=2.0, options=options, phi=3.0)
    inside, across = 2 * 1 * (1 + ALL / 2 / 4), 2 * 3 * (2 + 3 * ALL / 4 / 2)
    assert seconds.gradient_exchange == inside + across


def test_staging_and_contention_of_the_spatial_exchanges() -> None:
    """5 s and 2 B/s through host memory are slower than the node's 1 s and 4 B/s."""
    staged = replace(
        NETWORK, staging_latency=5.0, staging_bandwidth=2.0, phi_halo=3.0, phi_gather=7.0
    )
    seconds, direct = terms("spatial", p2=2.0, network=staged), terms("spatial", p2=2.0)
    assert seconds.halo_exchange == sum(2 * (5 + 8 * items * 3 / 2) for items in (8, 16, 16, 32))
    assert seconds.split_gather == 2 * (5 + 8 * 128 / 2 * 7 / 2)
    assert seconds.gradient_exchange == direct.gradient_exchange


def test_the_best_algorithm_is_the_cheaper_one_layer_by_layer() -> None:
    """In a group of 8, 4 bytes of conv1 go down a tree and 8 bytes of conv2 round a ring."""
    tree, ring = 3 * (2 + 4 / 2), 7 * (2 + 8 / 8 / 2)
    assert tree < 7 * (2 + 4 / 8 / 2)
    assert ring < 3 * (2 + 8 / 2)
    seconds = terms("filter", p2=8.0, options=Options(algorithm="best"), batch=1 / 64)
    assert seconds.layer_collectives == pytest.approx(3 * tree + 3 * ring)


def test_terms_of_an_epoch() -> None:
    """15 samples, 2 at a time: the last iteration is half empty."""
    names = ("forward_backward", "pipeline_bubble", "weight_update", "split_overhead")
    ones = add_terms(Terms(*np.ones(len(TERMS))))
    exact = extend_to_epoch(ones, run(samples=15.0), Options())
    assert [getattr(exact.terms, name) for name in vars(exact.terms)] == [7.5] * len(TERMS)
    whole = extend_to_epoch(ones, run(samples=15.0), Options(iterations="ceil"))
    assert [getattr(whole.terms, name) for name in names] == [7.5, 7.5, 8, 8]
    assert whole.compute == 2 * 7.5 + len(list_terms("compute", "iteration")) * 8
    assert whole.communication == len(list_terms("communication")) * 8
