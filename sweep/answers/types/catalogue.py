"""Rows of the commands that list the catalogue."""

from typing import Annotated, Literal, TypedDict

from paradl.sweep.answers.types import words
from paradl.sweep.answers.types.facts import AnswerType, Bytes, Fact, state_parameter

PeakFlops = Annotated[float, state_parameter("peak_flops")]
MemoryBandwidth = Annotated[float, state_parameter("memory_bandwidth")]


class ModelRow(TypedDict):
    """Row of `list models`."""

    model: words.Model
    title: Annotated[str, "the usual name"]
    dataset: words.Dataset
    parameters: Annotated[int, "weights and biases"]
    macs: words.Macs
    layers: Annotated[int, "layers"]
    source: words.Source


class DatasetRow(TypedDict):
    """Row of `list datasets`."""

    dataset: words.Dataset
    samples: Annotated[int, "samples per epoch"]
    shape: Annotated[str, "channels and extents of a sample, such as 3x226x226"]
    targets: Annotated[int, "outputs per sample, such as classes"] | None
    source: words.Source


class CollectiveLine(TypedDict):
    """Measured latency and bandwidth of a ring's step, one of the lines whose least time counts."""

    latency: Annotated[float, Fact("start-up of a step", "s")]
    bandwidth: Annotated[float, Fact("bus bandwidth", "B/s")]


class LevelRow(TypedDict):
    """A level of a machine's network."""

    latency: Annotated[float, Fact("start-up of a message", "s")]
    bandwidth: Annotated[float, Fact("bandwidth of a PE's links", "B/s")]
    name: Annotated[str, "the level's name"]
    pes: Annotated[int, "PEs that it spans"]
    oversubscription: Annotated[float, "bandwidth of its links over that to the next level"]
    collectives: (
        Annotated[dict[str, list[CollectiveLine] | None], "measured collectives by name"] | None
    )
    switch_latency: Annotated[float, Fact("start-up of a collective that switches sum", "s")] | None
    shared: Annotated[float, Fact("bandwidth that PEs of a node together have", "B/s")] | None


class SystemRow(TypedDict):
    """Row of `list systems`."""

    system: words.System
    pe: Annotated[str, "name of the processing element"]
    peak_flops: PeakFlops
    tensor_peaks: Annotated[dict[str, float], Fact("dense peaks in lower precisions", "FLOP/s")]
    memory: Annotated[Bytes, "usable memory of a PE"]
    memory_bandwidth: MemoryBandwidth
    watts: Annotated[float, Fact("power limit of a PE's board", "W")] | None
    pes_per_node: Annotated[int, "PEs per node"]
    links_per_node: Annotated[int, "network links per node"] | None
    levels: Annotated[list[LevelRow], "levels of the network, the innermost first"]
    source: Annotated[str, "where the figures come from"]


class StrategyRow(TypedDict):
    """Row of `list strategies`."""

    strategy: words.Strategy
    meaning: Annotated[str, "what the strategy divides"]
    limit: Annotated[str, "how far it scales, or why it cannot be combined"]


class ParameterRow(TypedDict):
    """Row of `list parameters`; value and spread may depend on the precision."""

    parameter: words.ParameterName
    unit: Annotated[str, "the unit of its values"]
    oracle: Annotated[Literal["machine", "paper", "both"], "the oracle that uses it"]
    owner: Annotated[Literal["device", "network", "software", "run"], "what states it"]
    value: (
        Annotated[float | dict[str, float], Fact("value before any measurement", "of unit")] | None
    )
    spread: Annotated[float | dict[str, float], "standard deviation of log value"] | None
    meaning: Annotated[str, "the meaning"]
    source: Annotated[str, "where the value comes from"]


ANSWERS = {
    "list models": AnswerType(ModelRow),
    "list datasets": AnswerType(DatasetRow),
    "list systems": AnswerType(SystemRow),
    "list strategies": AnswerType(StrategyRow),
    "list parameters": AnswerType(ParameterRow),
}
