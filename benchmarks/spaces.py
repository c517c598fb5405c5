"""Design spaces to measure: ResNet-50 on ImageNet and ABCI, as large as needed."""

from grids.grid import Grid
from kernels.options import OracleName
from sweep.engine.run import read_grid

# Strategies whose closed forms, layers and limits differ most.
STRATEGIES = ("data", "data+filter", "spatial", "pipeline")
EIGHT = (*STRATEGIES, "filter", "channel", "data+spatial", "data+pipeline")

ORACLES: tuple[OracleName, ...] = ("paper", "machine")

# One block each in a `wide` cube: 12 of 2**22 cells are 5e7.
ALL = (
    *STRATEGIES,
    "filter",
    "channel",
    "serial",
    "data+channel",
    "data+spatial",
    "data+pipeline",
    "data+filter:group=8",
    "data+spatial:group=8",
)

# PEs, batches, bandwidths of a block of 2**n cells.
WIDE = {16: (64, 32, 32), 18: (256, 32, 32), 20: (1024, 32, 32), 22: (1024, 64, 64)}


def wide(
    log2_cells: int, strategies: tuple[str, ...] = STRATEGIES, oracle: OracleName = "paper"
) -> Grid:
    """Make a space of PEs x batches x bandwidths: only communication varies along all three."""
    return space(strategies, *WIDE[log2_cells], oracle=oracle)


def dense(
    log2_cells: int, strategies: tuple[str, ...] = STRATEGIES, oracle: OracleName = "paper"
) -> Grid:
    """Make a space of PEs x batches: every variable varies along both."""
    return space(strategies, 2 ** (log2_cells - 8), 256, oracle=oracle)


def space(
    strategies: tuple[str, ...],
    pes: int,
    batches: int,
    bandwidths: int = 0,
    systems: tuple[str, ...] = ("abci",),
    oracle: OracleName = "paper",
) -> Grid:
    """Make a space of PE counts and batches from 1 up, and of bandwidths beyond a node unless 0."""
    axes: dict[str, object] = {
        "model": "resnet50",
        "dataset": "imagenet",
        "system": list(systems),
        "strategy": list(strategies),
        "pe": {"range": [1, pes]},
        "batch": {"range": [1, batches]},
    }
    if bandwidths:
        axes["inter_bandwidth"] = {"geomspace": [1e9, 1e12, bandwidths]}
    # A quarter of the memory, so that some cells fit and some do not.
    parameters = {"gamma": 0.25} if oracle == "paper" else {"memory_capacity": "4 GB"}
    return read_grid({"oracle": oracle, "axes": axes, "parameters": parameters})
