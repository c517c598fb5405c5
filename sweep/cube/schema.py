"""What the cube's variables and coordinates are called: CF attributes, the one place for units."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from grids.entries.parameters import PARAMETERS
from grids.spec import INTERVALS, TERMS
from kernels.flags import Limit
from kernels.statistics import COUNTS, STATISTICS
from sweep.cube.layout import STATISTIC

Attributes = dict[str, Any]
Arrays = dict[str, NDArray[Any]]

CF_UNITS = {"1": "1", "s": "s", "B": "byte", "B/s": "byte s-1", "FLOP/s": "s-1"}

LONG_NAMES = {
    "comp_time": "time computing, per epoch",
    "comm_time": "time communicating, per epoch",
    "memory": "memory of the fullest PE",
    "limit": "what forbids the configuration",
    "serial_time": "time of an epoch on one PE",
    "forward_backward": "time of forward and backward passes, per epoch",
    "pipeline_bubble": "time stages wait for their first and after their last segment, per epoch",
    "weight_update": "time of weight updates, per epoch",
    "split_overhead": "time that dividing layers costs beside arithmetic, per epoch",
    "gradient_exchange": "time of the gradient exchange across replicas, per epoch",
    "layer_collectives": "time of layer-wise collectives inside a group, per epoch",
    "halo_exchange": "time of halo exchanges inside a group, per epoch",
    "split_gather": "time of gathers where a spatial split ends, per epoch",
    "point_to_point": "time of transfers from stage to stage, per epoch",
    "comp_time_p10": "10th percentile of comp_time",
    "comp_time_p50": "median of comp_time",
    "comp_time_p90": "90th percentile of comp_time",
    "comm_time_p10": "10th percentile of comm_time",
    "comm_time_p50": "median of comm_time",
    "comm_time_p90": "90th percentile of comm_time",
    "epoch_time_p10": "10th percentile of the time of an epoch",
    "epoch_time_p50": "median of the time of an epoch",
    "epoch_time_p90": "90th percentile of the time of an epoch",
    "replicas": "replicas of the model (data-parallel groups), p1",
    "group_size": "PEs in a group, p2",
}

# What a summary keeps of a line of PE counts: type, what an incompatible pair reads as, meaning.
SUMMARY: dict[str, tuple[str, float, str]] = {
    "fastest_pe": ("int64", 0, "PE count with the least epoch time; 0: nothing is feasible"),
    "fastest_time": ("float32", np.nan, "least time of an epoch"),
    "fastest_comp_time": ("float32", np.nan, "time computing, per epoch, at fastest_pe"),
    "fastest_memory": ("float32", np.nan, "memory of the fullest PE at fastest_pe"),
    "largest_pe": ("int64", 0, "largest feasible PE count; 0: nothing is feasible"),
    "forbidden_by": ("uint8", int(Limit.INCOMPATIBLE), "flags that forbid the next PE count"),
    "efficient_pe": ("int64", 0, "largest PE count with half of the ideal speedup; 0: none"),
    **dict.fromkeys(COUNTS, ("int64", 0, "PE counts that the limit forbids or marks")),
}
# At half efficiency, half of the machine is paid for nothing: a customary place to stop.
EFFICIENCY = 0.5

COORDINATES = {
    "model": "network architecture",
    "dataset": "data set, which fixes the sample shape and the samples of an epoch",
    "system": "machine",
    "strategy": "parallelisation strategy",
}


def dtype(output: str) -> np.dtype[np.generic]:
    """How a variable is stored."""
    return np.dtype("uint8" if output == "limit" else "float32")


def fill_value(output: str) -> float | int:
    """What a block that is not written reads as: no such configuration can exist."""
    return int(Limit.INCOMPATIBLE) if output == "limit" else float("nan")


def typed(table: NDArray[np.float64]) -> Arrays:
    """Statistics, which lead in a table, by name; NaN throughout is of a pair that cannot be."""
    return {
        name: np.where(np.isnan(values), SUMMARY[name][1], values).astype(SUMMARY[name][0])
        for name, values in zip(STATISTICS, table, strict=True)
    }


def names(flags: int) -> list[str]:
    """The names of the limits in a flag byte."""
    return [each.name.lower() for each in Limit if each & flags and each.name]


def variable(output: str) -> Attributes:
    """CF attributes of a variable."""
    attributes: Attributes = {"long_name": LONG_NAMES[output]}
    if output == "limit":
        meanings = " ".join(each.name.lower() for each in Limit if each.name)
        masks = np.array([each.value for each in Limit], "uint8")
        return attributes | {
            "flag_masks": masks.tolist(),
            "flag_meanings": meanings,
            "comment": "uneven and batch_exceeds_dataset are marks, and forbid nothing",
        }
    if output == "memory":
        return attributes | {"units": "byte"}
    return attributes | {"units": "s" if output in TIMES else "1"}


def coordinate(dim: str, scaling: str) -> Attributes:
    """CF attributes of a coordinate."""
    if dim == STATISTIC:
        meanings = {name: meaning for name, (_, _, meaning) in SUMMARY.items()}
        return {"long_name": "what of a line of PE counts", "meanings": meanings}
    if dim in COORDINATES:
        return {"long_name": COORDINATES[dim]}
    if dim == "batch":
        meaning = "samples a replica, b" if scaling == "weak" else "samples a mini-batch, B"
        return {"long_name": meaning, "units": "1"}
    parameter = PARAMETERS[dim]
    return {"long_name": parameter.meaning, "units": CF_UNITS[parameter.unit]}


TIMES = {"comp_time", "comm_time", "serial_time", *TERMS, *INTERVALS}
