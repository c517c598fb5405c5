"""Outputs that a sweep may keep, by name.

There are variables of the answer, percentiles of its times, and elasticities d log y / d log x of
times and memory in any continuous parameter, whether it is an axis or not.
"""

from collections.abc import Iterable

from paradl.grids.entries.parameters import CONTINUOUS, PARAMETERS
from paradl.grids.reading.errors import find_meant, shorten, suggest_name
from paradl.kernels.names.stored import (
    ELASTIC,
    ELASTICITY,
    PERCENTILES,
    STORED,
    name_elasticity,
    split_elasticity,
)
from paradl.kernels.options import OracleName

# Percentiles of times; only the machine oracle has them.
TIMES = ("comp_time", "comm_time", "epoch_time", "train_time")
INTERVALS = {f"{time}_p{percent}": (time, percent) for time in TIMES for percent in PERCENTILES}
ELASTICITIES = {
    name_elasticity(target, parameter): (target, parameter)
    for target in ELASTIC
    for parameter in CONTINUOUS
}
MAIN_OUTPUTS = ("comp_time", "comm_time", "memory", "limit")
OUTPUTS = tuple(STORED)
SLOPED = ("batch", "inter_bandwidth", "peak_flops")  # examples for a message
# Outputs that need a law of epochs.
TRAINING = ("epochs", "train_time")


def check_outputs(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names if all are outputs, without repetition."""
    for name in names:
        if name not in (*OUTPUTS, *INTERVALS, *ELASTICITIES):
            raise ValueError(f"unknown output {shorten(name)}; {_suggest_output(name)}")
    if len(set(names)) != len(names):
        raise ValueError(f"expected each output once, got {shorten(list(names))}")
    return names


def _suggest_output(name: str) -> str:
    """Advise on an unknown name, without a list of elasticities, of which there are hundreds."""
    parts = split_elasticity(name)
    if parts is None and not name.startswith(ELASTICITY):
        example = name_elasticity("epoch_time", "PARAMETER")
        return suggest_name(name, (*OUTPUTS, *INTERVALS, example))
    meant = find_meant(name, ELASTICITIES) if parts is None or parts[1] not in PARAMETERS else None
    hint = f"did you mean {shorten(meant)}? " if meant else ""
    return (
        f"{hint}elasticities are of {', '.join(ELASTIC)}, in continuous parameters, such as "
        f"{', '.join(SLOPED)}"
    )


def list_trained(names: Iterable[str]) -> list[str]:
    """Return the outputs that need a law of epochs."""
    targets = INTERVALS | ELASTICITIES  # of percentiles and elasticities
    return [name for name in names if targets.get(name, (name,))[0] in TRAINING]


def list_unknown(names: Iterable[str], oracle: OracleName) -> list[tuple[str, str]]:
    """Return elasticities in parameters that an oracle does not have, with these parameters."""
    pairs = [(name, ELASTICITIES[name][1]) for name in names if name in ELASTICITIES]
    return [pair for pair in pairs if PARAMETERS[pair[1]].oracle not in (None, oracle)]


def list_sloped(names: Iterable[str]) -> tuple[str, ...]:
    """Return the parameters of the elasticities among these outputs, in the order of CONTINUOUS."""
    sloped = {ELASTICITIES[name][1] for name in names if name in ELASTICITIES}
    return tuple(parameter for parameter in CONTINUOUS if parameter in sloped)
