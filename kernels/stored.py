"""Stored: what a cube may keep of an answer, by name, and where an answer has it.

Apart from the kernel that reads it (`kernels.outputs`): whoever only names outputs needs no JAX.
"""

from kernels.terms import TERMS

# To an attribute of `kernels.oracle.Answer`, in the order in which a spec's outputs are listed.
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
