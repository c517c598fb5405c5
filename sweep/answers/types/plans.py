"""Rows of the questions about what binds and what to buy; values along a space's axes, too."""

from typing import Annotated, Literal, NotRequired

from sweep.answers.types.facts import Fact
from sweep.answers.types.words import (
    OF_PARAMETER,
    PE,
    Batch,
    Cost,
    Degrees,
    Epochs,
    EpochTime,
    Feasible,
    GlobalBatch,
    GroupSize,
    Limits,
    Memory,
    MemoryParts,
    ParameterName,
    PEHours,
    Place,
    Reason,
    Replicas,
    SegmentCount,
    Sentence,
    TermName,
    TrainTime,
)

Share = Annotated[float, Fact("part of the time that binds takes")]
Computing = Annotated[float, Fact("part of the time in which PEs compute")]
Shares = Annotated[dict[str, float | None], Fact("part of the time by term")]
Needed = Annotated[float, Fact("the value that the goal takes; null: see reason", OF_PARAMETER)]
Reached = Annotated[float, Fact("the parallel efficiency that is reached at best")]


class BottleneckRow(Place):
    """The term that an iteration waits for most, as `bottleneck` answers."""

    pe: PE
    batch: Batch
    replicas: Replicas
    group_size: GroupSize
    segment_count: SegmentCount | None
    global_batch: GlobalBatch
    epoch_time: EpochTime
    binds: TermName
    share: Share
    kind: Annotated[
        Literal["work", "limitation", "bottleneck"],
        Fact("limitation: of the strategy; bottleneck: of the framework or the system"),
    ]
    sentence: Sentence
    computing: Computing
    shares: Shares
    memory: Memory
    memory_parts: MemoryParts
    feasible: Feasible
    limit: Limits
    share_p10: NotRequired[Share]
    share_p90: NotRequired[Share]
    computing_p10: NotRequired[Computing]
    computing_p90: NotRequired[Computing]
    shares_p10: NotRequired[Shares]
    shares_p90: NotRequired[Shares]
    binds_probability: NotRequired[
        Annotated[float, Fact("part of the draws in which this term is the largest")]
    ]


class SensitivityRow(Place):
    """The effect of a parameter, as `sensitivity` answers."""

    pe: PE
    batch: Batch
    parameter: ParameterName
    value: Annotated[float, Fact("the parameter's value", OF_PARAMETER)]
    elasticity: Annotated[float, Fact("d log T / d log x of the time T of an epoch")]
    upgrade: (
        Annotated[Literal["halved", "doubled"], Fact("what is tried; null: the bounds forbid it")]
        | None
    )
    change: Annotated[float, Fact("what the upgrade changes of the time, (T' - T) / T")] | None


class ProvisionRow(Place, Degrees):
    """The fewest PEs for a deadline, as `provision --deadline` answers."""

    pe: PE | None
    batch: Batch | None
    epochs: Epochs | None
    train_time: TrainTime | None
    pe_hours: PEHours | None
    holds: Annotated[float, Fact("probability that the deadline holds")] | None
    reason: Reason | None
    cost: NotRequired[Cost | None]


class NeedRow(Place):
    """The value of a parameter that a goal needs, as `provision --need` answers."""

    pe: PE
    parameter: ParameterName
    own: Annotated[float, Fact("the value that the machine, or the cell, has", OF_PARAMETER)] | None
    needed: Needed | None
    reason: Reason | None
    batch: NotRequired[Batch]
    needed_p10: NotRequired[Needed | None]
    needed_p90: NotRequired[Needed | None]
    met_probability: NotRequired[
        Annotated[float, Fact("part of the draws in which some value will do")] | None
    ]
    efficiency_p10: NotRequired[Reached | None]
    efficiency_p90: NotRequired[Reached | None]
