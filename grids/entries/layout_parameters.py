"""Parameters of layouts: how PEs divide a transformer, and what they keep."""

from paradl.grids.entries.machine_parameters import BLOCK_ROWS
from paradl.grids.entries.quantity import Parameter
from paradl.kernels.names.parallelisms import LAYOUT_COLUMNS

# Parameters of a machine that times and memory of layouts depend on.
KNOWN = (
    *("intra_bandwidth", "inter_bandwidth", "intra_latency", "inter_latency"),
    *("peak_flops", "memory_bandwidth", "reserved"),
    *("rail", "flow", "node_reduce", "node_collective", "startup", "layer_overhead", "overlap"),
    *(row.name for row in BLOCK_ROWS),
)

# Elasticities of layouts are in these.
SLOPED = (*KNOWN, "memory_capacity")

LAYOUT = tuple(
    Parameter(
        name,
        "1",
        f"PEs among which {name} parallelism divides a transformer"
        if row.is_degree
        else row.meaning,
        min((row.usual, *row.words.values())),
        row.most,
        whole=True,
        chosen=True,
        oracle="machine",
        default=None if row.is_degree or row.always else float(row.usual),
        words=row.words,
    )
    for name, row in LAYOUT_COLUMNS.items()
    if row.meaning
)

# All that layouts take.
TAKEN = {
    *("pe", "batch", "accumulate", "segments", "memory_capacity", "headroom", "max_global_batch"),
    "pipeline",
    *KNOWN,
    *(row.name for row in LAYOUT),
}
