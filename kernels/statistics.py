"""Statistics: the names of what a summary keeps of a line of PE counts.

Apart from the kernels that find them: whoever only reads them needs no JAX.
"""

from kernels.flags import Limit

COUNT = "count_"
# PE counts that a limit forbids or marks, in the order of `Limit`.
COUNTS = tuple(f"{COUNT}{str(each.name).lower()}" for each in Limit)
STATISTICS = (
    "fastest_pe",
    "fastest_time",
    "fastest_comp_time",
    "fastest_memory",
    "largest_pe",
    "forbidden_by",
    "efficient_pe",
    *COUNTS,
)
# What a summary reads of a block's outputs.
SUMMARISED = ("comp_time", "comm_time", "memory", "limit")
