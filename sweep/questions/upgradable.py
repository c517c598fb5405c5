"""Upgradable: the continuous parameters of machines and their software, which times depend on."""

import numpy as np

from grids.entries.parameters import GIVEN
from kernels.case import Case
from kernels.places import PLACES, read_parameter

# No time depends on these.
TIMELESS = ("gamma", "memory_capacity", "reserved")
UPGRADABLE = tuple(name for name in PLACES if name in GIVEN and name not in TIMELESS)


def read_value(case: Case, name: str) -> float:
    """The value of a parameter in a case of one cell, of several levels the first."""
    return float(np.ravel(read_parameter(case, name))[0])
