"""What ZeRO holds whole at a time, by software: GPT-3 and Llama 2, by hand and in limits."""

from pathlib import Path

import numpy as np
import pytest

from paradl.grids.entries.precision import RECIPES
from paradl.grids.entries.software import SOFTWARE
from paradl.grids.library import find
from paradl.grids.models.transformers import read_transformer
from paradl.kernels.work.block_memory import measure_memory
from paradl.kernels.work.layouts import Layouts
from paradl.kernels.work.transformer import Training, Unsharded

LLAMA = read_transformer(find("model", "llama2_7b", Path()))
BLOCK = 4 * 4096**2 + 3 * 4096 * 11008 + 2 * 4096
ENDS = 2 * 32000 * 4096 + 4096
FSDP, DEEPSPEED, JAX = (SOFTWARE[name].layouts.unsharded for name in ("fsdp", "deepspeed", "jax"))


def measure(unsharded=None, **columns):
    """The parts of Llama 2 7B's memory with a layout [B]."""
    layout = Layouts.from_names([{"zero": 3, "data": 8} | columns])
    given = {} if unsharded is None else {"unsharded": unsharded}
    parts, _ = measure_memory(LLAMA, layout, Training(64, 4096, RECIPES["bf16"], **given))
    return {name: float(part[0]) for name, part in parts.items()}


@pytest.mark.parametrize("zero", range(4))
@pytest.mark.parametrize("unsharded", [None, FSDP, DEEPSPEED, JAX, Unsharded(1, 9e9, 9e9, True)])
def test_one_rank_holds_nothing_twice(zero, unsharded):
    for columns in ({"data": 1}, {"data": 1, "pipeline": 4}):
        parts = measure(unsharded, zero=zero, **columns)
        assert (parts["gathered"], parts["unreduced"]) == (0, 0)


@pytest.mark.parametrize(
    ("zero", "weights", "gradients"), [(0, 0, 0), (1, 0, 0), (2, 0, 1), (3, 2, 1)]
)
def test_a_block_at_a_time(zero, weights, gradients):
    parts = measure(zero=zero)
    assert parts["gathered"] == 2 * weights * BLOCK
    assert parts["unreduced"] == 4 * gradients * BLOCK


def test_stages_of_fsdp_stay_whole_between_micro_batches():
    """The first of four is the fullest: eight blocks and the embedding."""
    first = 8 * BLOCK + (ENDS - 4096) / 2
    parts = measure(FSDP, pipeline=4, micro=1)
    assert parts["gathered"] == 2 * first
    assert parts["unreduced"] == 4 * first
    # Beside a shard of each.
    assert parts["weights"] == 2 * first / 8
    assert parts["gradients"] == 4 * first / 8
    assert measure(FSDP) == measure()  # without stages as others


def test_deepspeed_holds_its_buffers():
    parts = measure(DEEPSPEED)
    assert parts["gathered"] == 2 * 1e9
    assert parts["unreduced"] == 4 * 5e8
    # No more than there is.
    small = measure(DEEPSPEED, tensor=32)
    assert small["gathered"] < 2 * 3e8


def test_stage_3_takes_more_than_stage_2_of_a_small_network():
    """As three users of DeepSpeed on 8 GPUs found: all weights of 0.9 billion stay gathered."""
    states = ("weights", "gradients", "states", "gathered", "unreduced")
    for tensor, more in ((8, True), (1, False)):
        second, third = (
            sum(measure(DEEPSPEED, zero=zero, tensor=tensor)[part] for part in states)
            for zero in (2, 3)
        )
        assert (third > second) == more


def test_xla_gathers_matrices():
    whole, parts = measure(), measure(JAX)
    assert parts["gathered"] == pytest.approx(whole["gathered"] / 3)
    assert parts["unreduced"] == pytest.approx(whole["unreduced"] / 3)
    others = [name for name in parts if name not in ("gathered", "unreduced")]
    assert np.array_equal([parts[name] for name in others], [whole[name] for name in others])
