"""Layer work: what the layers of a measured run take, whatever overhead each of them has.

What a stage of them takes is affine in that overhead, and a pipeline's slowest stage takes the
largest of such sums.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import jax
import numpy as np
from numpy.typing import NDArray

from grids.models.layers import Floats
from kernels.arrays import Cells, PerStage
from kernels.compiled import compiled, fetch
from kernels.division import Division
from kernels.layers import LayerTimes
from kernels.own_part import time_own_part
from sweep.measured.predicted_runs import Conditions
from sweep.measured.runs import MeasuredRun
from sweep.questions.configuration import ONLY, Configuration

# The one parameter of the layers themselves: the others are of the software.
OVERHEAD = "layer_overhead"


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class LayerWork:
    """Times of the roofline, which a profile scales, and how many layers have an overhead.

    sample [s a sample, run]; once [s a pass], layers [stage, run]: of a PE's own part of the
    layers, of each stage of a pipeline. whole [s], of_layers [run]: the whole network's pass of b0
    samples, and its layers. measured [s, run]: of the same pass, 0 without a profile.
    """

    sample: Cells
    once: PerStage
    layers: PerStage
    whole: Cells
    of_layers: Cells
    measured: Cells


def find_layer_work(run: MeasuredRun, conditions: Conditions) -> LayerWork:
    """The run's layers by the roofline, and the whole network's in the batch of its profile."""
    sample, once, layers = _time_stages(run, conditions)
    serial = replace(run, strategy="serial", p=1, memory=None)
    (whole,), (fixed,), (count,) = _time_stages(serial, conditions)
    workload = conditions.make_case(run).grid().workload(*ONLY[:3])
    assert workload is not None  # it was evaluated
    batch = float(workload.measured_batch or 1)
    seconds = 0.0 if workload.seconds is None else float(workload.seconds.sum()) * batch
    return LayerWork(
        sample=np.asarray(sample.max()),
        once=once,
        layers=layers,
        whole=np.asarray(batch * whole + fixed),
        of_layers=np.asarray(count),
        measured=np.asarray(seconds),
    )


def _time_stages(run: MeasuredRun, conditions: Conditions) -> tuple[Floats, Floats, Floats]:
    """Seconds a sample and seconds a pass by the roofline, and layers, of each stage [stage].

    Without any overhead; all layers are one stage where there is no pipeline.
    """
    groups = _ask_roofline(conditions.make_case(run)).grid().groups(ONLY)
    assert groups is not None  # it was evaluated
    division = groups.divide(groups.place()[0])
    times = fetch(_time_own_part(division))
    count = len(groups.table)
    ends = np.array([count])
    if division.group == "pipeline":
        ends = np.ravel(division.placement.ends)
    sums = [
        _add_stages(np.asarray(each), ends)
        for each in (times.forward + times.backward, times.fixed)
    ]
    return sums[0], sums[1], _add_stages(np.ones(count), ends)


def _ask_roofline(asked: Configuration) -> Configuration:
    """The same configuration, of layers that have no overhead."""
    settings = {**(asked.settings or {}), "times": "roofline"}
    return replace(asked, settings=settings, parameters={OVERHEAD: 0.0})


@compiled(numpy=True)
def _time_own_part(division: Division) -> LayerTimes:
    return time_own_part(division)


def _add_stages(values: Floats, ends: NDArray[np.int64]) -> Floats:
    """The sum of each stage's layers, which stop before `ends`; 0 of a stage that is not there."""
    prefix = np.concatenate([[0.0], np.cumsum(values)])
    return np.diff(prefix[np.concatenate([[0], ends])])


def pad_stages(works: Sequence[LayerWork]) -> list[LayerWork]:
    """The works with as many stages as any has; those that are not there take no time."""
    most = max(len(each.once) for each in works)

    def pad(values: PerStage) -> Floats:
        return np.pad(values, (0, most - len(values)))

    return [replace(each, once=pad(each.once), layers=pad(each.layers)) for each in works]
