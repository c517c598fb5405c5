"""The scalar reference of transformers against Megatron-LM's own count of its memory.

Against the kernels, and these against papers: tests/test_layouts.py, tests/test_layout_times.py.
"""

import pytest
from reference_transformers import Layout, Network
from reference_transformers_stage import memory

GPT3 = Network(96, 12288, 96, 49152, 51200, 2048, dropout=True, biases=False)


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
    net = GPT3
    layout = Layout(data=64, zero=1, batch=64, recompute=frozenset({"core_attn"}))
    parts = memory(net, layout)
    states = sum(parts[name] for name in ("weights", "gradients", "states"))
    kept = parts["total"] - states
    assert (states, kept) == megatron_bytes(net, layout)


def test_megatrons_first_stage():
    net = GPT3
    layout = Layout(
        tensor=8, sequence_parallel=True, pipeline=8, chunks=3, schedule="interleaved", batch=64
    )
    states, kept = megatron_bytes(net, layout)
    assert memory(net, layout)["total"] == pytest.approx(states + kept, rel=2e-4)
