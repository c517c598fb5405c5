"""The scalar reference of layouts' times, by hand; more: tests/test_layout_times.py."""

from dataclasses import replace

import pytest
from reference_network import Network as Machine
from reference_network import path
from reference_transformers import Latent, Layout, Network
from reference_transformers_blocks import attentions, matrices, tensors_read
from reference_transformers_time import (
    Case,
    Rates,
    communication_of_stage,
    iteration_of_stage,
    iterations,
    launch_wait,
)

PLAIN = Rates(1e14, 1e14, 1e13, 1e12, 1.0, 0.0, 0.5, 1.0, 1.0)
GPT = Network(4, 1024, 16, 4096, 12800, 512)
EXPERTS = replace(GPT, experts=16, top_k=2, expert_ffn=1024, every=2)
MACHINE = Machine(pes_per_node=8, links_per_node=8, levels=[(8, 2e-6, 2e11), (4096, 5e-6, 2e10)])


def term(name, layout, net=GPT, rates=PLAIN, stage=0):
    return iteration_of_stage(Case(net, layout, rates, MACHINE), stage)[name]


def communication(name, layout, net=GPT, rates=PLAIN):
    return communication_of_stage(Case(net, layout, rates, MACHINE), 0)[name]


def test_a_rack_is_as_wide_as_the_groups_in_it():
    """Of 72 PEs groups of 16 use 64, and those PEs' links."""
    rack = Machine(
        pes_per_node=72, links_per_node=72, levels=[(72, 2e-6, 9e11), (4608, 5e-6, 5e10)]
    )
    node = replace(
        rack,
        pes_per_node=64,
        links_per_node=64,
        levels=[(64, *rack.levels[0][1:]), (4096, *rack.levels[1][1:])],
    )
    layout = Layout(data=64, pipeline=4, expert=16, zero=1, batch=256)
    seconds = iterations(EXPERTS, layout, PLAIN, rack)
    assert seconds == iterations(EXPERTS, layout, PLAIN, node)
    assert seconds[1]["expert_exchange"] > 0


def test_keys_of_a_query():
    """On average over positions, where position i reads the keys up to its own."""
    s = 512
    for w in (1, 100, 511, 512, 600):
        some = replace(GPT, window=w)
        (one,), (both,) = attentions(some, 0), attentions(replace(some, causal=False), 0)
        assert one.keys == sum(min(i + 0.5, w) for i in range(s)) / s
        assert both.keys == min(s, w)
        assert one.pairs == both.pairs == min(s, w)
    assert attentions(GPT, 0) == attentions(replace(GPT, window=s), 0)


def test_seconds_of_attention():
    """4 FLOPs per pair and feature; a head of 64 takes 1 + 32/64 times as long."""
    fused, layout = 3.5 * 4 * 512 * 1024 * 1.5 / (1e14 * 0.5), Layout()
    assert term("attention", layout) == pytest.approx(4 * 256 * fused)
    assert term("attention", layout, replace(GPT, causal=False)) == pytest.approx(4 * 512 * fused)
    some = replace(GPT, window=128, full_every=4)
    assert term("attention", layout, some) == pytest.approx((3 * 112 + 256) * fused)
    plain, unfused = 3 * 4 * 512 * 1024 / 1e14, replace(layout, fused_attention=False)
    assert term("attention", unfused, some) == pytest.approx((3 * 128 + 512) * plain)
    latent = replace(GPT, latent=Latent(64, nope=96, rope=32, value=64))  # 96 features on average
    wide = 3.5 * 4 * 512 * 16 * 96 * (1 + 32 / 96) / (1e14 * 0.5)
    assert term("attention", layout, latent) == pytest.approx(4 * 256 * wide)


def by_hand(u, width, moves, peak=1e14, item=2.0):
    """Of 1,024 features: arithmetic, and three matrices at 1 TB/s."""
    moved = u * width + u * 1024 + width * 1024
    return 2 * u * width * 1024 / peak + moves * item * moved / 1e12


@pytest.mark.parametrize("moves", [0.0, 1.5])
@pytest.mark.parametrize("sequence", [False, True])
def test_products_of_undivided_matrices(moves, sequence):
    """A router of 16 columns, latents of 96 and 64 + 64 ones, each whole on two PEs."""
    net = replace(GPT, latent=Latent(64, 96), experts=16, top_k=2, expert_ffn=1024, shared_ffn=512)
    net = replace(net, shared_gate=True)
    rates, layout = (
        replace(PLAIN, product_moves=moves),
        Layout(tensor=2, sequence_parallel=sequence),
    )
    u = 256 if sequence else 512
    widths = [96, 64 + 64, 16, 1]
    assert [one.weights / 1024 for one in matrices(net, 0) if one.undivided] == widths
    expected = sum(by_hand(u, width, moves) for width in widths)
    divided = [(96, 16 * 192), (64, 16 * 256), (16 * 128, 1024), *[(1024, 512)] * 2]
    for rows, columns in divided:
        expected += by_hand(512, rows * columns / 2 / 1024, moves)
    # Of all 16 experts half the width, two matrices each; 2 of 16 read each token.
    expected += 2 * 16 * by_hand(512 * 2 / 16, 512, moves)
    assert term("products", layout, net, rates) == pytest.approx(3 * 4 * expected)


@pytest.mark.parametrize("parts", [1, 4, 16])
def test_products_of_the_experts_of_a_pe(parts):
    """Each expert's weights count; it reads its own tokens, which all PEs of its group send."""
    layout = Layout(data=16, expert=parts, batch=16)
    rates = replace(PLAIN, product_moves=1.5)
    dense = 4 * by_hand(512, 1024, 1.5)
    routed = by_hand(512, 16, 1.5) + 2 * 16 / parts * by_hand(512 * parts * 2 / 16, 1024, 1.5)
    expected = 4 * dense + 2 * routed + 2 * 2 * by_hand(512, 4096, 1.5)
    assert term("products", layout, EXPERTS, rates) == pytest.approx(3 * expected)


def test_narrow_products_write_16_bits():
    """In fp8 two matrices of one byte are read, and one of two written; logits stay wide."""
    rates = replace(PLAIN, product_moves=1.5, reach=0.5, peak=2e14)
    bf16 = 12 * (4 * by_hand(512, 1024, 1.5, 1e14) + 2 * by_hand(512, 4096, 1.5, 1e14))
    assert term("products", Layout(), rates=rates) == pytest.approx(bf16)
    fp8 = 12 * (4 * by_hand(512, 1024, 1.5, 1e14, 4 / 3) + 2 * by_hand(512, 4096, 1.5, 1e14, 4 / 3))
    assert term("products", Layout(precision="fp8"), rates=rates) == pytest.approx(fp8)
    logits = 3 * by_hand(512, 12800, 1.5, 5e13)
    assert term("logits", Layout(precision="fp8"), rates=rates) == pytest.approx(logits)


@pytest.mark.parametrize("rates", [PLAIN, replace(PLAIN, attention=1e-9)])
def test_attention_hides_bytes_of_a_ring_alone(rates):
    """Start-ups are paid in each step, even where attention takes seconds."""
    layout = Layout(context=4)
    way = path(MACHINE, 4, 4, 1)
    size = 2 * 128 * 1024 * 2
    hides = term("attention", layout, rates=rates) / 4 / 4
    step = 3 * way.alpha + max(0.0, 3 * size * way.beta - hides)
    assert term("context_exchange", layout, rates=rates) == pytest.approx(4 * 3 * step)
    everything = 4 * 3 * 3 * (way.alpha + size * way.beta)
    assert communication("context_exchange", layout, rates=rates) == pytest.approx(everything)
    assert term("context_exchange", replace(layout, context=1), rates=rates) == 0


@pytest.mark.parametrize("c", [1, 2, 4])
@pytest.mark.parametrize("by", ["ring", "all_gather", "all_to_all"])
def test_attention_of_pieces(c, by):
    """2 c pieces have 2 c - 1 borders; all PEs of a context together compute one attention."""
    slower = 1 + 128 * (2 * c - 1) / 512 if c > 1 and by != "all_to_all" else 1
    layout, again = Layout(context=c, context_by=by), frozenset({"core_attn"})
    whole = term("attention", Layout())
    assert c * term("attention", layout) == pytest.approx(slower * whole)
    repeated = replace(layout, recompute=again)
    assert c * term("recomputation", repeated) == pytest.approx(slower * whole / 3.5)
    unfused = replace(layout, fused_attention=False)
    plain = term("attention", Layout(fused_attention=False))
    assert c * term("attention", unfused) == pytest.approx(plain)


def launched(layout, net=GPT, **speeds):
    """Seconds of launches, beside which a device's count for nothing."""
    rates = replace(PLAIN, peak=1e30, wide_peak=1e30, bandwidth=1e30, **speeds)
    return term("launch_wait", layout, net, rates)


BY = ("ring", "all_gather")


def test_launches():
    one, routed = tensors_read(EXPERTS, 0), tensors_read(EXPERTS, 1)
    assert launched(Layout(), launch=1.0) == pytest.approx(4 * one)
    # Of what a context's exchange exposes, which is the device's, a second of launches hides all.
    sent = {by: communication("context_exchange", Layout(context=4, context_by=by)) for by in BY}
    for by, host in zip(BY, (4 * (one + 6), 4 * one), strict=True):
        layout = Layout(context=4, context_by=by)
        assert launched(layout, launch=1.0) + sent[by] == pytest.approx(host)
    chunks = Layout(pipeline=2, chunks=2, schedule="interleaved", batch=2)
    assert launched(chunks, launch=1.0) == pytest.approx(2 * (2 * one + 1))
    # Two of four blocks have experts.
    blocks = 2 * (one + routed)
    for e in (1, 4, 16):
        layout = Layout(data=16, expert=e, batch=16)
        assert launched(layout, EXPERTS, launch=1.0) == pytest.approx(blocks)
        assert launched(layout, EXPERTS, expert_launch=1.0) == pytest.approx(2 * 16 / e)


def test_short_launches_have_all_digits():
    assert launch_wait(1.0, 1e-5) == pytest.approx(1e-20 / 4, rel=1e-12, abs=0)
    assert launch_wait(3.0, 3.0) == pytest.approx(3 * (2**0.25 - 1))
    assert launch_wait(1e-5, 1.0) == pytest.approx(1 - 1e-5)
    assert launch_wait(1.0, 0.0) == launch_wait(0.0, 0.0) == 0
    assert launch_wait(0.0, 2.0) == 2


@pytest.mark.parametrize("v", [1, 2])
def test_chunks_start_messages(v):
    """m v messages each way, of which a pass of the pipeline is waited for; of others starts."""
    m, layout = 6, Layout(pipeline=2, chunks=v, schedule="interleaved", batch=6)
    way = path(MACHINE, 2, 2, 1)
    one = way.alpha + 512 * 1024 * 2 * way.beta
    assert term("stage_exchange", layout) == pytest.approx(2 * one + 2 * m * (v - 1) * way.alpha)
    assert communication("stage_exchange", layout) == pytest.approx(2 * m * v * one)
    assert term("stage_exchange", replace(layout, pipeline=1, chunks=1)) == 0
