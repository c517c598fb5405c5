"""Times of layouts of transformers against the scalar reference and the papers' own numbers."""

import math
from dataclasses import asdict, replace

import numpy as np
import pytest
import reference_network
import reference_transformers as scalar
import reference_transformers_time as hand
from budgets import limit_examples
from hypothesis import given
from hypothesis import strategies as st
from reference_transformers_layouts import MARKS, Place, limits

from paradl.kernels.arrays import use_numpy
from paradl.kernels.machine.network import Network
from paradl.kernels.machine.rates import Rates
from paradl.kernels.machine.software import Software
from paradl.kernels.machine.speeds import Fabric
from paradl.kernels.oracle.block_times import time_exchanges, time_iteration
from tests.test_layouts import (
    ANY_NETWORK,
    build_layouts,
    build_network,
    build_training,
    candidates,
    trainings,
)

PLAIN = hand.Rates(1e14, 1e14, 1e13, 1e12, 1.0, 0.0, 0.7, 1.0, 1.0)
GPT = scalar.Network(4, 1024, 16, 4096, 12800, 512)
MACHINE = reference_network.Network(
    pes_per_node=4, links_per_node=2, levels=[(4, 2e-6, 2e11), (4096, 5e-6, 2e10)]
)


@st.composite
def machines(draw):
    """One to three levels, as the reference has them; rings may lie across their borders."""
    k = draw(st.sampled_from([2, 4, 8, 3, 1, 9, 12]))
    levels = [(k, 2e-6, 2e11), (4 * k, 4e-6, 4e10), (4096 * k, 5e-6, 2e10)]
    levels = draw(st.sampled_from([levels[::2], levels]))
    if draw(st.booleans()):
        k, levels = 4096, [(4096, 3e-6, 1e11)]
    narrow = st.sampled_from([1.0, 1.0, 3.0])
    switches = draw(st.sampled_from([None, 1e-6, 25e-6]))
    return reference_network.Network(
        pes_per_node=k,
        links_per_node=draw(st.sampled_from([1, 2, 4, 8])),
        levels=[(*level, draw(narrow)) for level in levels],
        switch_latency=switches,
        shared=draw(st.sampled_from([math.inf, 3e11])),
    )


@st.composite
def rates(draw):
    share = st.sampled_from([0.0, 0.5, 1.0])
    return hand.Rates(
        peak=draw(st.sampled_from([1e12, 1e15])),
        wide_peak=draw(st.sampled_from([5e11, 1e15])),
        vector_peak=1e11,
        bandwidth=draw(st.sampled_from([1e11, 3e12])),
        reach=draw(st.sampled_from([0.5, 0.7])),
        product_moves=draw(st.sampled_from([0.0, 1.6])),
        attention=draw(st.sampled_from([0.3, 0.7])),
        passes=draw(st.sampled_from([0.0, 2.0])),
        score_passes=draw(st.sampled_from([0.0, 9.0])),
        rail=draw(st.sampled_from([0.6, 1.0])),
        node_reduce=draw(st.sampled_from([0.5, 1.0])),
        node_collective=draw(st.sampled_from([0.7, 1.0])),
        hidden_gradients=draw(share),
        hidden_weights=draw(share),
        hidden_tensor=draw(share),
        hidden_experts=draw(share),
        messages=draw(st.sampled_from(["one", "blocks", "buckets"])),
        launch=draw(st.sampled_from([0.0, 1e-5])),
        expert_launch=draw(st.sampled_from([0.0, 1e-3])),
        checkpoint_wait=draw(st.sampled_from([0.0, 1e-3])),
        pause=draw(st.sampled_from([0.0, 0.1])),
        straggling=draw(st.sampled_from([0.0, 0.01])),
        sends_once=draw(st.booleans()),
        host=draw(st.sampled_from([1e8, 1e10])),
        hidden_host=draw(share),
    )


CASES = (
    st.builds(
        lambda base, by: replace(base, context_by=by),
        trainings(),
        st.sampled_from(["ring", "all_gather", "all_to_all"]),
    )
).flatmap(lambda base: st.tuples(st.just(base), st.lists(candidates(base), min_size=1, max_size=8)))


def time_layouts(net, layouts, speeds=PLAIN, machine=MACHINE, evaluate=time_iteration, mine=None):
    """The production's {term: [layouts]} of a reference's case; mine: of another network."""
    levels = [machine.level(j) for j in range(len(machine.levels))]
    span, latency, bandwidth, oversubscription = np.array(levels).T
    network = Network(
        span=span,
        latency=latency,
        bandwidth=bandwidth,
        pes_per_node=float(machine.pes_per_node),
        links_per_node=float(machine.links_per_node),
        staging_bandwidth=np.inf,
        staging_latency=0.0,
        phi_halo=1.0,
        phi_gather=1.0,
        oversubscription=oversubscription,
        switch_latency=machine.switch_latency,
        shared=machine.shared,
    )
    values = asdict(speeds)
    shares = {name: values.pop(name) for name in ("rail", "node_reduce", "node_collective")}
    with use_numpy():
        fabric = Fabric.from_network(network, Software(**shares))
    return evaluate(
        mine or build_network(net),
        build_layouts(layouts),
        build_training(net, layouts[0]),
        Rates(**values),
        fabric,
    )


@limit_examples(80)
@given(
    net=ANY_NETWORK,
    case=CASES,
    speeds=rates(),
    machine=machines(),
)
def test_as_the_scalar_reference(net, case, speeds, machine):
    kept = [layout for layout in case[1] if not limits(net, layout, Place(layout.pes)) - MARKS]
    if not kept:
        return
    mine = time_layouts(net, kept, speeds, machine)
    all_of = time_layouts(net, kept, speeds, machine, time_exchanges)
    for number, layout in enumerate(kept):
        stages = hand.iterations(net, layout, speeds, machine)
        totals = [sum(stage.values()) for stage in stages]
        result = {name: float(seconds[number]) for name, seconds in mine.items()}
        assert sum(result.values()) == pytest.approx(max(totals), rel=1e-9), (
            layout,
            result,
            stages,
        )
        # Rounding may decide between equal stages.
        longest = [
            s for s, total in zip(stages, totals, strict=True) if total > max(totals) * (1 - 1e-9)
        ]
        same = [stage for stage in longest if stage == pytest.approx(result, rel=1e-9, abs=1e-15)]
        assert same, (result, longest)
        case = hand.Case(net, layout, speeds, machine)
        expected = [hand.communication_of_stage(case, stages.index(stage)) for stage in same]
        exchanged = {name: float(seconds[number]) for name, seconds in all_of.items()}
        assert pytest.approx(exchanged, rel=1e-9, abs=1e-15) in expected
        assert all(total >= result[name] * (1 - 1e-12) for name, total in exchanged.items())


def test_groups_of_three_nodes_leave_the_fourth_of_a_rack_idle():
    """Nodes are whole, and the racks as good as those of three."""
    layout = scalar.Layout(data=6, pipeline=2, batch=12)
    four, three = (
        replace(
            MACHINE, pes_per_node=2, levels=[(2, 2e-6, 2e11), (pes, 4e-6, 4e10), (96, 9e-6, 1e9)]
        )
        for pes in (8, 6)
    )
    assert time_layouts(GPT, [layout], machine=four) == time_layouts(GPT, [layout], machine=three)


@pytest.mark.parametrize(("again", "reduces"), [((), 4), (("core_attn",), 4), (("blocks",), 6)])
def test_all_reduces_of_tensor(again, reduces):
    """SC21, section 3.2: 4 of a block and micro-batch, 6 where it is computed again."""
    layout = scalar.Layout(tensor=4, batch=8, recompute=frozenset(again))
    seconds = time_layouts(GPT, [layout])["tensor_exchange"][0]
    over = reference_network.ring(MACHINE, 4, 4, 1)
    one = reference_network.all_reduce("auto", over, 512 * 1024 * 2)
    assert seconds == pytest.approx(8 * 4 * reduces * one)


@pytest.mark.parametrize(("p", "v"), [(2, 1), (2, 2), (4, 1)])
def test_bubble_of_a_pipeline(p, v):
    """SC21, section 2.2: (p - 1) / (v m) of the time of the micro-batches."""
    schedule = "interleaved" if v > 1 else "1f1b"
    layout = scalar.Layout(pipeline=p, chunks=v, schedule=schedule, batch=8)
    result = {name: seconds[0] for name, seconds in time_layouts(GPT, [layout]).items()}
    once = ("pipeline_bubble", "stage_exchange", "gradient_exchange", "weight_gather", "optimizer")
    busy = sum(seconds for name, seconds in result.items() if name not in once)
    assert result["pipeline_bubble"] == pytest.approx((p - 1) / (v * 8) * busy)


def test_flops_of_an_iteration():
    """SC21, equation 3: 96 B l s h^2 (1 + s/6h + V/16lh), whole blocks computed again."""
    layout = scalar.Layout(batch=8, recompute=frozenset({"blocks"}), fused_attention=False)
    # Without the time that memory takes.
    seconds = time_layouts(GPT, [layout], replace(PLAIN, bandwidth=1e30))
    terms = ("products", "attention", "logits", "recomputation")
    flops = sum(seconds[name][0] for name in terms) * PLAIN.peak
    s, h, wide = GPT.sequence, GPT.hidden, GPT.vocabulary
    share = 1 + s / (6 * h) + wide / (16 * GPT.layers * h)
    assert flops == pytest.approx(96 * 8 * GPT.layers * s * h**2 * share)


def test_blocks_of_other_heads_and_experts_are_their_own():
    """Of two networks with half of their blocks each: layers of one's own may differ."""
    some = replace(GPT, experts=4, top_k=2, expert_ffn=1024)
    nets = [some, replace(some, experts=16, heads=8, kv_heads=2)]
    first, second = map(build_network, nets)
    mixed = replace(
        first,
        kinds=(*first.kinds, *second.kinds),
        order=(0, 1, 0, 1),
        heads=(8, 16),
        kv_heads=(2, 16),
        experts=(4, 16),
    )
    # A second to route tokens to experts, beside which no device counts.
    speeds = replace(PLAIN, product_moves=1.6, expert_launch=1.0)
    layout = scalar.Layout(
        tensor=2, context=2, context_by="all_to_all", expert=4, sequence_parallel=True, batch=1
    )
    both, *alone = (
        time_layouts(some, [layout], speeds, mine=net) for net in (mixed, first, second)
    )
    for name in ("products", "attention", "launch_wait", "context_exchange", "expert_exchange"):
        assert both[name] > 0
        assert both[name] == pytest.approx(sum(seconds[name] for seconds in alone) / 2), name
