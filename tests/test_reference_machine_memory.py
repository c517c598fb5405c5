"""The scalar machine oracle by hand: the memory of a PE.

The toy of test_reference_machine.py, bytes a sample: conv keeps 32 x 4 = 128, relu
64 x 4 + 16 = 272, fc 8 x 4 = 32. The peak is relu's: 128 + 272 and two gradients of 64 x 4, in all
912; conv's is 128 + 96 x 4 = 512, fc's 432 + 74 x 4 = 728. States for SGD have 726 x 12 = 8712.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from machine_toys import (
    CHANNEL,
    FILTER,
    MACHINE,
    PIPELINE,
    RELU,
    SERIAL,
    SPATIAL,
    TOY,
)
from reference_memory import SAMPLED, memory, stage_memory
from reference_parts import Layer, Run


def assert_memory(run: Run, layers: Sequence[Layer] = TOY, **expected: float) -> None:
    """The parts of the fullest PE, beside what is reserved."""
    everything = dict.fromkeys(SAMPLED, 0.0) | {"rows": 0.0, "reserved": 1000.0} | expected
    everything["total"] = sum(everything.values())
    assert memory(layers, MACHINE, run) == pytest.approx(everything)


# The table's rows.


def test_one_pe() -> None:
    assert_memory(SERIAL, peak=2 * 912, states=8712)
    assert_memory(replace(SERIAL, p1=4, accumulate=3, segments=4), peak=2 * 912, states=8712)


def test_spatial_group() -> None:
    # conv and relu keep halves, fc all: (64 + 136 + 32) + 74 x 4 is more than relu's 200 + 64 x 4
    assert_memory(SPATIAL, peak=2 * (232 + 296), states=8712)


@pytest.mark.parametrize("run", [FILTER, CHANNEL])
def test_filter_and_channel_group(run: Run) -> None:
    assert_memory(run, peak=2 * 912, states=(36 + 4 + 650) * 12)


def test_pipeline() -> None:
    # conv, relu | fc; of 4 segments 3 wait: 400 3/4 + 912/4 and 32 3/4 + (32 + 296)/4 a sample
    assert_memory(PIPELINE, others=2 * 24, received=2 * 256, peak=2 * 82, states=7800)
    first = stage_memory(TOY, MACHINE, PIPELINE, range(2))
    assert first == {"others": 300, "received": 0, "peak": 228, "states": 912}


@pytest.mark.parametrize(("optimizer", "held"), [("none", 8), ("sgd", 12), ("adam", 16)])
def test_states(optimizer: Any, held: float) -> None:
    run = replace(SERIAL, optimizer=optimizer)
    for machine in (MACHINE, replace(MACHINE, a=2.0)):
        assert memory(TOY, machine, run)["states"] == 726 * held


# Recompute.


def test_recompute_checkpoints_runs() -> None:
    # 4 runs of 4: inputs of 64 x 4, 272 kept by each of a run's layers, two gradients
    deep, again = [RELU] * 16, replace(SERIAL, recompute=True)
    assert_memory(SERIAL, deep, peak=2 * (16 * 272 + 512), states=0)
    assert_memory(again, deep, others=2 * 4 * 256, peak=2 * (4 * 272 + 512), states=0)
    halved = replace(SPATIAL, recompute=True)
    assert_memory(halved, deep, others=4 * 256, peak=4 * 272 + 512, states=0)


def test_recompute_in_a_pipeline_keeps_a_segment() -> None:
    again = replace(PIPELINE, recompute=True)
    assert_memory(again, received=2 * 256, peak=2 * 82, states=7800)
    first = stage_memory(TOY, MACHINE, again, range(2))
    assert first == {"others": 128 * 3 / 4, "received": 0, "peak": 228, "states": 912}
