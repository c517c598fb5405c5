"""Words that several answers share: each with its type, unit and meaning once."""

from typing import Annotated, Literal, NotRequired, TypedDict

from kernels.names.terms import TERMS
from sweep.answers.types.facts import Fact, state_parameter, state_variable
from sweep.cube.variables import name_limits

# Units of numbers whose unit depends on another field, or on an option.
OF_PARAMETER, OF_AXIS = "SI, of the parameter", "SI, of the axis that --over names"

Model = Annotated[str, Fact("the network, by its name in the catalogue or its file's")]
Dataset = Annotated[str, Fact("the data set")]
System = Annotated[str, Fact("the machine")]
Strategy = Annotated[str, Fact("how the training is divided, such as data+filter:group=4")]
Precision = Annotated[str, Fact("the precision of numbers in training")]
Software = Annotated[str, Fact("how gradients are sent")]
OracleName = Annotated[Literal["machine", "paper"], Fact("whose formulas were evaluated")]
Times = Annotated[Literal["measured", "roofline"], Fact("where times of layers come from")]
Profile = Annotated[str, Fact("the measured time of the model that was taken, or why none")]
Source = Annotated[str, Fact("where it comes from")]

PE = Annotated[int, state_parameter("pe")]
Batch = Annotated[int, state_parameter("batch")]
Group = Annotated[int, state_parameter("group")]
Segments = Annotated[int, state_parameter("segments")]
Replicas = Annotated[int, state_variable("replicas")]
GroupSize = Annotated[int, state_variable("group_size")]
SegmentCount = Annotated[int, state_variable("segment_count")]
GlobalBatch = Annotated[int, state_variable("global_batch")]
Samples = Annotated[int, Fact("samples of an epoch")]

EpochTime = Annotated[float, state_variable("epoch_time", "s/epoch")]
CompTime = Annotated[float, state_variable("comp_time", "s/epoch")]
CommTime = Annotated[float, state_variable("comm_time", "s/epoch")]
Epochs = Annotated[float, state_variable("epochs")]
TrainTime = Annotated[float, state_variable("train_time", "s")]
PEHours = Annotated[
    float, Fact("PE-hours of an epoch, or of the training where epochs are known", "h")
]
Cost = Annotated[float, Fact("PE-hours times the price of one", "currency of --price")]
Memory = Annotated[float, Fact("memory of the fullest PE", "B", scaled=True)]
# Of what cannot exist null.
MemoryParts = Annotated[
    dict[str, float | None], Fact("memory of the fullest PE by part", "B", scaled=True)
]
Macs = Annotated[float, Fact("multiply-accumulates of a sample, forward", "MAC", scaled=True)]

Feasible = Annotated[bool, state_variable("feasible")]
LIMIT_NAMES = tuple(name_limits(~0))
Limits = Annotated[list[str], Fact("what forbids the configuration", names=LIMIT_NAMES)]
Reason = Annotated[str, Fact("why there is no value")]
Rank = Annotated[int, Fact("1 is the best of its place; null: feasible nowhere")]
TermName = Annotated[str, Fact("the term that takes most of the time", names=tuple(TERMS))]
Sentence = Annotated[str, Fact("what binds, and why")]
ParameterName = Annotated[str, Fact("a parameter's name, as paradl parameters lists them")]
Extrapolation = Annotated[list[str], Fact("in what it lies beyond what was measured")]
Notes = Annotated[
    list[str], Fact("what files state and the oracle does not use; what is odd about them")
]


class PlaceLabels(TypedDict):
    """The labels of a row."""

    model: Model
    dataset: Dataset
    system: System
    strategy: Strategy


class Degrees(TypedDict):
    """How PEs are divided, of what may be feasible nowhere."""

    replicas: Replicas | None
    group_size: GroupSize | None
    segment_count: SegmentCount | None
    degrees: NotRequired[
        Annotated[dict[str, int], Fact("parts of a replica by parallelism, of several")]
    ]
    global_batch: GlobalBatch | None


class Extras(TypedDict):
    """Fields of rows where they matter: settings of several machines, notes on the whole answer."""

    precision: NotRequired[Precision]
    software: NotRequired[Software]
    notes: NotRequired[
        Annotated[list[str], Fact("notes on the whole answer, which stderr has, too")]
    ]
