"""Rows of the questions about what binds and what to buy; values along a space's axes, too."""

from typing import Annotated, Literal, NotRequired

from sweep.answers.types import words
from sweep.answers.types.facts import AnswerType, Fact

Share = Annotated[float, Fact("part of the time that binds takes")]
Computing = Annotated[float, Fact("part of the time in which PEs compute")]
Shares = Annotated[dict[str, float | None], Fact("part of the time by term")]
Needed = Annotated[
    float, Fact("the value that the goal takes; null: see reason", words.OF_PARAMETER)
]
Reached = Annotated[float, Fact("the parallel efficiency that is reached at best")]


class BottleneckRow(words.PlaceLabels):
    """The term that an iteration waits for most, as `bottleneck` answers."""

    pe: words.PE
    batch: words.Batch
    replicas: words.Replicas
    group_size: words.GroupSize
    segment_count: words.SegmentCount | None
    global_batch: words.GlobalBatch
    epoch_time: words.EpochTime
    binds: words.TermName
    share: Share
    kind: Annotated[
        Literal["work", "limitation", "bottleneck"],
        Fact("limitation: of the strategy; bottleneck: of the framework or the system"),
    ]
    sentence: words.Sentence
    computing: Computing
    shares: Shares
    memory: words.Memory
    memory_parts: words.MemoryParts
    feasible: words.Feasible
    limit: words.Limits
    share_p10: NotRequired[Share]
    share_p90: NotRequired[Share]
    computing_p10: NotRequired[Computing]
    computing_p90: NotRequired[Computing]
    shares_p10: NotRequired[Shares]
    shares_p90: NotRequired[Shares]
    binds_probability: NotRequired[
        Annotated[float, Fact("part of the draws in which this term is the largest")]
    ]


class SensitivityRow(words.PlaceLabels):
    """The effect of a parameter, as `sensitivity` answers."""

    pe: words.PE
    batch: words.Batch
    parameter: words.ParameterName
    value: Annotated[float, Fact("the parameter's value", words.OF_PARAMETER)]
    elasticity: Annotated[float, Fact("d log T / d log x of the time T of an epoch")]
    upgrade: (
        Annotated[Literal["halved", "doubled"], Fact("what is tried; null: the bounds forbid it")]
        | None
    )
    change: Annotated[float, Fact("what the upgrade changes of the time, (T' - T) / T")] | None


class ProvisionRow(words.PlaceLabels, words.Degrees):
    """The fewest PEs for a deadline, as `provision --deadline` answers."""

    pe: words.PE | None
    batch: words.Batch | None
    epochs: words.Epochs | None
    train_time: words.TrainTime | None
    pe_hours: words.PEHours | None
    holds: Annotated[float, Fact("probability that the deadline holds")] | None
    reason: words.Reason | None
    cost: NotRequired[words.Cost | None]


class NeedRow(words.PlaceLabels):
    """The value of a parameter that a goal needs, as `provision --need` answers."""

    pe: words.PE
    parameter: words.ParameterName
    own: (
        Annotated[float, Fact("the value that the machine, or the cell, has", words.OF_PARAMETER)]
        | None
    )
    needed: Needed | None
    reason: words.Reason | None
    batch: NotRequired[words.Batch]
    needed_p10: NotRequired[Needed | None]
    needed_p90: NotRequired[Needed | None]
    met_probability: NotRequired[
        Annotated[float, Fact("part of the draws in which some value will do")] | None
    ]
    efficiency_p10: NotRequired[Reached | None]
    efficiency_p90: NotRequired[Reached | None]


ANSWERS = {
    "bottleneck": AnswerType(BottleneckRow, axes="known"),
    "sensitivity": AnswerType(SensitivityRow, axes="known"),
    "provision --deadline": AnswerType(ProvisionRow, axes="sought"),
    "provision --need": AnswerType(NeedRow, axes="known"),
}
