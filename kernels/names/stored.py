"""Names of outputs that a cube may store, and of elasticities and percentiles.

Separate from the kernel that reads them (`kernels.blocks.outputs`), so that names need no JAX.
"""

from paradl.kernels.names.layout_terms import EVERY_TERM

# Attributes of `kernels.configuration.answers.Answer` by output, in the order of a spec's outputs.
STORED = {
    "comp_time": "compute",
    "comm_time": "communication",
    "memory": "memory",
    "limit": "limit",
    **{name: f"terms.{name}" for name in EVERY_TERM},
    "epochs": "epochs",
    "train_time": "train_time",
    "replicas": "replicas",
    # Not named as the axes `group` and `segments`, which may be in the same cube.
    "group_size": "group",
    "segment_count": "segments",
}
# Attributes of targets with elasticities, d log target / d log parameter.
ELASTIC = {
    "epoch_time": "epoch_time",
    **{name: STORED[name] for name in ("comp_time", "comm_time", "memory", "train_time")},
}
ELASTICITY = "elasticity"
# Degrees of Student's t, the distribution of errors of times' logarithms.
FREEDOM = 4.0
# Percentiles in units of the spread (a normal distribution's 90th is 1.2816).
PERCENTILES = {10: -1.5332, 50: 0.0, 90: 1.5332}

# Of samples: targets with slopes, as attributes of an answer; an epoch's time is the sum of the
# first two.
TARGETS = {"comp_time": "compute", "comm_time": "communication", "memory": "memory"}
EPOCH = "epoch_time"
# Columns of every row: targets, limits, and the degrees that the oracle chose.
ANSWERS = (EPOCH, *TARGETS, "limit", "replicas", "group_size", "segment_count", "global_batch")


def name_elasticity(target: str, parameter: str) -> str:
    """Name the output d log target / d log parameter."""
    return f"{ELASTICITY}_{target}_{parameter}"


def split_elasticity(name: str) -> tuple[str, str] | None:
    """Return target and parameter of an elasticity's name; None for other names."""
    for target in ELASTIC:
        if name.startswith(f"{ELASTICITY}_{target}_"):
            return target, name.removeprefix(f"{ELASTICITY}_{target}_")
    return None
