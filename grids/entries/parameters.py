"""Oracle parameters: every number that a spec may fix or make an axis.

The table serves axes, fixed values, command-line settings and the cube's attributes: a new row may
be written in every spec, and grids/inputs/ looks up its value by name. A parameter that is not
given keeps the value of the system or strategy.

To add one: a row in `grids.entries.machine_parameters`, or here for one that users choose for each
training; the spec's axis, `--set`, the schema and `list parameters` follow. A field of the same
name in `kernels.machine.network`, `software` or `device`, with the formula that uses it; prior,
derivatives, samples, elasticities and crossovers follow. What a system states is read in
`grids.inputs.machine`, what a run states in `grids.inputs.runs`. Tests:
tests/grids/inputs/test_case.py (what it overrides), tests/test_points.py (setting it equals an
axis of it).
"""

from functools import partial
from typing import Any

from paradl.grids.entries.machine_parameters import BLOCK_ROWS, MACHINE
from paradl.grids.entries.quantity import (
    ABOVE_ZERO,
    BANDWIDTH,
    CAPACITY,
    LATENCY,
    MOST,
    SPEED,
    Parameter,
)
from paradl.grids.reading.errors import InputError, shorten
from paradl.kernels.names.parallelisms import KINDS, LAYOUT_COLUMNS

# Parameters of a machine that times and memory of layouts depend on.
KNOWN = (
    *("intra_bandwidth", "inter_bandwidth", "intra_latency", "inter_latency"),
    *("peak_flops", "memory_bandwidth", "reserved"),
    *("rail", "flow", "node_reduce", "node_collective", "startup", "layer_overhead", "overlap"),
    "offload_rate",
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
    *("fit_chance", "pipeline"),
    *KNOWN,
    *(row.name for row in LAYOUT),
}


# Parallelisms that may be combined inside a replica, each with a degree.
DEGREES = tuple(name for name, kind in KINDS.items() if kind.alone is None)


def _count(name: str, meaning: str, *, chosen: bool = True, **facts: Any) -> Parameter:
    """Return a row of a whole number from 1 on, which users choose for each training."""
    return Parameter(name, "1", meaning, 1, MOST, whole=True, chosen=chosen, **facts)


_network, _device = (partial(Parameter, owner=owner) for owner in ("network", "device"))

_ALL = (
    # Axes follow this order in every cube; cases rely on pe being the first.
    _count("pe", "the number of processing elements (PEs)", layered=True, free=False),
    _count(
        "batch",
        "samples per replica under weak scaling, of the whole mini-batch under strong scaling",
        free=False,
    ),
    _network("intra_bandwidth", "B/s", "bandwidth inside a node", ABOVE_ZERO, scale=BANDWIDTH),
    _network(
        "inter_bandwidth",
        "B/s",
        "bandwidth of every level beyond a node",
        ABOVE_ZERO,
        scale=BANDWIDTH,
    ),
    _network("intra_latency", "s", "start-up of a message inside a node", 0, scale=LATENCY),
    _network("inter_latency", "s", "start-up of a message beyond a node", 0, scale=LATENCY),
    _network(
        "staging_bandwidth",
        "B/s",
        "bandwidth through host memory (halo)",
        ABOVE_ZERO,
        scale=BANDWIDTH,
    ),
    _network("staging_latency", "s", "start-up through host memory (halo)", 0, scale=LATENCY),
    _device("peak_flops", "FLOP/s", "peak FLOP/s of a PE", ABOVE_ZERO, scale=SPEED, layered=True),
    _device(
        "efficiency", "1", "share of the peak FLOP/s that layers reach", ABOVE_ZERO, 1, layered=True
    ),
    _device(
        "memory_bandwidth",
        "B/s",
        "memory bandwidth of a PE",
        ABOVE_ZERO,
        scale=BANDWIDTH,
        layered=True,
    ),
    _device("memory_capacity", "B", "memory of a PE", ABOVE_ZERO, scale=CAPACITY),
    # The default is single precision.
    Parameter(
        "delta", "B", "bytes per item", ABOVE_ZERO, 1024, default=4.0, layered=True, oracle="paper"
    ),
    # The default is the paper's bound, without reuse. All runs that its authors measured on 16 GB
    # fit with 0.27 or less.
    Parameter(
        "gamma",
        "1",
        "share of the memory that remains with buffer reuse",
        ABOVE_ZERO,
        1,
        default=1.0,
        oracle="paper",
    ),
    # 1: a flow alone on its links. On ABCI: up to 2 for gradients of groups inside a node, by
    # counting rings; 8 for halos and 2 for gathers, set by the authors.
    Parameter("phi", "1", "contention of the gradient exchange", 1),
    _network("phi_halo", "1", "contention of the halo exchange", 1),
    _network("phi_gather", "1", "contention of the gather at the end of a spatial split", 1),
    _count("segments", "segments (micro-batches) of a pipeline", default=4.0),
    _count(
        "accumulate",
        "passes whose gradients are accumulated before replicas exchange them",
        default=1.0,
    ),
    _count(
        "max_global_batch",
        "the largest global batch; larger ones are assumed not to converge",
        chosen=False,
    ),
    Parameter(
        *("headroom", "1", "share of each PE's memory to keep free", 0, 0.999),
        default=0.0,
        chosen=True,
    ),
    Parameter(
        *("fit_chance", "1", "least probability that memory suffices; 0: by its median", 0, 0.999),
        oracle="machine",
        default=0.0,
        chosen=True,
    ),
    *MACHINE,
    _count("group", "PEs of a group (a replica) in hybrids", layered=True),
    *(
        _count(
            name,
            f"PEs among which {name} parallelism divides a replica",
            layered=True,
            oracle="machine",
        )
        for name in DEGREES
    ),
    *LAYOUT,
)

# Numbers that `predict` derives, and the parameters that determine them.
FOLLOWS = {
    "group_latency": "intra_latency or inter_latency",
    "group_bandwidth": "intra_bandwidth or inter_bandwidth",
    "replica_latency": "intra_latency or inter_latency",
    "replica_bandwidth": "intra_bandwidth or inter_bandwidth",
    "halo_latency": "staging_latency",
    "halo_bandwidth": "staging_bandwidth",
    "gradient_delta": "the precision: --system NAME:precision=amp",
}

PARAMETERS = {parameter.name: parameter for parameter in _ALL}

# Subsets by a property, so that callers need not name parameters.
DEFAULTS = {row.name: row.default for row in _ALL if row.default is not None}
LAYERED = tuple(row.name for row in _ALL if row.layered)
FREE = tuple(row.name for row in _ALL if row.free)
GIVEN = tuple(row.name for row in _ALL if not row.chosen)
LAYOUT_NAMES = tuple(row.name for row in LAYOUT)
# Counts that decide how layers are laid out, bytes per item, which follow from the precision, and
# memory to keep free, or by chance, which changes no answer but its limit: there are no derivatives
# in them.
DISCRETE = (
    *("pe", "group", *DEGREES, *LAYOUT_NAMES, "segments"),
    *("max_global_batch", "delta", "headroom", "fit_chance"),
)
# Parameters in which derivatives are taken (places in a case: `kernels.configuration.places`).
CONTINUOUS = tuple(row.name for row in _ALL if row.name not in DISCRETE)


def expect_free(name: str) -> None:
    """Raise InputError for a name that is no parameter with a value beside the axes."""
    if name in PARAMETERS and name not in FREE:
        raise InputError(f"{name!r} is always an axis; write it under 'axes'")
    if name in FOLLOWS:
        raise InputError(f"{name!r} follows from other parameters; set {FOLLOWS[name]}")
    if name not in FREE:
        raise InputError.unknown("parameter", name, FREE)


def read_parameters(value: object) -> dict[str, float]:
    """Read values by parameter in SI units; InputError begins with the parameter's name."""
    if not isinstance(value, dict):
        raise InputError(f"expected 'name: value' lines, got {shorten(value)}")
    for name in value:
        expect_free(name)
    return {name: PARAMETERS[name].read(number, name) for name, number in value.items()}
