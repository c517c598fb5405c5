"""The scalar reference of transformers against published numbers; more: tests/test_layouts.py."""

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
    parameters,
    stage_blocks,
)
from reference_transformers_layouts import MARKS, Place, limits
from reference_transformers_stage import hardware_flops, memory, model_flops

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


def test_active_parameters():
    assert active_parameters(MIXTRAL) == pytest.approx(12.9e9, rel=0.01)
    assert active_parameters(DEEPSEEK) == pytest.approx(37e9, rel=0.02)


def test_activations_of_any_block():
    layout = Layout(tensor=2, sequence_parallel=False, micro=3)
    h, f, u = 8192, 28672, 3 * 4096
    expected = u * (8 * h + (4 + 4 / 8) * h / 2 + 2 * 3 * f / 2)
    assert sum(tensor.bytes for tensor in block_tensors(LLAMA_70B, layout, 0)) == expected


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


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"tensor": 128}, "heads"),
        ({"tensor": 16}, "kv_replicated"),
        ({"context": 3}, "sequence"),
        ({"pipeline": 3, "batch": 8}, "uneven_stages"),
        ({"pipeline": 3, "schedule": "zbv", "batch": 8}, "uneven_stages"),
        ({"pipeline": 81, "batch": 81}, "more_stages_than_blocks"),
        ({"pipeline": 42, "schedule": "zbv", "batch": 42}, "more_stages_than_blocks"),
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


@pytest.mark.parametrize(
    "degrees",
    [
        {"pipeline": 41},
        {"pipeline": 82},
        {"pipeline": 41, "chunks": 2},
        {"pipeline": 41, "schedule": "zbv"},
        {"pipeline": 8},
        {"tensor": 2, "sequence_parallel": True},
        {"zero": 1, "node_shards": 1},
        {"pipeline": 4, "chunks": 2, "group": 4},
    ],
)
def test_no_limits(degrees):
    """Llama-70B has 80 blocks, and 82 with embedding and loss."""
    layout = Layout(batch=82 * 8, **degrees)
    assert not limits(LLAMA_70B, layout, Place(layout.pes))


def count_blocks(layers, **degrees):
    net, layout = replace(GPT3, layers=layers), Layout(**degrees)
    stages = [stage_blocks(net, layout, stage) for stage in range(layout.pipeline)]
    assert sorted(block for blocks in stages for block in blocks) == list(range(layers))
    return [len(blocks) for blocks in stages]


def test_embedding_and_loss_are_blocks_of_stages():
    """Llama-3.1-405B has 16 stages of 8 chunks: 126 blocks and two more."""
    assert count_blocks(126, pipeline=16, chunks=8) == [7, *[8] * 14, 7]
    assert count_blocks(126, pipeline=16) == [7, *[8] * 14, 7]
    assert count_blocks(2, pipeline=4) == [0, 1, 1, 0]
    assert count_blocks(6, pipeline=2, schedule="zbv") == [2, 4]  # both ends are on the first one
    assert count_blocks(6, pipeline=4) == [1, 2, 2, 1]
    # Blocks alone are even, or neither is.
    assert count_blocks(6, pipeline=2) == [3, 3]
    assert count_blocks(8, pipeline=3) == [3, 3, 2]
    assert count_blocks(8, pipeline=3, chunks=2) == [3, 3, 2]


def test_memory_of_a_stage_without_blocks():
    net = replace(LLAMA_70B, layers=2, vocabulary=2**20)
    for again in ("core_attn", "blocks", "full"):
        layout = Layout(pipeline=4, batch=4, recompute=frozenset({again}))
        parts = memory(net, layout)
        assert parts["stage"] == 3
        assert parts["weights"] == 2 * 8192 * (2**20 + 1)
        assert parts["recomputed"] == 0


@pytest.mark.parametrize("schedule", ["gpipe", "1f1b", "zb1p", "zbv"])
def test_without_stages_there_is_no_schedule(schedule):
    one, many = (memory(LLAMA_70B, Layout(schedule=schedule, batch=batch)) for batch in (1, 16))
    assert many == one == memory(LLAMA_70B, Layout())


def test_windows():
    """Blocks that alternate; a window of the whole sequence is none."""
    layout, s = Layout(fused_attention=False), LLAMA_70B.sequence
    some = replace(LLAMA_70B, window=1024, full_every=2)
    scores = [kept_by_module(some, layout, block)["core_attention"] for block in range(4)]
    assert scores == [2 * 64 * s * 1024, 2 * 64 * s * s] * 2
    assert memory(replace(LLAMA_70B, window=s + 1), layout) == memory(LLAMA_70B, layout)
    assert memory(replace(some, causal=False), layout) == memory(some, layout)
    # Scores and values: 4 FLOPs per pair and feature, three times with the backward pass.
    whole, less = model_flops(LLAMA_70B, 1), model_flops(some, 1)
    assert whole - less == pytest.approx(3 * 4 * 8192 * s * 40 * (s - 1024))
    assert model_flops(replace(some, window=s), 1) == whole
    assert model_flops(replace(some, causal=False), 1) == less
