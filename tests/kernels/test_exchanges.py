"""Exchanges on rails and what computing hides of them: the toy, b = 2 samples a replica, by hand.

In a node of 2 PEs 1 s and 4 B/s, beyond it 2 s and the one link's 2 B/s. Items have 4 bytes.
"""

from dataclasses import replace

import numpy as np
import pytest
from toys import LAYERS, NETWORK, PROCESSOR, TIMES, bounds, divide, placement, run

from paradl.kernels.configuration.case import Case
from paradl.kernels.machine.software import Software
from paradl.kernels.names.terms import Terms, list_terms
from paradl.kernels.options import Options
from paradl.kernels.oracle.formulas import time_iteration
from paradl.kernels.oracle.reduction import reduce_part
from paradl.kernels.work.group import share

pytestmark = pytest.mark.usefixtures("in_numpy")

RAILS = Options(oracle="machine")
ALL = 4 * 1640  # bytes of the gradients
WINDOW = 2 / 3 * 2 * 21  # seconds of the backward pass
GROUPS = {
    "none": placement(),
    "spatial": placement(factors=(1, 1, 2)),
    "pipeline": placement(ends=(2, 3)),
    "filter": placement(),
    "channel": placement(),
}


def terms(
    group, p1=1.0, p2=1.0, software=None, network=NETWORK, options=RAILS, layers=LAYERS, **changes
) -> Terms:
    places = GROUPS[group] if p2 > 1 else placement()
    division = divide(places, p2, group, layers, options=options)
    # A PE's own part of each layer takes its share of the time.
    part = share(places.split, p2) if group in ("spatial", "filter", "channel") else np.ones(3)
    own = replace(TIMES, forward=TIMES.forward * part, backward=TIMES.backward * part)
    work, setup = reduce_part(division, own), run(p1, p2, group=group, **changes)
    software = software or Software()
    case = Case(work, bounds(), setup, network, PROCESSOR, software=software, options=options)
    return time_iteration(case).terms


@pytest.mark.parametrize("algorithm", ["ring", "tree", "two-level", "auto"])
@pytest.mark.parametrize("group", GROUPS)
def test_one_pe_is_alone(group, algorithm) -> None:
    software = Software(bucket=1.0, overlap=1.0, jitter=0.5, log_open=1.0)
    one = terms(group, software=software, options=replace(RAILS, algorithm=algorithm))
    assert one.communication == one.hidden_communication == 0


# Gradients.


def test_gradients_of_one_node_and_of_two() -> None:
    inside, across = terms("none", p1=2.0), terms("none", p1=4.0)
    assert inside.gradient_exchange == 2 * (1 + ALL / 2 / 4)
    assert across.gradient_exchange == 6 * (2 + ALL / 4 / 2)
    assert across.communication == across.gradient_exchange
    assert across.hidden_communication == 0


def test_rings_of_groups_share_a_link_and_need_no_contention() -> None:
    """Each PE of a node has a ring: a part of its own of the weights, and half of the link."""
    part = 4 * (1280 + 360 / 2)
    shared = terms("filter", p1=4.0, p2=2.0).gradient_exchange
    assert shared == 6 * (2 + part / 4 / 1)
    slower = terms("filter", p1=4.0, p2=2.0, phi=3.0).gradient_exchange
    assert slower == 6 * (2 + 3 * part / 4 / 1)


def test_very_many_replicas_pay_the_start_ups_of_each() -> None:
    many = terms("none", p1=2.0**20)
    assert many.gradient_exchange == pytest.approx(2 * 2**20 * 2 + 2 * ALL / 2, rel=1e-5)


@pytest.mark.parametrize(
    ("bucket", "messages"),
    [
        (np.inf, 1),
        (2 * ALL, 1),
        (ALL, 1),
        (ALL / 1.5, 1.5),  # a message and a half, on average: no jump where one more is needed
        (ALL / 2, 2),
        (1.0, 3),  # one a layer at most
    ],
)
def test_buckets_leave_while_the_backward_pass_runs(bucket, messages) -> None:
    whole = 6 * (messages * 2 + ALL / 4 / 2)
    sent = terms("none", p1=4.0, software=Software(bucket=bucket, overlap=0.25))
    hidden = (1 - 1 / messages) * 0.25 * WINDOW
    assert sent.gradient_exchange == pytest.approx(whole - hidden)
    assert sent.hidden_communication == pytest.approx(hidden)


def test_the_last_bucket_is_never_hidden() -> None:
    """A fast network: all but the last of three messages is."""
    fast = replace(NETWORK, bandwidth=1e4 * NETWORK.bandwidth, latency=np.zeros(2))
    whole = 6 * ALL / 4 / 2e4
    sent = terms("none", p1=4.0, software=Software(bucket=1.0, overlap=1.0), network=fast)
    assert sent.gradient_exchange == pytest.approx(whole / 3)
    assert sent.hidden_communication == pytest.approx(whole * 2 / 3)


def test_layers_that_run_again_are_part_of_the_backward_pass() -> None:
    software = Software(bucket=ALL / 2, overlap=1.0)
    again = terms("none", p1=4.0, software=software, options=replace(RAILS, recompute="full"))
    assert again.hidden_communication == pytest.approx(1 / 2 * 3 / 4 * 2 * 21)


def test_of_several_passes_gradients_have_the_last_ones() -> None:
    software = Software(bucket=ALL / 2, overlap=1.0)
    once, often = (terms("none", p1=4.0, software=software, accumulate=n) for n in (1.0, 5.0))
    assert often.gradient_exchange == once.gradient_exchange
    assert often.hidden_communication == once.hidden_communication


def test_without_weights_nothing_is_sent() -> None:
    bare = replace(LAYERS, w=np.zeros(3))
    sent = terms("none", p1=4.0, software=Software(bucket=1.0, overlap=1.0), layers=bare)
    assert sent.communication == sent.hidden_communication == 0


# Halos, and the gather where the split ends.


def halo_seconds(alpha: float, beta: float) -> float:
    """Of both convolutions, forward and backward: columns of 4."""
    return 8 * alpha + 2 * 2 * 4 * (8 + 16 + 16 + 32) * beta


@pytest.mark.parametrize("overlap", [0.0, 0.5, 1.0])
def test_halos_hide_behind_their_layers(overlap) -> None:
    sent = terms("spatial", p2=2.0, software=Software(overlap=overlap))
    window = overlap * 2 * 13.5
    assert sent.halo_exchange == pytest.approx(halo_seconds(1, 1 / 4) - window)
    assert sent.hidden_communication == window
    # The next layers wait for all of the split's end: 2 samples of 128 items.
    assert sent.split_gather == 2 * (1 + 8 * 128 / 2 / 4)


def test_what_halos_hide_gradients_cannot() -> None:
    slow = replace(NETWORK, latency=np.array([3.0, 3.0]), bandwidth=np.array([1e4, 1e4]))
    software = Software(bucket=1.0, overlap=1.0)
    sent = terms("spatial", p2=2.0, software=software, network=slow)
    # 24 s and a little of halos are hidden in all 27 s: 3 s are left, of which 2/3 are backward.
    halos = halo_seconds(3, 1e-4)
    left = 2 / 3 * (2 * 13.5 - halos)
    whole = 2 * (3 * 3 + ALL / 2 / 1e4)
    assert sent.halo_exchange == 0
    assert sent.gradient_exchange == pytest.approx(whole - 2 / 3 * left)
    assert sent.hidden_communication == pytest.approx(halos + 2 / 3 * left)


def test_halos_are_hidden_in_each_pass() -> None:
    software = Software(overlap=1.0)
    once, often = (terms("spatial", p2=2.0, software=software, accumulate=n) for n in (1.0, 3.0))
    assert often.halo_exchange == 3 * once.halo_exchange
    assert often.hidden_communication == 3 * once.hidden_communication


def test_staging_bounds_halos_and_carries_gathers_and_nothing_else() -> None:
    """Gathers have a bandwidth of their own, and no start-ups."""
    staged = replace(NETWORK, staging_latency=5.0, staging_bandwidth=0.5)
    sent = terms("spatial", p2=2.0, network=staged)
    assert sent.halo_exchange == halo_seconds(5, 2)
    assert sent.split_gather == 2 * (8 * 128 / 2 / 0.5)
    crowded = replace(staged, phi_gather=3.0)
    slow = terms("spatial", p2=2.0, network=crowded, software=Software(gather_rate=0.25))
    assert slow.split_gather == 4 * 3 * sent.split_gather
    direct = terms("filter", p2=2.0)
    assert terms("filter", p2=2.0, network=staged).layer_collectives == direct.layer_collectives


def test_contention_that_is_stated_multiplies_beta() -> None:
    crowded = replace(NETWORK, phi_halo=4.0, phi_gather=2.0)
    sent = terms("spatial", p2=2.0, network=crowded)
    assert sent.halo_exchange == halo_seconds(1, 4 / 4)
    assert sent.split_gather == 2 * (1 + 2 * 8 * 128 / 2 / 4)


# Layers of filter and channel groups.


@pytest.mark.parametrize(("group", "gathers"), [("filter", 2), ("channel", 3)])
def test_layers_gather_and_reduce(group, gathers) -> None:
    """By filter a gather and a reduce-scatter, by channel an all-reduce, which is two gathers, and
    a gather; computing hides none of them.
    """
    sent = terms(group, p2=2.0, software=Software(overlap=1.0))
    gather = (1 + 8 * 64 / 2 / 4) + (1 + 8 * 128 / 2 / 4)
    assert sent.layer_collectives == gathers * gather
    assert sent.hidden_communication == 0


def test_each_class_of_sizes_takes_its_fastest() -> None:
    """8 PEs in 4 nodes; of one item it is best in two levels, of many by one ring."""
    small = replace(LAYERS, y=np.array([1.0, 1e4, 10]))
    # 7 (2 + m/8 / 2), or 1 (1 + m/2 / 4) + 3 (2 + m/8 / 1): a node's two PEs have half of the link.
    in_levels, around = 7 + 8 * (1 / 8 + 3 / 8), 14 + 8e4 * 7 / 16
    sent = terms("filter", p2=8.0, options=replace(RAILS, algorithm="auto"), layers=small)
    assert sent.layer_collectives == pytest.approx(2 * (in_levels + around))
    assert in_levels < 14 + 8 * 7 / 16
    assert around < 7 + 8e4 / 2


# Stages of a pipeline.


@pytest.mark.parametrize("segments", [1.0, 2.0, 8.0])
@pytest.mark.parametrize("overlap", [0.0, 0.5, 1.0])
def test_stages_hide_all_but_the_first_and_the_last(segments, overlap) -> None:
    sent = terms("pipeline", p2=2.0, segments=segments, software=Software(overlap=overlap))
    once = 1 + 2 / segments * 4 * 128 / 4
    # The slowest stage computes for 2 x 15 s.
    hidden = min(2 * (segments - 1) * once, overlap * (segments - 1) / segments * 2 * 15)
    assert sent.hidden_communication == pytest.approx(hidden)
    assert sent.point_to_point == pytest.approx(2 * segments * once - hidden)


def test_gradients_of_a_stage_hide_behind_its_last_segment() -> None:
    """1,280 weights of one stage, as two messages, of which the other has as many layers."""
    software = Software(bucket=1.0, overlap=1.0)
    sent = terms("pipeline", p1=4.0, p2=2.0, segments=4.0, software=software)
    backward = 2 / 3 * 2 * 15 / 4
    assert sent.gradient_exchange == pytest.approx(6 * (2 * 2 + 4 * 1280 / 4 / 1) - backward / 2)


# Log files, and stragglers.


@pytest.mark.parametrize(
    ("group", "p1", "p2", "opened"),
    [
        ("none", 1, 1, 0),
        ("none", 4, 1, 4),  # the gradients', on every PE
        ("filter", 1, 2, 2 * 2 * 2),  # both convolutions, there and back
        ("filter", 4, 2, (2 * 2 + 1) * 8),
        ("spatial", 1, 2, 2 * 2 * 2),
        ("spatial", 4, 1, 4),
        ("channel", 4, 2, 8),
        ("pipeline", 4, 2, 8),
    ],
)
def test_log_files_are_opened_one_after_the_other(group, p1, p2, opened) -> None:
    sent = terms(group, float(p1), float(p2), software=Software(log_open=0.25))
    assert sent.log_files == 0.25 * opened
    often = terms(group, float(p1), float(p2), software=Software(log_open=0.25), accumulate=3.0)
    gradients = p1 * p2 if p1 > 1 else 0
    assert often.log_files == pytest.approx(0.25 * (3 * (opened - gradients) + gradients))


@pytest.mark.parametrize(
    ("p", "deviations"), [(1, 0), (2, 0.589), (8, 1.43), (1000, 3.23), (2**20, 4.86)]
)
def test_all_wait_for_the_slowest(p, deviations) -> None:
    sent = terms("none", p1=float(p), software=Software(jitter=0.1))
    assert sent.straggler_wait == pytest.approx(0.1 * deviations * 42, rel=3e-3)


def test_the_slowest_of_many_is_the_mean_of_their_largest() -> None:
    """Blom's formula against 4,000 draws of 64 standard normal numbers."""
    drawn = np.random.default_rng(0).standard_normal((4000, 64)).max(axis=1)
    sent = terms("none", p1=64.0, software=Software(jitter=1.0))
    assert sent.straggler_wait / 42 == pytest.approx(drawn.mean(), rel=0.01)


def test_every_pass_waits_and_updates_do_not() -> None:
    often = terms("pipeline", p2=2.0, segments=4.0, accumulate=3.0, software=Software(jitter=0.1))
    z = terms("none", p1=2.0, software=Software(jitter=1.0)).straggler_wait / 42
    computing = often.forward_backward + often.pipeline_bubble
    assert often.straggler_wait == pytest.approx(0.1 * z * computing)


def test_what_is_hidden_is_in_no_sum() -> None:
    sent = terms("spatial", p1=2.0, p2=2.0, software=Software(bucket=1.0, overlap=1.0, jitter=0.1))
    assert sent.hidden_communication > 0
    assert sent.communication == sum(getattr(sent, name) for name in list_terms("communication"))
    assert list_terms("hidden") == ("hidden_communication",)
