"""Rows of the questions about bottlenecks and purchases; they also have the axes' values."""

from typing import Annotated, Literal, NotRequired

from sweep.answers.types import words
from sweep.answers.types.facts import AnswerType, Fact

Share = Annotated[float, Fact("fraction of the time that the bottleneck takes")]
Computing = Annotated[float, Fact("fraction of the time that PEs compute")]
Shares = Annotated[dict[str, float | None], Fact("fraction of the time by term")]
Needed = Annotated[
    float, Fact("the value that meets the goal; null: see reason", words.OF_PARAMETER)
]
Reached = Annotated[float, Fact("best reachable parallel efficiency")]


class BottleneckRow(words.PlaceLabels):
    """Row of `bottleneck`: the term that takes most of an iteration."""

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
        Annotated[float, Fact("fraction of the draws in which this term is the largest")]
    ]


class SensitivityRow(words.PlaceLabels):
    """Row of `sensitivity`: the effect of a parameter on the time."""

    pe: words.PE
    batch: words.Batch
    parameter: words.ParameterName
    value: Annotated[float, Fact("the parameter's value", words.OF_PARAMETER)]
    elasticity: Annotated[float, Fact("d log T / d log x, T the epoch time")]
    upgrade: (
        Annotated[
            Literal["halved", "doubled"], Fact("the upgrade tried; null: it exceeds the bounds")
        ]
        | None
    )
    change: Annotated[float, Fact("relative change of the time by the upgrade")] | None


class ProvisionRow(words.PlaceLabels, words.Degrees):
    """Row of `provision --deadline`: the fewest PEs that meet a deadline."""

    pe: words.PE | None
    batch: words.Batch | None
    epochs: words.Epochs | None
    train_time: words.TrainTime | None
    pe_hours: words.PEHours | None
    holds: Annotated[float, Fact("probability of meeting the deadline")] | None
    reason: words.Reason | None
    cost: NotRequired[words.Cost | None]


class NeedRow(words.PlaceLabels):
    """Row of `provision --need`: the value of a parameter that a goal needs."""

    pe: words.PE
    parameter: words.ParameterName
    own: (
        Annotated[float, Fact("present value, of the system or the cell", words.OF_PARAMETER)]
        | None
    )
    needed: Needed | None
    reason: words.Reason | None
    batch: NotRequired[words.Batch]
    needed_p10: NotRequired[Needed | None]
    needed_p90: NotRequired[Needed | None]
    met_probability: NotRequired[
        Annotated[float, Fact("fraction of the draws in which some value meets the goal")] | None
    ]
    efficiency_p10: NotRequired[Reached | None]
    efficiency_p90: NotRequired[Reached | None]


ANSWERS = {
    "bottleneck": AnswerType(BottleneckRow, axes="known"),
    "sensitivity": AnswerType(SensitivityRow, axes="known"),
    "provision --deadline": AnswerType(ProvisionRow, axes="sought"),
    "provision --need": AnswerType(NeedRow, axes="known"),
}
