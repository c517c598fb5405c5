"""Parameters of layouts: how PEs divide a transformer, and what they keep."""

from paradl.grids.entries.machine_parameters import BLOCK_ROWS
from paradl.grids.entries.quantity import MOST, Parameter
from paradl.kernels.names.parallelisms import RECOMPUTE, TRANSFORMERS

NODE = -1  # ranks of ZeRO: those of a node, as HSDP has it
# Parameters of a machine that times and memory of layouts depend on.
KNOWN = (
    *("intra_bandwidth", "inter_bandwidth", "intra_latency", "inter_latency"),
    *("peak_flops", "memory_bandwidth", "reserved"),
    *("rail", "flow", "node_reduce", "node_collective", "startup", "layer_overhead", "overlap"),
    *(row.name for row in BLOCK_ROWS),
)

# Elasticities of layouts are in these.
SLOPED = (*KNOWN, "memory_capacity")


def _count(
    name: str, meaning: str, low: float = 1, high: float = MOST, **more: object
) -> Parameter:
    return Parameter(
        name,
        "1",
        meaning,
        low,
        high,
        whole=True,
        chosen=True,
        oracle="machine",
        **more,  # type: ignore[arg-type]
    )


LAYOUT = (
    *(
        _count(name, f"PEs among which {name} parallelism divides a transformer")
        for name in TRANSFORMERS
    ),
    _count("chunks", "chunks of a pipeline's stage, which are interleaved", default=1.0),
    _count(
        "micro", "sequences of a micro-batch of a layout; by default the whole batch, or a segment"
    ),
    _count(
        "recompute",
        "modules whose output the backward pass computes again, bits",
        0,
        sum(RECOMPUTE.values()),
        default=0.0,
        words={"none": 0, **RECOMPUTE},
    ),
    _count(
        "sequence",
        "whether tensor parallelism divides norms and dropout, too: sequence parallelism",
        0,
        1,
        default=0.0,
        words={"off": 0, "on": 1},
    ),
    _count("zero", "the stage of ZeRO of a layout", 0, 3, default=0.0),
    _count(
        "shard",
        "ranks that ZeRO divides over; 0: all of them",
        NODE,
        default=0.0,
        words={"node": NODE},
    ),
    _count(
        "expert_tensor", "PEs that share each matrix of an expert; 0: as tensor", 0, default=0.0
    ),
)

# All that layouts take.
TAKEN = {
    *("pe", "batch", "accumulate", "segments", "memory_capacity", "max_global_batch", "pipeline"),
    *KNOWN,
    *(row.name for row in LAYOUT),
}
