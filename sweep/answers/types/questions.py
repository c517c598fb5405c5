"""Answers about design spaces and cubes; rows also have the values along their axes."""

from typing import Annotated, Literal, NotRequired, TypedDict

from paradl.sweep.answers.types import words
from paradl.sweep.answers.types.facts import AnswerType, Bytes, Fact

Value = Annotated[float, Fact(unit=words.OF_PARAMETER)]
FastestTime = Annotated[float, Fact("least epoch time", "s/epoch")]
SoonestTime = Annotated[float, Fact("least time to the target", "s")]
Upgrade = Literal["halved", "doubled"]
Kind = Literal["work", "limitation", "bottleneck"]


class Rejection(words.CellPlace):
    """The nearest cell of a strategy that is allowed nowhere."""

    limit: words.Limits
    memory: Annotated[Bytes, "memory of the fullest PE; null: unknown"] | None
    memory_capacity: words.MemoryCapacity
    fits: words.FitChance | None
    changes: Annotated[
        dict[str, int | float | str], Fact("single changes that would allow it", "SI")
    ]


class LoserRow(TypedDict):
    """A reason that forbids layouts of a network."""

    reason: Annotated[str, "its name"]
    layouts: Annotated[int, "candidates that it forbids"]
    remedy: Annotated[str, "what would let them fit"]


class SpentFields(words.CostFields):
    """What a configuration takes; null without one."""

    # With a law of epochs, where the objective is not the time of an epoch.
    epochs: NotRequired[words.Epochs | None]
    train_time: NotRequired[words.TrainTime | None]
    epoch_time: words.EpochTime | None
    comp_time: words.CompTime | None
    comm_time: words.CommTime | None
    pe_hours: words.PEHours | None


class HoldsFields(TypedDict):
    """The chance to meet the deadline, if there is one."""

    holds: NotRequired[words.DeadlineChance | None]


class RankingRanges(TypedDict):
    """How sure a ranking is, of the machine oracle."""

    epoch_time_p10: NotRequired[Annotated[words.EpochTime, "10th percentile of epoch_time"] | None]
    epoch_time_p90: NotRequired[Annotated[words.EpochTime, "90th percentile of epoch_time"] | None]
    train_time_p10: NotRequired[Annotated[words.TrainTime, "10th percentile of train_time"] | None]
    train_time_p90: NotRequired[Annotated[words.TrainTime, "90th percentile of train_time"] | None]
    faster_than_next: NotRequired[Annotated[float, "probability of beating the second"] | None]


class LoserFields(TypedDict):
    """Of a network with blocks, in the first row of a place."""

    losers: NotRequired[Annotated[list[LoserRow], "why other layouts are none"]]


class PickedRow(
    words.PlaceLabels,
    words.CellPlaceOrNone,
    words.Degrees,
    words.IterationRates,
    words.LayoutTraits,
    SpentFields,
    HoldsFields,
):
    """Row of `best` before it is ranked."""

    memory: words.Memory | None
    memory_capacity: words.MemoryCapacity | None
    fits: words.FitChance | None
    feasible: words.Feasible
    limit: words.Limits


class RankingRow(PickedRow, RankingRanges, LoserFields):
    """Row of `best`: a strategy in the ranking."""

    rank: words.Rank | None
    rejection: Annotated[Rejection, Fact("the nearest cell, and what would help", open=True)] | None


class LimitsRanges(words.LayoutField):
    """Of few rows of `limits`, or if asked for: percentiles, the layout on the fastest PE count."""

    efficient_pe_p10: NotRequired[Annotated[int, "10th percentile of efficient_pe"] | None]
    efficient_pe_p90: NotRequired[Annotated[int, "90th percentile of efficient_pe"] | None]
    fastest_pe_p10: NotRequired[Annotated[int, "10th percentile of fastest_pe"] | None]
    fastest_pe_p90: NotRequired[Annotated[int, "90th percentile of fastest_pe"] | None]
    fastest_time_p10: NotRequired[Annotated[FastestTime, "10th percentile of fastest_time"] | None]
    fastest_time_p90: NotRequired[Annotated[FastestTime, "90th percentile of fastest_time"] | None]
    soonest_pe_p10: NotRequired[Annotated[int, "10th percentile of soonest_pe"] | None]
    soonest_pe_p90: NotRequired[Annotated[int, "90th percentile of soonest_pe"] | None]
    soonest_time_p10: NotRequired[Annotated[SoonestTime, "10th percentile of soonest_time"] | None]
    soonest_time_p90: NotRequired[Annotated[SoonestTime, "90th percentile of soonest_time"] | None]


class LimitsRow(words.PlaceLabels, words.SampleRates, LimitsRanges):
    """Row of `limits`: how far a strategy scales, and the rates of its fastest PE count."""

    batch: words.Batch
    largest_pe: Annotated[int, "largest feasible PE count"] | None
    forbidden_by: Annotated[str, "what forbids the next PE count"]
    efficient_pe: Annotated[int, "largest efficient PE count, by the objective"] | None
    fits: Annotated[words.FitChance, "the same, of the best PE count"] | None
    # If any row has a mark.
    marks: NotRequired[Annotated[words.Limits, "marks of the fastest PE count, which are allowed"]]
    # With the objective epoch_time.
    fastest_pe: NotRequired[Annotated[int, "PE count with the least epoch time"] | None]
    fastest_time: NotRequired[FastestTime | None]
    # With the objective train_time.
    soonest_pe: NotRequired[Annotated[int, "PE count that is first at the target"] | None]
    soonest_time: NotRequired[SoonestTime | None]
    soonest_epochs: NotRequired[Annotated[float, "epochs to the target on soonest_pe PEs"] | None]


class CrossoverRanges(TypedDict):
    """Of the machine oracle, if there are few enough times to draw."""

    first_p10: NotRequired[Annotated[Value, "10th percentile of first"] | None]
    first_p90: NotRequired[Annotated[Value, "90th percentile of first"] | None]
    crosses_probability: NotRequired[Annotated[float, "share of draws with a crossover"] | None]


class CrossoverRow(words.PlaceLabels, CrossoverRanges):
    """Row of `limits --crossovers`: the values beyond which one strategy beats another."""

    pe: NotRequired[words.PE]
    batch: NotRequired[words.Batch]
    over: Annotated[str, "the other strategy"]
    along: Annotated[str, "the parameter that varies"]
    first: Annotated[Value, "the first crossover"] | None
    at: Annotated[
        list[float],
        Fact("values from which strategy takes less than over, ascending", words.OF_PARAMETER),
    ]
    reason: words.Reason | None


class ParetoRow(words.PlaceLabels, words.CellPlace):
    """Row of `pareto`: a configuration that no other beats in both time and cost."""

    # The two quantities that are traded off; the second may also be `pe`.
    epoch_time: NotRequired[words.EpochTime]
    train_time: NotRequired[words.TrainTime]
    pe_hours: NotRequired[words.PEHours]
    cost: NotRequired[words.Cost]
    memory: NotRequired[words.Memory]
    fits: words.FitChance | None


class LossFields(TypedDict):
    """What a strategy loses when the machine is not known."""

    strategy: words.Strategy
    worst_loss: Annotated[float, "worst slowdown against the best strategy, as a fraction"] | None
    worst_at: Annotated[float | str, Fact("where; null: nowhere", words.OF_AXIS)] | None
    mean_loss: Annotated[float, "mean slowdown, as a fraction"] | None
    infeasible_at: Annotated[list[float | str], Fact("where it is not feasible", words.OF_AXIS)]


class RegretRow(LossFields):
    """Row of `best --worst-case`: a strategy by its loss."""

    rank: words.Rank | None
    model: words.Model
    dataset: words.Dataset
    system: NotRequired[words.System]  # unless systems are what is uncertain
    # If `worst_at` may be one of several systems.
    worst_precision: NotRequired[Annotated[str, "precision of the system in worst_at"] | None]
    worst_software: NotRequired[Annotated[str, "software of the system in worst_at"] | None]


class LargestTerm(TypedDict):
    """The term that takes most of the time."""

    bottleneck: words.TermName
    share: Annotated[float, "fraction of the time that the bottleneck takes"]
    kind: Annotated[Kind, "limitation: of the strategy; bottleneck: of framework or system"]
    sentence: words.Sentence


class ShareRanges(TypedDict):
    """Of the machine oracle."""

    share_p10: NotRequired[Annotated[float, "10th percentile of share"] | None]
    share_p90: NotRequired[Annotated[float, "90th percentile of share"] | None]
    computing_p10: NotRequired[Annotated[float, "10th percentile of computing"] | None]
    computing_p90: NotRequired[Annotated[float, "90th percentile of computing"] | None]
    shares_p10: NotRequired[Annotated[dict[str, float], "10th percentiles of shares"]]
    shares_p90: NotRequired[Annotated[dict[str, float], "90th percentiles of shares"]]
    bottleneck_probability: NotRequired[Annotated[float, "share of draws in which this term leads"]]


class BottleneckRow(
    words.PlaceLabels,
    words.CellPlace,
    words.CellDegrees,
    words.IterationRates,
    LargestTerm,
    ShareRanges,
):
    """Row of `bottleneck`: the term that takes most of an iteration."""

    epoch_time: words.EpochTime
    computing: Annotated[float, "fraction of the time that PEs compute"]
    shares: Annotated[dict[str, float], "fraction of the time by term"]
    memory: words.Memory
    feasible: words.Feasible
    limit: words.Limits
    memory_parts: words.PartBytes
    memory_capacity: words.MemoryCapacity
    fits: words.FitChance | None


class SensitivityFields(TypedDict):
    """The effect of a parameter on the time."""

    parameter: words.ParameterName
    value: Annotated[Value, "the parameter's value"]
    elasticity: Annotated[float, "d log T / d log x, T the epoch time"]
    upgrade: Annotated[Upgrade, "the upgrade; null: out of bounds"] | None
    change: Annotated[float, "relative change of the time by the upgrade"] | None


class SensitivityRow(words.PlaceLabels, words.CellPlace, words.LayoutField, SensitivityFields):
    """Row of `sensitivity`: the effect of a parameter on the time."""

    fits: words.FitChance | None


class ProvisionRow(words.PlaceLabels, words.CellPlaceOrNone, words.Degrees, words.CostFields):
    """Row of `provision --deadline`: the fewest PEs that meet a deadline."""

    epochs: words.Epochs | None
    train_time: words.TrainTime | None
    pe_hours: words.PEHours | None
    holds: words.DeadlineChance | None
    fits: words.FitChance | None
    reason: words.Reason | None


class NeedRanges(TypedDict):
    """Of a continuous parameter and the machine oracle."""

    needed_p10: NotRequired[Annotated[Value, "10th percentile of needed"] | None]
    needed_p90: NotRequired[Annotated[Value, "90th percentile of needed"] | None]
    met_probability: NotRequired[Annotated[float, "share of draws that meet the goal"] | None]
    efficiency_p10: NotRequired[Annotated[float, "10th percentile of the best efficiency"] | None]
    efficiency_p90: NotRequired[Annotated[float, "90th percentile of the best efficiency"] | None]


class NeedFields(NeedRanges):
    """The value of a parameter that a goal needs."""

    own: Annotated[Value, "present value, of the system or the cell"] | None
    needed: Annotated[Value, "the value that meets the goal; null: see reason"] | None
    reason: words.Reason | None


class NeedRow(words.PlaceLabels, NeedFields):
    """Row of `provision --need`: the value of a parameter that a goal needs."""

    pe: words.PE
    batch: NotRequired[words.Batch]  # unless it is what is sought, among several
    parameter: words.ParameterName


ANSWERS = {
    "best": AnswerType(RankingRow, axes="sought"),
    "limits": AnswerType(LimitsRow, axes="known"),
    "limits --crossovers": AnswerType(CrossoverRow, axes="known"),
    "pareto": AnswerType(ParetoRow, axes="known"),
    "best --worst-case": AnswerType(RegretRow, axes="known"),
    "bottleneck": AnswerType(BottleneckRow, axes="known"),
    "sensitivity": AnswerType(SensitivityRow, axes="known"),
    "provision --deadline": AnswerType(ProvisionRow, axes="sought"),
    "provision --need": AnswerType(NeedRow, axes="known"),
}
