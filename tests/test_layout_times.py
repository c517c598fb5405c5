"""Times of layouts of transformers against the scalar reference and the papers' own numbers."""

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

from paradl.kernels.machine.network import Network
from paradl.kernels.machine.rates import Rates
from paradl.kernels.machine.reached import Fabric
from paradl.kernels.machine.software import Software
from paradl.kernels.oracle.block_times import time_exchanges, time_iteration
from tests.test_layouts import (
    build_layouts,
    build_network,
    build_training,
    candidates,
    networks,
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
        launch=draw(st.sampled_from([0.0, 1e-5])),
        expert_launch=draw(st.sampled_from([0.0, 1e-3])),
        pause=draw(st.sampled_from([0.0, 0.1])),
        straggling=draw(st.sampled_from([0.0, 0.01])),
        sends_once=draw(st.booleans()),
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
    )
    values = asdict(speeds)
    shares = {name: values.pop(name) for name in ("rail", "node_reduce", "node_collective")}
    return evaluate(
        mine or build_network(net),
        build_layouts(layouts),
        build_training(net, layouts[0]),
        Rates(**values),
        Fabric.from_network(network, Software(**shares)),
    )


@limit_examples(50)
@given(
    net=networks(),
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
        assert all(total >= result[name] for name, total in exchanged.items())
        for name in ("tensor_exchange", "expert_exchange"):  # nothing hides these
            assert exchanged[name] == result[name]


def test_one_pe_exchanges_nothing():
    seconds = time_layouts(GPT, [scalar.Layout(batch=8)])
    idle = [
        name
        for name in seconds
        if "exchange" in name or name in ("pipeline_bubble", "weight_gather")
    ]
    assert len(idle) == 7
    assert all(seconds[name][0] == 0 for name in idle)
    assert seconds["products"][0] > 0


def test_communication_counts_whether_or_not_it_is_hidden():
    """A stage passes on m v chunks each way; of all but p - 1 messages each way, only start-ups of
    further chunks are exposed."""
    layout = scalar.Layout(
        tensor=2, pipeline=2, chunks=2, schedule="interleaved", data=2, batch=16, zero=1
    )
    hides, plain = replace(PLAIN, hidden_gradients=1.0, hidden_weights=1.0), PLAIN
    exposed = time_layouts(GPT, [layout], hides)
    total = time_layouts(GPT, [layout], hides, evaluate=time_exchanges)
    assert exposed["gradient_exchange"] == exposed["weight_gather"] == 0
    bare = time_layouts(GPT, [layout], plain)
    for name in ("tensor_exchange", "gradient_exchange", "weight_gather"):
        assert total[name] == bare[name] > 0
    further = 2 * 8 * 5e-6  # m (v - 1) start-ups each way
    assert total["stage_exchange"] == pytest.approx(8 * 2 * (exposed["stage_exchange"] - further))


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
    seconds = time_layouts(GPT, [layout])
    terms = ("products", "attention", "logits", "recomputation")
    flops = sum(seconds[name][0] for name in terms) * PLAIN.peak
    s, h, wide = GPT.sequence, GPT.hidden, GPT.vocabulary
    share = 1 + s / (6 * h) + wide / (16 * GPT.layers * h)
    assert flops == pytest.approx(96 * 8 * GPT.layers * s * h**2 * share)


@pytest.mark.parametrize(
    ("head", "kv_heads", "t", "held"),
    [(0, 0, 2, 8), (0, 4, 2, 2), (0, 2, 4, 1), (256, 16, 1, 16), (16, 2, 2, 1)],
)
@pytest.mark.parametrize("by", ["ring", "all_gather", "all_to_all"])
def test_context_exchanges_whole_heads_of_their_own_size(by, head, kv_heads, t, held):
    """A head has 128 features in T5-11B, 1,024 features and 128 heads; no PE has part of one."""
    net, size = replace(GPT, head=head, kv_heads=kv_heads), head or 64
    layout = scalar.Layout(tensor=t, context=2, context_by=by, batch=1)
    node = replace(MACHINE, pes_per_node=8, levels=[(8, 2e-6, 2e11)])
    seconds = time_layouts(net, [layout], machine=node, evaluate=time_exchanges)
    tokens, width = 512 / 2, size * 2
    keys = 2 * tokens * held * width
    # Both PEs' keys are gathered, each of which sends its own, as in a ring.
    one = 3 * (2e-6 + keys / 2e11)
    if by == "all_to_all":  # half of each PE's queries and outputs, keys and values go to the other
        sent = 2 * tokens * 16 / t * width + keys
        one = 2 * (2 * 2e-6 + sent / 2 / 2e11)
    assert seconds["context_exchange"] == pytest.approx(4 * one)


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


@pytest.mark.parametrize(("k", "links", "t", "c"), [(4, 1, 4, 2), (2, 2, 1, 4)])
def test_all_to_all_shares_the_links_of_a_node(k, links, t, c):
    """All PEs of a node leave it at once: k/L of a link's time."""
    levels = [(k, 2e-6, 2e11), (4096, 5e-6, 2e10)]
    machine = reference_network.Network(pes_per_node=k, links_per_node=links, levels=levels)
    layout = scalar.Layout(tensor=t, context=c, context_by="all_to_all", batch=1)
    seconds = time_layouts(GPT, [layout], machine=machine)["context_exchange"][0]
    same_place = max(1, k // t)
    nodes, inside = c // min(c, same_place), min(c, same_place)
    size = 4 * 512 / c * 1024 / t * 2
    one = (inside - 1) * (2 * 2e-6 + size / c / 2e11) + (nodes - 1) * 2 * 5e-6
    one += (c - inside) / c * size * k / (links * 2e10)
    assert seconds == pytest.approx(4 * 2 * one)


def test_experts_computed_again_route_again():
    """Megatron-LM's `moe` checkpoints the layer, its router's product with it."""
    net = replace(GPT, experts=4, top_k=2, expert_ffn=1024)
    layout = scalar.Layout(batch=8, recompute=frozenset({"moe"}))
    seconds = time_layouts(net, [layout])["recomputation"][0]
    routed = 2 * 512 * 1024 * (4 + 2 * 2 * 1024)
    assert seconds == pytest.approx(8 * 4 * routed / PLAIN.peak)


@pytest.mark.parametrize(("width", "peak"), [(64, PLAIN.wide_peak), (60, PLAIN.vector_peak)])
def test_unfused_attention_of_odd_heads_does_without_tensor_cores(width, peak):
    """Rows of 60 items are no multiple of 16 bytes; BLOOM's trials of 128 heads took 1.4 times."""
    net = replace(GPT, head=width)
    layout = scalar.Layout(batch=1, fused_attention=False)
    seconds = time_layouts(net, [layout])["attention"][0]
    assert seconds == pytest.approx(3 * 4 * 4 * 512**2 * 16 * width / peak)


def test_narrow_inputs_are_cast():
    """Read in 2 bytes, written twice in 1; gradients likewise: 8 bytes an item more than bf16."""
    narrow, wide = (
        time_layouts(GPT, [scalar.Layout(batch=1, precision=name)])["elementwise"][0]
        for name in ("fp8", "bf16")
    )
    items = 4 * 512 * (3 * 1024 + 4096)  # norms' two, the projection's, the second matrix's
    assert narrow - wide == pytest.approx(items * 8 / PLAIN.bandwidth)


def test_groups_that_share_states_gather_inside():
    """HSDP: weights are gathered over `shard` ranks, whose sums are reduced across groups."""
    whole = scalar.Layout(data=16, batch=16, zero=1)
    parted = replace(whole, node_shards=4)
    machine = replace(MACHINE, links_per_node=1)
    all_of, some = (time_layouts(GPT, [value], machine=machine) for value in (whole, parted))
    over = reference_network.ring(machine, 16, 4, 1)
    held = scalar.held_parameters(GPT, parted, 0)
    size = 2 * (held.tensor + held.replicated)
    assert some["weight_gather"][0] == pytest.approx(
        reference_network.all_gather("auto", over, size)
    )
    assert some["weight_gather"][0] < all_of["weight_gather"][0]


@pytest.mark.parametrize("pes", [1, 8])
def test_stragglers_slow_down_each_doubling(pes):
    speeds = replace(PLAIN, pause=0.5, straggling=0.01)
    result = time_layouts(GPT, [scalar.Layout(data=pes, batch=pes)], speeds)
    busy = sum(seconds[0] for name, seconds in result.items() if name != "waiting")
    assert result["waiting"][0] == pytest.approx(0.5 + 0.01 * np.log2(pes) * busy)
