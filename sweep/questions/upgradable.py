"""Upgradable: the continuous parameters of machines and their software, which times depend on."""

import numpy as np

from kernels.case import Case
from kernels.places import PLACES, read_parameter

# Of a run, not of a machine; and what no time depends on.
APART = ("batch", "accumulate", "gamma", "memory_capacity", "reserved")
UPGRADABLE = tuple(name for name in PLACES if name not in APART)


def read_value(case: Case, name: str) -> float:
    """The value of a parameter in a case of one cell, of several levels the first."""
    return float(np.ravel(read_parameter(case, name))[0])
