"""Statistics: the names of what a summary keeps of a line of PE counts.

Apart from the kernels that find them: whoever only reads them needs no JAX.
"""

from typing import Literal

from kernels.names.flags import Limit

Objective = Literal["epoch_time", "train_time"]

COUNT = "count_"
# PE counts that a limit forbids or marks, in the order of `Limit`.
COUNTS = tuple(f"{COUNT}{str(each.name).lower()}" for each in Limit)
# What is kept of the best PE count by an objective: fields of `kernels.blocks.summary.Best`, and
# their names. Least time of an epoch; least time to the target, where a law of epochs is known.
BEST: dict[Objective, dict[str, str]] = {
    "epoch_time": {
        "pe": "fastest_pe",
        "time": "fastest_time",
        "comp_time": "fastest_comp_time",
        "memory": "fastest_memory",
        "epochs": "fastest_epochs",
        "efficient_pe": "efficient_pe",
    },
    "train_time": {
        "pe": "soonest_pe",
        "time": "soonest_time",
        "comp_time": "soonest_comp_time",
        "memory": "soonest_memory",
        "epochs": "soonest_epochs",
        "efficient_pe": "soonest_efficient_pe",
    },
}
STATISTICS = (
    *(name for names in BEST.values() for name in names.values()),
    "largest_pe",
    "forbidden_by",
    *COUNTS,
)
# What a summary reads of a block's outputs.
SUMMARISED = ("comp_time", "comm_time", "memory", "limit")
