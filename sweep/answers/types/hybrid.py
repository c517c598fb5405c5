"""The answer of `hybrid`: when a hybrid beats data parallelism, end to end."""

from typing import Annotated, Literal, TypedDict

from sweep.answers.types import words
from sweep.answers.types.facts import AnswerType, Fact

PEsOfGroup = Annotated[int, Fact("PEs of a group")]
Speedup = Annotated[float, Fact("time to the target on one PE over that on so many")]
Extrapolated = Annotated[bool, Fact("whether epochs of a batch were needed that nobody measured")]
Low = Annotated[float, Fact("10th percentile over the draws")]
Median = Annotated[float, Fact("50th percentile over the draws")]
High = Annotated[float, Fact("90th percentile over the draws")]
Basis = Literal["oracle", "given"]


class EpochsRecord(TypedDict):
    """Epochs to the target by batch."""

    source: Annotated[list[str], Fact("where epochs were measured")]
    epochs_min: Annotated[float, Fact("epochs to the target with small batches")]
    critical_batch: (
        Annotated[float, Fact("the batch that takes twice as many; null: none is known")] | None
    )
    measured: Annotated[list[int | None], Fact("the least and largest batch")]
    converges_to: (
        Annotated[float, Fact("the largest batch that reaches the target; null: no bound")] | None
    )
    alone: Annotated[float, Fact("epochs with the batch of one replica")]
    alone_extrapolated: Extrapolated


class SplitRow(TypedDict):
    """The gain of a hybrid's group."""

    strategy: words.Strategy
    group: PEsOfGroup
    speedup: Annotated[float, Fact("of an iteration in a group over one PE")] | None
    fastest: Annotated[bool, Fact("whether no other split of groups of this size has more")]
    basis: Annotated[Basis, Fact("whose the speed-up is")]
    scaling_efficiency: Annotated[Basis, Fact("whose T_1 / T_N across replicas is")]


class HybridRow(TypedDict):
    """A strategy on so many PEs."""

    pe: words.PE
    strategy: words.Strategy
    replicas: words.Replicas
    scaling_efficiency: Annotated[float, Fact("T_1 / T_N across replicas")] | None
    speedup: Speedup | None
    p10: Low | None
    p50: Median | None
    p90: High | None
    wins: Annotated[bool, Fact("whether it is the soonest of all on so many PEs")]
    feasible: words.Feasible
    limit: words.Limits
    global_batch: words.GlobalBatch
    epochs: Annotated[float, Fact("epochs to the target; null: it is not reached")] | None
    converges: Annotated[bool, Fact("whether the target is reached")]
    extrapolated: Extrapolated


class HybridCrossover(TypedDict):
    """From where on a hybrid wins."""

    strategy: words.Strategy
    group: PEsOfGroup
    against: Annotated[
        Literal["same", "best"], Fact("data on as many PEs, or its best up to there")
    ]
    pe: Annotated[int, Fact("PEs from which on the hybrid wins; null: it never does")] | None
    p10: Low | None
    p90: High | None
    chance: Annotated[float, Fact("part of the draws in which it wins from some count on")]
    several: Annotated[bool, Fact("whether it wins and loses again before")]
    speedup: Speedup | None
    extrapolated: Extrapolated | None


class Gain(TypedDict):
    """The best hybrid against the best of data parallelism."""

    pe: Annotated[int, Fact("PEs at most, of either")]
    gain: (
        Annotated[float, Fact("by what part the best hybrid is sooner than the best of data")]
        | None
    )
    p10: Low | None
    p50: Median | None
    p90: High | None
    chance: Annotated[float, Fact("part of the draws in which it is")] | None
    strategy: words.Strategy | None
    hybrid_pe: Annotated[int, Fact("PEs of the best hybrid")] | None
    data_pe: Annotated[int, Fact("PEs of the best of data")] | None
    extrapolated: Extrapolated | None


class HybridAnswer(TypedDict):
    """When a hybrid wins, end to end."""

    model: words.Model
    dataset: words.Dataset | None
    system: Annotated[str, Fact("the machine; null: speed-ups were given")] | None
    batch: Annotated[int, Fact("samples per replica")]
    iteration_time: (
        Annotated[float, Fact("time of an iteration on one PE", "s", scaled=True)] | None
    )
    target: Annotated[str, Fact("what is trained to, such as top1>=0.759")]
    epochs: Annotated[EpochsRecord, Fact("epochs to the target by batch")]
    splits: Annotated[list[SplitRow], Fact("a row a hybrid: what a group gains, and who says so")]
    rows: Annotated[list[HybridRow], Fact("a row a PE count and strategy")]
    crossovers: Annotated[list[HybridCrossover], Fact("two rows a hybrid: from where on it wins")]
    gain: Annotated[Gain, Fact("the best hybrid against the best of data")]
    oracle: words.OracleName | None
    precision: words.Precision | None
    software: words.Software | None
    times: words.Times | None
    profile: words.Profile | None
    notes: words.Notes
    warnings: Annotated[list[str], Fact("what to know of the answer")]


ANSWERS = {"hybrid": AnswerType(HybridAnswer, record=True)}
