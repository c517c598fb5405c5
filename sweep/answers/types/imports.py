"""Answers of `import` and `probe`: networks and machines of files, and times of this device."""

from typing import Annotated, TypedDict

from paradl.sweep.answers.types import words
from paradl.sweep.answers.types.facts import AnswerType, Fact, Seconds

Parameters = Annotated[int, "weights and biases"]


class ImportedModel(TypedDict):
    """Network that was written."""

    model: words.Model
    layers: Annotated[int, "layers"]
    parameters: Parameters
    macs: words.Macs


class CheckedModel(TypedDict):
    """Parameters of a network and of a checkpoint."""

    model: words.Model
    parameters: Parameters
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
    "import model": AnswerType(ImportedModel, record=True),
    "import check": AnswerType(CheckedModel, record=True),
    "import machine": AnswerType(MachineRecord, record=True),
    "probe machine": AnswerType(ProbedOperation),
    "probe model": AnswerType(ProbedLayer),
}
