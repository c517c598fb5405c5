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
_FIELDS = ("pe", "time", "comp_time", "memory", "epochs")
BEST: dict[Objective, dict[str, str]] = {
    "epoch_time": {f: f"fastest_{f}" for f in _FIELDS} | {"efficient_pe": "efficient_pe"},
    "train_time": {f: f"soonest_{f}" for f in (*_FIELDS, "efficient_pe")},
}
STATISTICS = (
    *(name for names in BEST.values() for name in names.values()),
    "largest_pe",
    "forbidden_by",
    *COUNTS,
)
# Outputs of a block that its summary reads.
SUMMARISED = ("comp_time", "comm_time", "memory", "limit")
