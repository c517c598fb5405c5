"""Describe how to launch a configuration: its processes, their mesh, and what they are fed."""

import math
from collections.abc import Mapping

from paradl.grids.grid import Grid
from paradl.kernels.configuration.case import Case
from paradl.kernels.names.parallelisms import DATA
from paradl.kernels.oracle.formulas import count_segments
from paradl.sweep.answers.numbers import number
from paradl.sweep.answers.types.prediction import Launch, Prediction
from paradl.sweep.launching.processes import describe_processes

# Divides the PEs of other parallelisms once more.
FOLDED = "expert"


def describe_launch(grid: Grid, case: Case, predicted: Prediction) -> Launch:
    """Describe the processes of a configuration, their mesh, and their samples.

    Keys include world_size [ranks]; mesh: degrees of parallelisms, the outermost first;
    local_batch: samples per replica and pass; micro_batch: samples per segment of a pass.
    """
    processes = describe_processes(predicted["pe"], grid.systems[0].pes_per_node)
    mesh = {name: n for name, n in predicted["degrees"].items() if name != FOLDED}
    # A single stage does not cut its passes into segments.
    # It has a time, so none of these is None.
    segments = predicted["segments"] or 1 if number(count_segments(case)) > 1 else 1
    batch, whole = predicted["batch"] or 0.0, predicted["global_batch"] or 0.0
    accumulate = int(number(case.run.accumulate))
    return {
        **processes,
        "command": f"{processes['command']} train.py",
        # In a device mesh, ranks increase fastest along the last dimension.
        "mesh": mesh,
        "sampler": {"num_replicas": predicted["replicas"] or 1, "rank": _write_replica(mesh)},
        "local_batch": batch,
        "micro_batch": batch / segments,
        "micro_batches": segments * accumulate,
        "accumulate": accumulate,
        "global_batch": whole,
    }


def _write_replica(mesh: Mapping[str, int]) -> str:
    """Write the replica of a rank as a Python expression."""
    names, replicas, count = [*mesh], mesh.get(DATA, 1), math.prod(mesh.values())
    near = (
        math.prod(mesh[name] for name in names[names.index(DATA) + 1 :]) if replicas > 1 else count
    )
    replica = "rank" if near == 1 else f"rank // {near}"
    return replica if near * replicas == count else f"{replica} % {replicas}"
