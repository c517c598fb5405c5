"""Stored: what a cube may keep of an answer, by name, where an answer has it; percentiles.

Apart from the kernel that reads it (`kernels.blocks.outputs`): naming outputs needs no JAX.
"""

from kernels.names.terms import TERMS

# To an attribute of `kernels.oracle.answer`, in the order in which a spec's outputs are listed.
STORED = {
    "comp_time": "compute",
    "comm_time": "communication",
    "memory": "memory",
    "limit": "limit",
    **{name: f"terms.{name}" for name in TERMS},
    "epochs": "epochs",
    "train_time": "train_time",
    "replicas": "replicas",
    # Of other names than the axes `group` and `segments`, with which they may share a cube.
    "group_size": "group",
    "segment_count": "segments",
}
# What there are elasticities of, d log y / d log x, likewise.
ELASTIC = {
    "epoch_time": "epoch_time",
    **{name: STORED[name] for name in ("comp_time", "comm_time", "memory", "train_time")},
}
ELASTICITY = "elasticity"
# By percent, steps of a spread: the standard deviation of a time's logarithm, which is Student's t
# with 4 degrees of freedom, as the fit takes errors for.
# 1.5332: the 90th percentile of it; 1.2816 of a normal.
PERCENTILES = {10: -1.5332, 50: 0.0, 90: 1.5332}


def name_elasticity(target: str, parameter: str) -> str:
    """The output that is d log target / d log parameter."""
    return f"{ELASTICITY}_{target}_{parameter}"


def split_elasticity(name: str) -> tuple[str, str] | None:
    """Target and parameter of an output that is an elasticity, None of any other name."""
    for target in ELASTIC:
        if name.startswith(f"{ELASTICITY}_{target}_"):
            return target, name.removeprefix(f"{ELASTICITY}_{target}_")
    return None
