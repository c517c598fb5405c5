"""Answers about design spaces and cubes; rows also have the values along their axes."""

from typing import Annotated, Any, Literal, NotRequired, TypedDict

from paradl.sweep.answers.types import words
from paradl.sweep.answers.types.facts import RANGED, AnswerType, Fact

Value = Annotated[float, Fact(unit=words.OF_PARAMETER)]
FastestTime = Annotated[float, Fact("least epoch time", "s/epoch")]
SoonestTime = Annotated[float, Fact("least time to the target", "s")]
Kind = Literal["work", "limitation", "bottleneck"]


class LoserRow(TypedDict):
    """A reason that forbids layouts of a network."""

    reason: Annotated[str, "its name"]
    layouts: Annotated[int, "candidates that it forbids"]
    remedy: Annotated[str, "what would let them fit"]


class RankingRow(words.PlaceLabels, words.Degrees, words.SampleRates, words.LayoutTraits):
    """Row of `best`: a strategy in the ranking."""

    rank: words.Rank | None
    pe: words.PE | None
    batch: words.Batch | None
    epoch_time: Annotated[words.EpochTime, RANGED] | None
    comp_time: words.CompTime | None
    comm_time: words.CommTime | None
    iteration_time: words.IterationTime | None
    pe_hours: words.PEHours | None
    memory: words.Memory | None
    memory_capacity: words.MemoryCapacity | None
    feasible: words.Feasible
    limit: words.Limits
    rejection: Annotated[dict[str, Any], "the nearest cell, its limits, and what would help"] | None
    # With a law of epochs, where the objective is not the time of an epoch.
    epochs: NotRequired[words.Epochs | None]
    train_time: NotRequired[Annotated[words.TrainTime, RANGED] | None]
    cost: NotRequired[words.Cost | None]  # with a price
    holds: NotRequired[words.DeadlineChance | None]  # with a deadline
    # Of the machine oracle.
    faster_than_next: NotRequired[Annotated[float, "probability of beating the second"] | None]
    # Of a network with blocks, in the first row of a place.
    losers: NotRequired[Annotated[list[LoserRow], "why other layouts are none"]]


class LimitsRow(words.PlaceLabels, words.SampleRates):
    """Row of `limits`: how far a strategy scales, and the rates of its fastest PE count."""

    batch: words.Batch
    largest_pe: Annotated[int, "largest feasible PE count"] | None
    forbidden_by: Annotated[str, "what forbids the next PE count"]
    efficient_pe: Annotated[int, "largest efficient PE count, by the objective", RANGED] | None
    # If any row has a mark.
    marks: NotRequired[Annotated[words.Limits, "marks of the fastest PE count, which are allowed"]]
    # With the objective epoch_time.
    fastest_pe: NotRequired[Annotated[int, "PE count with the least epoch time", RANGED] | None]
    fastest_time: NotRequired[Annotated[FastestTime, RANGED] | None]
    # With the objective train_time.
    soonest_pe: NotRequired[Annotated[int, "PE count that is first at the target", RANGED] | None]
    soonest_time: NotRequired[Annotated[SoonestTime, RANGED] | None]
    soonest_epochs: NotRequired[Annotated[float, "epochs to the target on soonest_pe PEs"] | None]


class CrossoverRow(words.PlaceLabels):
    """Row of `limits --crossovers`: the values beyond which one strategy beats another."""

    over: Annotated[str, "the other strategy"]
    along: Annotated[str, "the parameter that varies"]
    first: Annotated[Value, "the first crossover", RANGED] | None
    at: Annotated[
        list[float],
        Fact("values from which strategy takes less than over, ascending", words.OF_PARAMETER),
    ]
    reason: words.Reason | None
    # Of the machine oracle, if there are few enough times to draw.
    crosses_probability: NotRequired[Annotated[float, "share of draws with a crossover"] | None]


class ParetoRow(words.PlaceLabels):
    """Row of `pareto`: a configuration that no other beats in both time and cost."""

    pe: words.PE
    batch: words.Batch
    # The two quantities that are traded off; the second may also be `pe`.
    epoch_time: NotRequired[words.EpochTime]
    train_time: NotRequired[words.TrainTime]
    pe_hours: NotRequired[words.PEHours]
    cost: NotRequired[words.Cost]
    memory: NotRequired[words.Memory]


class RegretRow(TypedDict):
    """Row of `best --worst-case`: what a strategy loses when the machine is not known."""

    rank: words.Rank | None
    model: words.Model
    dataset: words.Dataset
    strategy: words.Strategy
    worst_loss: Annotated[float, "worst slowdown against the best strategy, as a fraction"] | None
    worst_at: Annotated[float | str, Fact("where; null: nowhere", words.OF_AXIS)] | None
    mean_loss: Annotated[float, "mean slowdown, as a fraction"] | None
    infeasible_at: Annotated[list[float | str], Fact("where it is not feasible", words.OF_AXIS)]
    system: NotRequired[words.System]  # unless systems are what is uncertain
    # If `worst_at` may be one of several systems.
    worst_precision: NotRequired[Annotated[str, "precision of the system in worst_at"] | None]
    worst_software: NotRequired[Annotated[str, "software of the system in worst_at"] | None]


class BottleneckRow(words.PlaceLabels, words.SampleRates):
    """Row of `bottleneck`: the term that takes most of an iteration."""

    pe: words.PE
    batch: words.Batch
    replicas: words.Replicas
    group_size: words.GroupSize
    segment_count: words.SegmentCount | None
    global_batch: words.GlobalBatch
    epoch_time: words.EpochTime
    iteration_time: words.IterationTime
    bottleneck: words.TermName
    share: Annotated[float, "fraction of the time that the bottleneck takes", RANGED]
    kind: Annotated[Kind, "limitation: of the strategy; bottleneck: of framework or system"]
    sentence: words.Sentence
    computing: Annotated[float, "fraction of the time that PEs compute", RANGED]
    shares: Annotated[dict[str, float | None], "fraction of the time by term", RANGED]
    memory: words.Memory
    memory_parts: words.MemoryParts
    memory_capacity: words.MemoryCapacity
    feasible: words.Feasible
    limit: words.Limits
    # Of the machine oracle.
    bottleneck_probability: NotRequired[Annotated[float, "share of draws in which this term leads"]]


class SensitivityRow(words.PlaceLabels):
    """Row of `sensitivity`: the effect of a parameter on the time."""

    pe: words.PE
    batch: words.Batch
    parameter: words.ParameterName
    value: Annotated[Value, "the parameter's value"]
    elasticity: Annotated[float, "d log T / d log x, T the epoch time"]
    upgrade: Annotated[Literal["halved", "doubled"], "the upgrade; null: out of bounds"] | None
    change: Annotated[float, "relative change of the time by the upgrade"] | None


class ProvisionRow(words.PlaceLabels, words.Degrees):
    """Row of `provision --deadline`: the fewest PEs that meet a deadline."""

    pe: words.PE | None
    batch: words.Batch | None
    epochs: words.Epochs | None
    train_time: words.TrainTime | None
    pe_hours: words.PEHours | None
    holds: words.DeadlineChance | None
    reason: words.Reason | None
    cost: NotRequired[words.Cost | None]  # with a price


class NeedRow(words.PlaceLabels):
    """Row of `provision --need`: the value of a parameter that a goal needs."""

    pe: words.PE
    parameter: words.ParameterName
    own: Annotated[Value, "present value, of the system or the cell"] | None
    needed: Annotated[Value, "the value that meets the goal; null: see reason", RANGED] | None
    reason: words.Reason | None
    batch: NotRequired[words.Batch]  # unless it is what is sought, among several
    # Of a continuous parameter and the machine oracle.
    met_probability: NotRequired[Annotated[float, "share of draws that meet the goal"] | None]
    efficiency_p10: NotRequired[Annotated[float, "10th percentile of the best efficiency"] | None]
    efficiency_p90: NotRequired[Annotated[float, "90th percentile of the best efficiency"] | None]


Records = list[dict[str, Any]]


class Status(TypedDict):
    """Progress of a cube; with `--verify` also its damaged files."""

    store: Annotated[str, "path or URL of the cube"]
    name: Annotated[str, "the name in the spec"]
    complete: Annotated[bool, "whether all blocks are done and no file is missing"]
    blocks: Annotated[int, "blocks of the cube"]
    blocks_done: Annotated[int, "finished blocks"]
    summaries_missing: Annotated[int, "finished blocks without their summary"]
    cells: Annotated[int, "cells of the cube"]
    bytes: Annotated[int, Fact("size of the cube's variables, uncompressed", "B", scaled=True)]
    # With --verify.
    damaged: NotRequired[Annotated[Records, "damaged files: what is wrong, and which cells"]]
    left: NotRequired[Annotated[str, "why done-marks could not be cleared; null: they were"] | None]


class Difference(TypedDict):
    """Differences between two cubes."""

    same: Annotated[bool, "whether both have the same cells with the same answers"]
    cells: Annotated[int, "cells that both cubes have"]
    compared: Annotated[int, "shared cells that are finished in both"]
    inputs: Annotated[Records, "inputs that differ: key, first, second"]
    versions: Annotated[Records, "versions that differ: key, first, second"]
    axes: Annotated[Records, "axes that differ: axis, shared, only_first, only_second"]
    variables: Annotated[dict[str, Any], "variables that only one cube has"]
    answers: Annotated[Records, "changed cells and ratios of each variable"]
    feasibility: Annotated[dict[str, Any], "numbers of cells whose limits changed"] | None
    winners: Annotated[Records, "where the fastest strategy differs"]
    notes: Annotated[list[str], "notes on unfinished cubes"]


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
    "status": AnswerType(Status, record=True),
    "diff": AnswerType(Difference, record=True),
}
