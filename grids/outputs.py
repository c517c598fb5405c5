"""Outputs: what a spec may ask a sweep to keep of each answer, by name.

Three kinds: variables of the answer; percentiles of its times; elasticities, d log y / d log x of
times and memory in every continuous parameter, whether it is an axis or not.
"""

from collections.abc import Iterable

from grids.entries.oracles import OracleName
from grids.entries.parameters import CONTINUOUS, PARAMETERS
from grids.reading.errors import shorten, suggest_name
from kernels.percentiles import PERCENTILES
from kernels.stored import ELASTIC, ELASTICITY, STORED, name_elasticity, split_elasticity

# Percentiles of times, which the machine oracle alone knows.
TIMES = ("comp_time", "comm_time", "epoch_time", "train_time")
INTERVALS = {f"{time}_p{percent}": (time, percent) for time in TIMES for percent in PERCENTILES}
ELASTICITIES = {
    name_elasticity(target, parameter): (target, parameter)
    for target in ELASTIC
    for parameter in CONTINUOUS
}
MAIN_OUTPUTS = ("comp_time", "comm_time", "memory", "limit")
OUTPUTS = tuple(STORED)
# What a law of epochs is needed for.
TRAINING = ("epochs", "train_time")


def check_outputs(names: tuple[str, ...]) -> tuple[str, ...]:
    """The names, if each is an output and stands once."""
    for name in names:
        if name not in (*OUTPUTS, *INTERVALS, *ELASTICITIES):
            raise ValueError(f"unknown output {shorten(name)}; {_suggest_output(name)}")
    if len(set(names)) != len(names):
        raise ValueError(f"expected each output once, got {shorten(list(names))}")
    return names


def _suggest_output(name: str) -> str:
    """Advice on an unknown name: of an elasticity, on the part that is unknown."""
    parts = split_elasticity(name)
    if parts is not None:
        return f"elasticities are in parameters, {suggest_name(parts[1], CONTINUOUS)}"
    if name.startswith(ELASTICITY):
        nearest = suggest_name(name, ELASTICITIES).partition("known:")[0]
        return f"{nearest}elasticities are of {', '.join(ELASTIC)}"
    return suggest_name(name, (*OUTPUTS, *INTERVALS, name_elasticity("epoch_time", "PARAMETER")))


def list_trained(names: Iterable[str]) -> list[str]:
    """The outputs that a law of epochs is needed for, of these."""
    return [name for name in names if _find_target(name) in TRAINING]


def _find_target(name: str) -> str:
    """What an output is a number of: itself, or what it is a percentile or an elasticity of."""
    if name in INTERVALS:
        return INTERVALS[name][0]
    return ELASTICITIES[name][0] if name in ELASTICITIES else name


def list_unknown(names: Iterable[str], oracle: OracleName) -> list[tuple[str, str]]:
    """Elasticities in parameters that an oracle does not know, with the parameters, of these."""
    asked = [(name, ELASTICITIES[name][1]) for name in names if name in ELASTICITIES]
    return [pair for pair in asked if PARAMETERS[pair[1]].oracle not in (None, oracle)]


def list_sloped(names: Iterable[str]) -> tuple[str, ...]:
    """The parameters that elasticities are in, of these outputs; in one order."""
    asked = {ELASTICITIES[name][1] for name in names if name in ELASTICITIES}
    return tuple(parameter for parameter in CONTINUOUS if parameter in asked)


def list_layered(names: Iterable[str]) -> tuple[str, ...]:
    """Of these parameters, those that layers depend on."""
    return tuple(parameter for parameter in list_sloped(names) if PARAMETERS[parameter].layered)
