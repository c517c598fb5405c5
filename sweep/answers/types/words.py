"""Fields that several answers share, each defined once with its type, unit and meaning."""

from typing import Annotated, Literal, NotRequired, TypedDict

from paradl.kernels.names.flags import TOO_SLOW, UNSUPPORTED
from paradl.kernels.names.layout_terms import EVERY_TERM
from paradl.sweep.answers.types.facts import (
    Bytes,
    Fact,
    Seconds,
    state_parameter,
    state_variable,
)
from paradl.sweep.cube.variables import name_limits

# Units that depend on another field, or on an option.
OF_PARAMETER, OF_AXIS = "SI, of the parameter", "SI, of the axis that --worst-case names"

Model = Annotated[str, "the network: its name in the catalogue, or in its file"]
Dataset = Annotated[str, "the data set"]
System = Annotated[str, "the machine"]
Strategy = Annotated[str, "how the training is divided, such as data+filter:group=4"]
Precision = Annotated[str, "the precision of numbers in training"]
Software = Annotated[str, "how gradients are sent"]
OracleName = Annotated[Literal["machine", "paper"], "the oracle"]
Times = Annotated[Literal["measured", "roofline"], "source of the layers' times"]
Profile = Annotated[str, "the measured time of the model that was used, or why none was"]
Source = Annotated[str, "where the entry comes from"]

PE = Annotated[int, state_parameter("pe")]
Batch = Annotated[int, state_parameter("batch")]
Group = Annotated[int, state_parameter("group")]
Segments = Annotated[int, state_parameter("segments")]
Replicas = Annotated[int, state_variable("replicas")]
GroupSize = Annotated[int, state_variable("group_size")]
SegmentCount = Annotated[int, state_variable("segment_count")]
GlobalBatch = Annotated[int, state_variable("global_batch")]

EpochTime = Annotated[float, state_variable("epoch_time", "s/epoch")]
IterationTime = Annotated[Seconds, "time per iteration"]
CompTime = Annotated[float, state_variable("comp_time", "s/epoch")]
CommTime = Annotated[float, state_variable("comm_time", "s/epoch")]
Epochs = Annotated[float, state_variable("epochs")]
TrainTime = Annotated[float, state_variable("train_time", "s")]
PEHours = Annotated[float, Fact("PE-hours per epoch, or in all where epochs are known", "h")]
Cost = Annotated[float, Fact("PE-hours times the price of a PE-hour", "currency of --price")]
Memory = Annotated[Bytes, "memory of the fullest PE"]
MemoryCapacity = Annotated[Bytes, "memory of a PE"]
FitChance = Annotated[float, "probability that a PE's memory suffices"]
PartBytes = Annotated[dict[str, float], Fact("memory of the fullest PE by part", "B", scaled=True)]
# Null where the configuration cannot exist.
MemoryParts = Annotated[
    dict[str, float | None], Fact("memory of the fullest PE by part", "B", scaled=True)
]
Macs = Annotated[float, Fact("multiply-accumulates per sample, forward pass", "MAC", scaled=True)]

Feasible = Annotated[bool, state_variable("feasible")]
# All bits are set, so these are all names.
LIMIT_NAMES = (*name_limits(~0), UNSUPPORTED, TOO_SLOW)
Limits = Annotated[list[str], Fact("what forbids the configuration", names=LIMIT_NAMES)]
Reason = Annotated[str, "why there is no value"]
DeadlineChance = Annotated[float, "probability of meeting the deadline"]
Rank = Annotated[int, "1 is the best; null: feasible nowhere"]
LayoutWords = Annotated[str, "its degrees and settings, such as tp8 pp4 dp32 mb1 zero1"]
TermName = Annotated[str, Fact("the term that takes most of the time", names=tuple(EVERY_TERM))]
Sentence = Annotated[str, "the bottleneck, and why"]
ParameterName = Annotated[str, "a parameter's name, as paradl list parameters lists them"]
Extrapolation = Annotated[list[str], "how the configuration exceeds the measured runs"]
Notes = Annotated[list[str], "keys of files that the oracle ignores, and oddities of the files"]


MFU = Annotated[float, "model FLOPs over the peak of all PEs (Korthikanti, equation 7)"]
Rate = Annotated[float, Fact("tokens per second of all PEs", "1/s")]
PERate = Annotated[float, Fact("tokens per second of a PE", "1/s")]


class PlaceLabels(TypedDict):
    """Labels of a row: model, data set, system, strategy."""

    model: Model
    dataset: Dataset
    system: System
    strategy: Strategy


class CellPlace(TypedDict):
    """Where a cell is along the axes; cubes may have others, too."""

    pe: PE
    batch: Batch


class CellPlaceOrNone(TypedDict):
    """The same, null in a row that is feasible nowhere."""

    pe: PE | None
    batch: Batch | None


class CostFields(TypedDict):
    """The cost, if there is a price: of a training, or of an epoch where epochs are unknown."""

    cost: NotRequired[Cost | None]


class LayoutField(TypedDict):
    """The layout of a transformer; null in a row that is feasible nowhere."""

    layout: NotRequired[LayoutWords | None]


class InsideDegrees(LayoutField):
    """How a replica divides, if by several parallelisms, and the layout of a transformer."""

    degrees: NotRequired[Annotated[dict[str, int], "degrees inside a replica, if several"]]


class CellDegrees(InsideDegrees):
    """How the PEs of a cell divide."""

    replicas: Replicas
    group_size: GroupSize
    segment_count: SegmentCount | None
    global_batch: GlobalBatch


class Degrees(InsideDegrees):
    """How PEs divide; null in a row that is feasible nowhere."""

    replicas: Replicas | None
    group_size: GroupSize | None
    segment_count: SegmentCount | None
    global_batch: GlobalBatch | None


class TokenRates(TypedDict):
    """Rates of a network with blocks; null where it has no time."""

    tokens_per_second: NotRequired[Rate | None]
    tokens_per_pe_second: NotRequired[PERate | None]


class SampleRates(TokenRates):
    """Rates of a configuration; null where it has no time."""

    samples_per_second: Annotated[float, Fact("samples per second of all PEs", "1/s")] | None
    samples_per_pe_second: Annotated[float, Fact("samples per second of a PE", "1/s")] | None
    mfu: MFU | None


class IterationRates(SampleRates):
    """Time and rates of an iteration; null where it has no time."""

    iteration_time: IterationTime | None


class LayoutTraits(TypedDict):
    """Facts of a layout, which other configurations lack; rates are null where it has no time."""

    hfu: NotRequired[Annotated[float, "the same, with recomputed FLOPs"] | None]
    remarks: NotRequired[Annotated[list[str], "oddities that forbid nothing"]]
    runs_with: NotRequired[Annotated[list[str], "stacks that run it, if they know the network"]]


class LayoutRates(LayoutTraits, TokenRates):
    """The same with rates that count what a layout computes."""

    mfu: NotRequired[MFU | None]


class Extras(LayoutField):
    """Fields that rows have only where needed: layouts, settings of several systems, notes."""

    precision: NotRequired[Precision]
    software: NotRequired[Software]
    notes: NotRequired[Annotated[list[str], "notes on the whole answer, also printed to stderr"]]
