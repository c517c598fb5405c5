"""Names of the statistics that a summary keeps of a line of PE counts.

Separate from the kernels that compute them, so that readers need no JAX.

To add an objective: `Objective`, and its names in `BEST`, here; its time along a line in
`_find_best` of `kernels.blocks.summary`; its words in `SUMS` of `sweep.cube.variables`. Tests:
tests/kernels/test_summary.py (a loop over the line), tests/sweep/cells/test_source.py.
"""

from typing import Literal

from paradl.kernels.names.flags import Limit

Objective = Literal["epoch_time", "train_time"]

# Least parallel efficiency that counts as efficient: below, more than half of the machine idles.
EFFICIENCY = 0.5

COUNT = "count_"
# Numbers of PE counts with each limit or mark, in the order of `Limit`.
COUNTS = tuple(f"{COUNT}{str(limit.name).lower()}" for limit in Limit)
# Names of the statistics of the best PE count, by objective and by field of
# `kernels.blocks.summary.Best`; train_time only if a law of epochs is known.
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
# Outputs of a block that its summary reads.
SUMMARISED = ("comp_time", "comm_time", "memory", "limit")
