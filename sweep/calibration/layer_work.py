"""Layer work: how long the layers of a measured run take on the device, by the roofline.

A profile scales it. By how much depends on how long the host takes to launch layers, since a
measured pass takes the longer of device and host time.
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import jax
import numpy as np

from kernels.arrays import Cells
from kernels.configuration.case import Case
from kernels.names.arrays import Floats
from kernels.work.group import GroupWork
from sweep.cells.design_space import ONLY
from sweep.measured.runs import MeasuredRun

if TYPE_CHECKING:
    from sweep.measured.predicted_runs import Conditions


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class LayerWork:
    """Times by the roofline, and of the measured pass.

    sample [s per sample, run], fixed [s per pass, run]: of a PE's part of the layers, or of a
    pipeline's largest stage. whole [s, run], launches [1, run]: of a pass of b0 samples through the
    whole network. measured [s, run]: of the same pass, 0 without a profile.
    """

    sample: Cells
    fixed: Cells
    whole: Cells
    launches: Cells
    measured: Cells


def find_layer_work(run: MeasuredRun, conditions: "Conditions") -> LayerWork:
    """Return the run's layer work, and that of the whole network in the batch of its profile."""
    work = _reduce_roofline(run, conditions)
    serial = _reduce_roofline(replace(run, strategy="serial", p=1, memory=None), conditions)
    workload = conditions.make_case(run).grid().workload(*ONLY[:3])
    assert workload is not None  # the run has a case
    batch = float(workload.measured_batch)
    seconds = 0.0 if workload.seconds is None else float(workload.seconds.sum()) * batch
    return LayerWork(
        sample=_take_only(work.forward_backward),
        fixed=_take_only(work.fixed),
        whole=batch * _take_only(serial.forward_backward) + _take_only(serial.fixed),
        launches=_take_only(serial.launches),
        measured=np.asarray(seconds),
    )


def _reduce_roofline(run: MeasuredRun, conditions: "Conditions") -> GroupWork:
    """Return the work of the run's group, with times by the roofline."""
    configuration = conditions.make_case(run)
    settings = {**(configuration.settings or {}), "times": "roofline"}
    case = replace(configuration, settings=settings).grid().case(ONLY)
    assert isinstance(case, Case)  # observations are of configurations that exist
    return case.machine_work


def _take_only(values: Cells) -> Floats:
    return np.asarray(values, float).reshape(())
