"""Rows of the questions that compare strategies; they also have the values along other axes."""

from typing import Annotated, Any, NotRequired, TypedDict

from sweep.answers.types import words
from sweep.answers.types.facts import AnswerType, Fact

FastestPE = Annotated[int, Fact("PE count with the least epoch time")]
FastestTime = Annotated[float, Fact("least epoch time", "s/epoch")]
SoonestPE = Annotated[int, Fact("PE count with the least time to the target")]
SoonestTime = Annotated[float, Fact("least time to the target", "s")]
EfficientPE = Annotated[int, Fact("largest PE count with the requested parallel efficiency")]
First = Annotated[float, Fact("the first crossover", words.OF_PARAMETER)]
Scenarios = Annotated[list[float | str], Fact("where the strategy is not feasible", words.OF_AXIS)]


class RankingRow(words.PlaceLabels, words.Degrees):
    """Row of `best`: a strategy in the ranking."""

    rank: words.Rank | None
    pe: words.PE | None
    batch: words.Batch | None
    epoch_time: words.EpochTime | None
    comp_time: words.CompTime | None
    comm_time: words.CommTime | None
    pe_hours: words.PEHours | None
    memory: words.Memory | None
    feasible: words.Feasible
    limit: words.Limits
    rejection: (
        Annotated[
            dict[str, Any],
            Fact("the nearest configuration, its limits, and changes that would make it feasible"),
        ]
        | None
    )
    epochs: NotRequired[words.Epochs | None]
    train_time: NotRequired[words.TrainTime | None]
    cost: NotRequired[words.Cost | None]
    epoch_time_p10: NotRequired[words.EpochTime | None]
    epoch_time_p90: NotRequired[words.EpochTime | None]
    train_time_p10: NotRequired[words.TrainTime | None]
    train_time_p90: NotRequired[words.TrainTime | None]
    faster_than_next: NotRequired[
        Annotated[float, Fact("probability of taking less time than the second")] | None
    ]


class LimitsRow(words.PlaceLabels):
    """Row of `limits`: how far a strategy scales."""

    batch: words.Batch
    largest_pe: Annotated[int, Fact("largest feasible PE count")] | None
    forbidden_by: Annotated[str, Fact("what forbids the next PE count")]
    marks: NotRequired[
        Annotated[
            list[str],
            Fact("marks of the fastest PE count, which forbid nothing", names=words.LIMIT_NAMES),
        ]
    ]
    fastest_pe: NotRequired[FastestPE | None]
    fastest_time: NotRequired[FastestTime | None]
    efficient_pe: NotRequired[EfficientPE | None]
    fastest_time_p10: NotRequired[FastestTime | None]
    fastest_time_p90: NotRequired[FastestTime | None]
    fastest_pe_p10: NotRequired[FastestPE | None]
    fastest_pe_p90: NotRequired[FastestPE | None]
    efficient_pe_p10: NotRequired[EfficientPE | None]
    efficient_pe_p90: NotRequired[EfficientPE | None]
    soonest_pe: NotRequired[SoonestPE | None]
    soonest_time: NotRequired[SoonestTime | None]
    soonest_epochs: NotRequired[
        Annotated[float, Fact("epochs to the target on soonest_pe PEs")] | None
    ]
    soonest_efficient_pe: NotRequired[
        Annotated[int, Fact("efficient_pe by the time to the target")] | None
    ]
    soonest_time_p10: NotRequired[SoonestTime | None]
    soonest_time_p90: NotRequired[SoonestTime | None]
    soonest_pe_p10: NotRequired[SoonestPE | None]
    soonest_pe_p90: NotRequired[SoonestPE | None]


class CrossoverRow(words.PlaceLabels):
    """Row of `limits --crossovers`: the values beyond which one strategy beats another."""

    over: Annotated[str, Fact("the other strategy")]
    along: Annotated[str, Fact("the parameter that varies")]
    first: First | None
    at: Annotated[
        list[float],
        Fact("values from which strategy takes less than over, ascending", words.OF_PARAMETER),
    ]
    reason: words.Reason | None
    over_system: NotRequired[Annotated[str, Fact("the other machine")]]
    first_p10: NotRequired[First | None]
    first_p90: NotRequired[First | None]
    crosses_probability: NotRequired[
        Annotated[float, Fact("fraction of the draws with a crossover")] | None
    ]


class ParetoRow(words.PlaceLabels):
    """Row of `pareto`: a configuration that no other beats in both time and cost."""

    pe: words.PE
    batch: words.Batch
    epoch_time: NotRequired[words.EpochTime]
    train_time: NotRequired[words.TrainTime]
    pe_hours: NotRequired[words.PEHours]
    cost: NotRequired[words.Cost]
    memory: NotRequired[words.Memory]


class RegretRow(TypedDict):
    """Row of `regret`: what a strategy loses when the machine is not known."""

    rank: words.Rank | None
    model: words.Model
    dataset: words.Dataset
    strategy: words.Strategy
    worst_loss: (
        Annotated[float, Fact("worst slowdown against the best strategy, as a fraction")] | None
    )
    worst_at: (
        Annotated[
            float | str,
            Fact("where: a system, a value or a draw; null: nowhere", words.OF_AXIS),
        ]
        | None
    )
    mean_loss: Annotated[float, Fact("mean slowdown, as a fraction")] | None
    infeasible_at: Scenarios
    system: NotRequired[words.System]
    worst_precision: NotRequired[Annotated[str, Fact("precision of the system in worst_at")] | None]
    worst_software: NotRequired[
        Annotated[str, Fact("how gradients are sent on the system in worst_at")] | None
    ]


ANSWERS = {
    "best": AnswerType(RankingRow, axes="sought"),
    "limits": AnswerType(LimitsRow, axes="known"),
    "limits --crossovers": AnswerType(CrossoverRow, axes="known"),
    "pareto": AnswerType(ParetoRow, axes="known"),
    "regret": AnswerType(RegretRow, axes="known"),
}
