"""Seconds of the matrix products of transformers: affine in tokens, with limits that are known."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from budgets import limit_examples
from hypothesis import example, given
from hypothesis import strategies as st
from short_layouts import read_layout

from paradl.grids.entries.precision import RECIPES
from paradl.grids.entries.systems import TensorPeaks
from paradl.grids.entries.transformer_rates import (
    FITTED_PEAKS,
    find_family,
    find_recipe,
    find_usual_recipe,
)
from paradl.grids.inputs.machine import Machine, Stack
from paradl.grids.inputs.values import RowValues
from paradl.grids.library import find
from paradl.grids.models.transformers import read_transformer
from paradl.kernels.columns import add, find_any
from paradl.kernels.oracle.block_times import time_iteration
from paradl.kernels.parallelism.layout import find_reasons
from paradl.kernels.search.candidates import find_candidates
from paradl.kernels.work.transformer import Block, Tensor, Training, Transformer, Weights

P, BW, R, MOVES = 1e14, 1e12, 0.6, 1.5
DEVICE = {"peak": P, "wide_peak": P, "bandwidth": BW, "reach": R, "product_moves": MOVES}
SPEEDS = Stack(Machine(find("system", "dgx-h100", Path())), "bf16").find_speeds()
EMPTY = Block((), ())
HUGE = 1e12  # an extent beside which the others count for nothing


def time_product(u, w, h, split=1, experts=0, parts=1, **rates):
    """Forward seconds of u tokens with w columns on `split` PEs; of each of some experts."""
    size = float(w * h * max(experts, 1))
    weights = Weights(size, parts=w, experts=experts, used=1 / max(experts, 1))
    net = Transformer(h, 0, (Block((weights,), ()),), (0,), EMPTY, EMPTY, 0, (1,), (1,), (1,))
    layout = read_layout(f"tp{split} ep{parts} dp{parts} mb1", split * parts)
    machine = replace(SPEEDS.rates, **DEVICE | rates)
    training = Training(parts, u, RECIPES["bf16"])
    terms = time_iteration(net, layout, training, machine, SPEEDS.fabric)
    return float(terms["products"][0]) / 3


EXTENTS = st.integers(1, 2**16)


@limit_examples(40)
@given(u=EXTENTS, w=EXTENTS, h=EXTENTS)
def test_a_product_is_affine_in_its_tokens(u, w, h):
    one, two, three = (time_product(n * u, w, h) for n in (1, 2, 3))
    assert three - two == pytest.approx(two - one, rel=1e-9)
    assert 2 * one - two == pytest.approx(2 * w * h / BW, rel=1e-6, abs=1e-9 * two)


@limit_examples(40)
@given(extents=st.tuples(EXTENTS, EXTENTS, EXTENTS), which=st.integers(0, 4), by=st.floats(1, 100))
def test_a_product_is_monotone(extents, which, by):
    before, more = time_product(*extents), [*extents]
    if which < 3:
        more[which] = int(by * more[which]) + 1
        assert time_product(*more) > before
    else:
        faster = [{"peak": by * P}, {"bandwidth": by * BW}][which - 3]
        assert time_product(*extents, **faster) <= before


def test_one_token_waits_for_the_matrix():
    seconds = time_product(1, 8192, 8192)
    assert seconds == pytest.approx(2 * 8192**2 / BW, rel=0.02)


def test_many_tokens_take_arithmetic_and_their_own_rows():
    w, h, u = 8192, 1024, int(HUGE)
    sums = 4 * MOVES * (w * h) ** 0.5
    of_token = 2 * w * h / (P * R) + (2 * (w + h) + sums) / BW
    assert time_product(u, w, h) / u == pytest.approx(of_token, rel=1e-6)


@pytest.mark.parametrize("which", range(3))
def test_a_product_with_a_small_extent_is_memory_bound(which):
    """Twice the peak saves 2 % of its time; of large products all but the moves, half of it."""
    slim = [16384] * 3
    slim[which] = 2
    assert time_product(*slim, peak=2 * P) > 0.98 * time_product(*slim)
    wide = [2**20] * 3
    assert time_product(*wide, peak=2 * P) == pytest.approx(time_product(*wide) / 2, rel=0.01)


@limit_examples(40)
@given(u=EXTENTS, w=st.integers(1, 2**10), h=EXTENTS, split=st.sampled_from([2, 4, 8]))
def test_splitting_never_gains_more_than_linearly(u, w, h, split):
    whole = time_product(split * u, split * w, h)
    least = whole / split * (1 - 1e-12)
    assert time_product(split * u, split * w, h, split) >= least
    assert time_product(u, split * w, h) >= least


def test_memory_without_bound_leaves_the_share_of_the_peak():
    u, w, h = 7, 300, 5000
    assert time_product(u, w, h, bandwidth=np.inf) == pytest.approx(2 * u * w * h / (P * R))


@pytest.mark.parametrize("parts", [1, 2, 8])
def test_each_expert_moves_its_weights(parts):
    """Of 8 experts 8/parts on a PE, each with its own share of the tokens of all PEs."""
    u, w, h = 512, 1024, 4096
    mine = u * parts / 8
    expected = 8 / parts * time_product(mine, w, h)
    assert time_product(u, w, h, experts=8, parts=parts) == pytest.approx(expected)


@pytest.mark.parametrize(("stages", "waits"), [(1, True), (4, False)])
def test_a_stage_without_a_layer_waits_for_no_launch(stages, waits):
    """Of two blocks in four stages the last computes logits alone, and the first nothing."""
    block = Block((Weights(64.0**2, parts=64),), (Tensor(64, "item", "whole"),))
    net = Transformer(64, 2**20, (block,), (0, 0), EMPTY, EMPTY, 0, (1,), (1,), (64,))
    layout = read_layout(f"pp{stages} mb1", stages)
    rates = replace(SPEEDS.rates, launch=1e-9)
    terms = time_iteration(net, layout, Training(4, 8, RECIPES["bf16"]), rates, SPEEDS.fabric)
    assert terms["logits"][0] > 0
    assert (terms["launch_wait"][0] > 0) == waits
    assert np.isfinite([*terms.values()]).all()


NETWORKS = {
    name: read_transformer(find("model", name, Path()))
    for name in ("llama3_8b", "gpt3_175b", "deepseek_v3", "t5_11b")
}
SYSTEMS = ("dgx1-v100", "dgx-a100-80gb", "dgx-h100", "dgx-b200", "gaudi3", "mi300x", "tpu-v5p")
SOFTWARE = ("megatron", "megatron-2021", "fsdp", "deepspeed", "jax", "plain")


def raise_rates(system, precision, factor):
    """Rates with a higher peak or bandwidth, of a question or, of devices of the fit, a file."""
    stack = Stack(Machine(system), precision)
    usual = {"peak_flops": system.peak, "memory_bandwidth": system.pe.memory_bandwidth}
    for name, rate in usual.items():
        yield stack.find_speeds(RowValues({name: factor * rate})).rates
    if find_family(system.pe.device) in FITTED_PEAKS:
        peaks = {name: factor * peak for name, peak in system.pe.list_tensor_peaks().items()}
        pe = system.pe.model_copy(update={"tensor_peaks": TensorPeaks(**peaks)})
        machine = Machine(system.model_copy(update={"pe": pe}))
        yield Stack(machine, precision).find_speeds().rates


def test_rows_of_machines_are_columns_of_each_level():
    stack = Stack(Machine(find("system", "dgx-h100", Path())), "bf16")
    rows = stack.find_speeds(RowValues({"inter_bandwidth": np.array([1e9, 2e9])}))
    assert rows.fabric.stated.bandwidth.tolist() == [[450e9] * 2, [1e9, 2e9], [1e9, 2e9]]


@limit_examples(15)
@given(
    network=st.sampled_from([*NETWORKS]),
    name=st.sampled_from(SYSTEMS),
    software=st.sampled_from(SOFTWARE),
    pes=st.sampled_from([8, 64]),
    length=st.sampled_from([1, 128, 4096]),
    factor=st.sampled_from([1.01, 1.1, 2.0, 10.0]),
)
@example("deepseek_v3", "dgx-h100", "deepspeed", 8, 128, 1.1)
@example("t5_11b", "dgx-b200", "megatron", 8, 4096, 1.1)
def test_faster_devices_slow_no_answer(network, name, software, pes, length, factor):
    """Of all candidates: launches and contexts that hide behind attention included."""
    net, batch = NETWORKS[network], 4 * pes
    system = find("system", name, Path())
    precision = find_usual_recipe(system).replace("fp16", "amp")
    system = system.with_settings({"software": software, "precision": precision})
    recipe = find_recipe(system)
    training = Training(batch, length, RECIPES[recipe])
    found, _ = find_candidates(net, training, pes, batch, {"micro": (1, 4)})
    layouts = found.layouts.list_rows(np.nonzero(found.allowed))
    is_ruled = find_any(find_reasons(net, layouts, training).values())
    layouts = layouts.select(np.flatnonzero(~np.broadcast_to(is_ruled, layouts.shape))[::7])
    rates, fabric = Stack(Machine(system), recipe).find_speeds()
    before, *after = (
        add(time_iteration(net, layouts, training, some, fabric).values())
        for some in (rates, *raise_rates(system, recipe, factor))
    )
    for seconds in after:
        assert np.all(seconds <= before * (1 + 1e-12))
