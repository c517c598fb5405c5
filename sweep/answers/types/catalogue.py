"""Answers about entries of the catalogue, and of what adds to them: `import`, `probe`."""

from typing import Annotated, Literal, TypedDict

from paradl.sweep.answers.types import words
from paradl.sweep.answers.types.facts import AnswerType, Bytes, Fact, Seconds, state_parameter

PeakFlops = Annotated[float, state_parameter("peak_flops")]
MemoryBandwidth = Annotated[float, state_parameter("memory_bandwidth")]


class ModelCounts(TypedDict):
    """What a network has."""

    model: words.Model
    parameters: Annotated[int, "weights and biases"]
    macs: words.Macs
    layers: Annotated[int, "layers"]


class ModelRow(ModelCounts):
    """Row of `list models`."""

    title: Annotated[str, "the usual name"]
    dataset: words.Dataset
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


class CheckedModel(TypedDict):
    """Parameters of a network and of a checkpoint."""

    model: words.Model
    parameters: Annotated[int, "weights and biases"]
    checkpoint: Annotated[int, "numbers in the checkpoint"]


class RatedRun(TypedDict):
    """How well a machine predicts the rows of a log."""

    log: Annotated[str, "file and line"]
    collective: Annotated[str, "what was measured, such as all_reduce"]
    pes: Annotated[int, "PEs of the run"]
    rows: Annotated[int, "measured sizes"]
    lines: Annotated[int, "lines of latency and bandwidth, of which the fastest counts"]
    step_latency: Annotated[Seconds, "start-up of a ring's step"]
    bus_bandwidth: Annotated[float, Fact("bandwidth that is reached", "B/s")]
    median_error: Annotated[float, "median relative error of the predicted times"]
    median_error_above_1MB: Annotated[float, "the same of large messages"] | None
    worst_error: Annotated[float, "the largest relative error"]
    sizes: Annotated[list[float], Fact("sizes of messages", "B")]
    measured: Annotated[list[float], Fact("measured times, by size", "s")]
    predicted: Annotated[list[float], Fact("predicted times, by size", "s")]


class MachineRecord(TypedDict):
    """Machine that was written, and how well it predicts its logs."""

    system: words.System
    rows: Annotated[list[RatedRun], "one row per collective of a log"]
    tags: Annotated[dict[str, str], "by key: measured, fitted, stated, data sheet or assumed"]
    notes: Annotated[list[str], "what the logs leave open"]


class ProbedOperation(TypedDict):
    """Time of an operation on this device."""

    measured: Annotated[str, "the operation and its size"]
    seconds: Annotated[Seconds, "its time"]
    flops_per_second: Annotated[float, Fact("its rate", "FLOP/s")] | None
    bytes_per_second: Annotated[float, Fact("its memory traffic", "B/s")] | None


class ProbedLayer(TypedDict):
    """Time of a layer on this device."""

    layer: Annotated[str, "name of the layer"]
    seconds: Annotated[Seconds, "time of a batch, forward and backward"]


ANSWERS = {
    "list models": AnswerType(ModelRow),
    "list datasets": AnswerType(DatasetRow),
    "list systems": AnswerType(SystemRow),
    "list strategies": AnswerType(StrategyRow),
    "list parameters": AnswerType(ParameterRow),
    "import model": AnswerType(ModelCounts, record=True),
    "import check": AnswerType(CheckedModel, record=True),
    "import machine": AnswerType(MachineRecord, record=True),
    "probe machine": AnswerType(ProbedOperation),
    "probe model": AnswerType(ProbedLayer),
}
