"""Rows of the commands that list the catalogue."""

from typing import Annotated, Any, Literal, TypedDict

from sweep.answers.types import words
from sweep.answers.types.facts import AnswerType, Fact, state_parameter

PeakFlops = Annotated[float, state_parameter("peak_flops")]
MemoryBandwidth = Annotated[float, state_parameter("memory_bandwidth")]


class ModelRow(TypedDict):
    """A network."""

    model: words.Model
    title: Annotated[str, Fact("what people call it")]
    dataset: words.Dataset
    parameters: Annotated[int, Fact("weights and biases")]
    macs: words.Macs
    layers: Annotated[int, Fact("layers")]
    source: words.Source


class DatasetRow(TypedDict):
    """A data set."""

    dataset: words.Dataset
    samples: Annotated[int, Fact("samples of an epoch")]
    shape: Annotated[str, Fact("a sample's channels and extents, such as 3x226x226")]
    targets: Annotated[int, Fact("what is to be told of a sample, such as classes")] | None
    source: words.Source


class SystemRow(TypedDict):
    """A machine."""

    system: words.System
    pe: Annotated[str, Fact("the processing element, by its name")]
    peak_flops: PeakFlops
    tensor_peaks: Annotated[
        dict[str, float], Fact("dense peaks in lower precisions, those that it has", "FLOP/s")
    ]
    memory: Annotated[float, Fact("memory of a PE", "B", scaled=True)]
    memory_bandwidth: MemoryBandwidth
    pes_per_node: Annotated[int, Fact("PEs of a node")]
    links_per_node: Annotated[int, Fact("links of a node to the network")] | None
    levels: Annotated[list[dict[str, Any]], Fact("levels of the network, the innermost first")]
    source: Annotated[str, Fact("where the figures come from")]


class StrategyRow(TypedDict):
    """A strategy."""

    strategy: words.Strategy
    meaning: Annotated[str, Fact("what it divides")]
    limit: Annotated[str, Fact("how far it goes")]


class ParameterRow(TypedDict):
    """A parameter of an oracle; its value and spread may be by precision."""

    parameter: words.ParameterName
    unit: Annotated[str, Fact("the unit of its values")]
    oracle: Annotated[Literal["machine", "paper", "both"], Fact("whose it is")]
    value: (
        Annotated[
            float | dict[str, float], Fact("before any run, one or one a precision", "of unit")
        ]
        | None
    )
    spread: Annotated[float | dict[str, float], Fact("standard deviation of its logarithm")] | None
    meaning: Annotated[str, Fact("what it is")]
    source: Annotated[str, Fact("where its value comes from")]


ANSWERS = {
    "models": AnswerType(ModelRow),
    "datasets": AnswerType(DatasetRow),
    "systems": AnswerType(SystemRow),
    "strategies": AnswerType(StrategyRow),
    "parameters": AnswerType(ParameterRow),
}
