"""No faster device slows a layout down, and a stage without a layer waits for no launch."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from budgets import limit_examples
from hypothesis import example, given
from hypothesis import strategies as st

from paradl.grids.entries.precision import RECIPES
from paradl.grids.entries.systems import TensorPeaks
from paradl.grids.entries.transformer_rates import (
    FITTED_PEAKS,
    find_family,
    find_recipe,
    find_usual_recipe,
)
from paradl.grids.inputs.layout_machine import read_fabric, read_rates
from paradl.grids.inputs.machine import Machine
from paradl.grids.inputs.values import RowValues
from paradl.grids.library import find
from paradl.grids.models.transformers import read_transformer
from paradl.kernels.columns import add, find_any
from paradl.kernels.oracle.block_times import time_iteration
from paradl.kernels.parallelism.dimensions import find_reasons
from paradl.kernels.search.candidates import list_candidates
from paradl.kernels.work.transformer import Block, Tensor, Training, Transformer, Weights
from paradl.sweep.cases.layout_words import parse_layout

SYSTEM = find("system", "dgx-h100", Path())
EMPTY = Block((), ())


@pytest.mark.parametrize(("stages", "waits"), [(1, True), (4, False)])
def test_a_stage_without_a_layer_waits_for_no_launch(stages, waits):
    """Of two blocks in four stages the last computes logits alone, and the first nothing."""
    block = Block((Weights(64.0**2, parts=64),), (Tensor(64, "item", "whole"),))
    net = Transformer(64, 2**20, (block,), (0, 0), EMPTY, EMPTY, 0, (1,), (1,), (64,))
    layout = parse_layout(f"pp{stages} mb1", stages)
    rates = replace(read_rates(Machine(SYSTEM), "bf16"), launch=1e-9)
    terms = time_iteration(
        net, layout, Training(4, 8, RECIPES["bf16"]), rates, read_fabric(Machine(SYSTEM))
    )
    assert terms["logits"][0] > 0
    assert (terms["launch_wait"][0] > 0) == waits
    assert np.isfinite([*terms.values()]).all()


NETWORKS = {
    name: read_transformer(find("model", name, Path()))
    for name in ("llama3_8b", "gpt3_175b", "deepseek_v3", "t5_11b")
}
SYSTEMS = ("dgx1-v100", "dgx-a100-80gb", "dgx-h100", "dgx-b200", "gaudi3", "mi300x", "tpu-v5p")
SOFTWARE = ("megatron", "fsdp", "deepspeed", "jax", "plain")


def raise_rates(system, precision, factor):
    """Rates with a higher peak or bandwidth, of a question or, of devices of the fit, a file."""
    machine = Machine(system)
    yield read_rates(machine, precision, RowValues({}, {"peak_flops": factor}))
    yield read_rates(machine, precision, RowValues({}, {"memory_bandwidth": factor}))
    if find_family(system.pe.device) in FITTED_PEAKS:
        peaks = {name: factor * peak for name, peak in system.pe.list_tensor_peaks().items()}
        pe = system.pe.model_copy(update={"tensor_peaks": TensorPeaks(**peaks)})
        yield read_rates(Machine(system.model_copy(update={"pe": pe})), precision)


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
    layouts = list_candidates(net, pes, batch, {"micro": (1, 4)})
    is_ruled = find_any(find_reasons(net, layouts, training).values())
    layouts = layouts.select(np.flatnonzero(~np.broadcast_to(is_ruled, layouts.shape))[::7])
    fabric = read_fabric(Machine(system))
    before, *after = (
        add(time_iteration(net, layouts, training, rates, fabric).values())
        for rates in (read_rates(Machine(system), recipe), *raise_rates(system, recipe, factor))
    )
    for seconds in after:
        assert np.all(seconds <= before * (1 + 1e-12))
