"""The scalar reference of transformers against the papers' published numbers."""

import math
from dataclasses import replace
from functools import partial

import pytest
from reference_transformers import (
    Latent,
    Layout,
    Network,
    active_parameters,
    block_tensors,
    kept_by_module,
    model_states,
    parameters,
)
from reference_transformers_layouts import MARKS, Place, layouts, limits
from reference_transformers_stage import hardware_flops, in_flight, memory, model_flops

GPT3 = Network(96, 12288, 96, 49152, 51200, 2048, positions=2048, dropout=True)
MT_NLG = Network(105, 20480, 128, 81920, 51200, 2048, positions=2048, dropout=True)
llama = partial(Network, gated=True, tied=False, biases=False, norm="rmsnorm")
LLAMA_70B = llama(80, 8192, 64, 28672, 32000, 4096, kv_heads=8)
MIXTRAL = llama(32, 4096, 32, 14336, 32000, 4096, 8, experts=8, top_k=2, expert_ffn=14336)
DEEPSEEK = llama(
    61,
    7168,
    128,
    18432,
    129280,
    4096,
    experts=256,
    top_k=8,
    expert_ffn=2048,
    shared_ffn=2048,
    dense_first=3,
    latent=Latent(512, 1536),
)


@pytest.mark.parametrize(
    ("net", "count"),
    [
        (llama(32, 4096, 32, 11008, 32000, 4096), 6_738_415_616),
        (llama(40, 5120, 40, 13824, 32000, 4096), 13_015_864_320),
        (LLAMA_70B, 68_976_648_192),
        (llama(32, 4096, 32, 14336, 128256, 8192, kv_heads=8), 8_030_261_248),
        (llama(80, 8192, 64, 28672, 128256, 8192, kv_heads=8), 70_553_706_496),
        (MIXTRAL, 46_702_792_704),
        (DEEPSEEK, 671_026_404_352),
    ],
)
def test_known_parameters(net, count):
    assert parameters(net) == count


def test_active_parameters():
    assert active_parameters(MIXTRAL) == pytest.approx(12.9e9, rel=0.01)
    assert active_parameters(DEEPSEEK) == pytest.approx(37e9, rel=0.02)


@pytest.mark.parametrize(("net", "scores"), [(GPT3, 80), (MT_NLG, 64)])
@pytest.mark.parametrize("sequence", [False, True])
def test_activations_of_korthikanti(net, scores, sequence):
    t, unit = 8, net.sequence * net.hidden
    layout = Layout(tensor=t, sequence_parallel=sequence, fused_attention=False)
    kept = sum(kept_by_module(net, layout, 0).values())
    assert kept == unit * (10 / (t if sequence else 1) + (24 + scores) / t)
    selective = replace(layout, recompute=frozenset({"core_attn"}))
    left = sum(kept_by_module(net, selective, 0).values())
    assert left == unit * (10 / (t if sequence else 1) + 24 / t)
    whole = replace(layout, recompute=frozenset({"blocks"}))
    assert sum(kept_by_module(net, whole, 0).values()) == 2 * unit / layout.sigma


def test_activations_of_any_block():
    layout = Layout(tensor=2, sequence_parallel=False, micro=3)
    h, f, u = 8192, 28672, 3 * 4096
    expected = u * (8 * h + (4 + 4 / 8) * h / 2 + 2 * 3 * f / 2)
    assert sum(tensor.bytes for tensor in block_tensors(LLAMA_70B, layout, 0)) == expected


def test_bytes_of_a_parameter():
    # Rajbhandari, figure 1: 7.5 B parameters over 64 PEs; GB.
    def size(precision, zero, shards):
        layout = Layout(data=shards, zero=zero, batch=shards, precision=precision)
        return sum(model_states(LLAMA_70B, layout, 0).values())

    one = sum(model_states(LLAMA_70B, Layout(precision="zero"), 0).values()) / 16
    published = [120, 31.4, 16.6, 1.88]
    for zero, gigabytes in enumerate(published):
        assert 7.5 * size("zero", zero, 64) / one == pytest.approx(gigabytes, rel=3e-3)
    for precision, whole, fixed, divided in (
        ("bf16", 18, 6, 12),
        ("fp16", 20, 4, 16),
        ("fp32", 16, 8, 8),
    ):
        assert size(precision, 0, 4) / one == whole
        assert size(precision, 1, 4) / one == fixed + divided / 4


@pytest.mark.parametrize(("p", "v"), [(8, 3), (35, 3), (4, 2)])
def test_interleaved_in_flight(p, v):
    layout = Layout(pipeline=p, chunks=v, schedule="interleaved", batch=8 * p)
    assert in_flight(layout, 0) / p == pytest.approx(1 + (p - 1) / (p * v))


def test_flops():
    net, batch = replace(GPT3, dropout=False), 1536
    h, s, layers, v = net.hidden, net.sequence, net.layers, net.vocabulary
    unit = batch * layers * s * h**2
    assert model_flops(net, batch) == pytest.approx(
        72 * unit * (1 + s / 6 / h + v / 12 / h / layers)
    )
    full = 96 * unit * (1 + s / 6 / h + v / 16 / layers / h)
    assert hardware_flops(net, batch, "blocks") == pytest.approx(full)
    closed = 12 * layers * h**2 * (1 + 13 / 12 / h + (v + s) / 12 / layers / h)
    assert parameters(net) == pytest.approx(closed, rel=1e-6)


def test_selective_recompute_adds():
    # The paper's 2.7 % and 1.6 % count attention three times as often as its appendix A does.
    for net, percent in ((GPT3, 2.7), (MT_NLG, 1.6)):
        added = hardware_flops(net, 1, "core_attn") / model_flops(net, 1) - 1
        assert 300 * added == pytest.approx(percent, abs=0.05)


def megatron_bytes(net, layout):
    """Megatron-LM's theoretical_memory_usage.py: sequence parallelism, selective recompute."""
    h, s, b, p, t = net.hidden, net.sequence, layout.micro, layout.pipeline, layout.tensor
    width = 1 + net.a_kv / net.heads + net.ffn / h * (1.5 if net.gated else 1)
    blocks = 2 * net.layers * h * h * (width + 2 / h + 1 / (net.layers * h))
    table = net.vocabulary * h
    held = (blocks / p + table * (2 if p == 1 and not net.tied else 1)) / t
    states = held * (6 + 12 / layout.data if layout.zero else 18)
    kept = s * b * h * (18 + 4 * net.ffn / h) * net.layers + (8 + h) * s * b * p
    if layout.chunks > 1:
        kept *= 1 + (p - 1) / (p * layout.chunks)
    if p == 1:
        kept += s * b * h * 4 * (1 + net.vocabulary / h)
    return states, kept / t


def test_megatrons_theoretical_memory():
    # Equal where t = p = 1 and nothing has biases; it divides norms and token numbers by t.
    net = replace(GPT3, biases=False, positions=0)
    layout = Layout(data=64, zero=1, batch=64, recompute=frozenset({"core_attn"}))
    parts = memory(net, layout)
    states = sum(parts[name] for name in ("weights", "gradients", "states"))
    kept = parts["total"] - states
    assert (states, kept) == megatron_bytes(net, layout)


def test_megatrons_first_stage():
    net = replace(GPT3, biases=False, positions=0)
    layout = Layout(
        tensor=8, sequence_parallel=True, pipeline=8, chunks=3, schedule="interleaved", batch=64
    )
    states, kept = megatron_bytes(net, layout)
    assert memory(net, layout)["total"] == pytest.approx(states + kept, rel=2e-4)


def is_counted(layout):
    """Whether the published count of valid layouts has it."""
    even = LLAMA_70B.layers % (layout.pipeline * layout.chunks) == 0
    whole = layout.batch % (layout.data * layout.micro) == 0
    piped = layout.pipeline > 1
    zero = not piped or layout.zero <= 1
    sequence = layout.tensor > 1 or not layout.sequence_parallel
    return all((even, whole, zero, sequence, piped or layout.chunks == 1, layout.tensor <= 16))


def test_all_layouts_of_llama_70b():
    candidates = list(
        layouts(
            1024,
            1024,
            chunks=(1, 2, 4, 5, 10),
            micro=(1, 2, 4, 8, 16),
            recompute=("none", "core_attn", "blocks"),
            zero=(0, 1, 2, 3),
        )
    )
    assert len(candidates) == math.comb(13, 3) * 5 * 5 * 3 * 4 * 2 == 171_600
    # Published as valid: even stages and batches, t up to 16, and ZeRO-2 and 3 without pipelines.
    valid = [candidate for candidate in candidates if is_counted(candidate)]
    assert len(valid) == 32_256
    of_first_stage = {(x.tensor, x.context, x.recompute, x.sequence_parallel) for x in valid}
    assert len(of_first_stage) == 237


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"tensor": 128}, "heads"),
        ({"tensor": 16}, "kv_replicated"),
        ({"context": 3}, "sequence"),
        ({"pipeline": 3, "batch": 8}, "uneven_stages"),
        ({"pipeline": 4}, "starved"),
        ({"tensor": 16, "context": 8, "context_by": "all_to_all"}, "context_heads"),
        ({"chunks": 2, "pipeline": 4, "batch": 3}, "interleaving"),
        ({"data": 3, "batch": 4}, "batch"),
        ({"recompute": frozenset({"core_attn"})}, "idle_recompute"),
        ({"recompute": frozenset({"moe", "mlp"})}, "idle_recompute"),
        ({"zero": 3, "pipeline": 2, "batch": 4}, "zero_with_pipeline"),
        ({}, "memory"),
    ],
)
def test_limits(changes, reason):
    layout = replace(Layout(), **changes)
    assert reason in limits(LLAMA_70B, layout, Place(layout.pes, capacity=80e9))
    fine = replace(LLAMA_70B, layers=4)
    assert not limits(fine, Layout(), Place(1, capacity=180e9)) - MARKS
