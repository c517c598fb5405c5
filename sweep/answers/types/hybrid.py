"""Answer of `hybrid`: when a hybrid trains to the target faster than data parallelism."""

from typing import Annotated, Literal, TypedDict

from paradl.sweep.answers.types import words
from paradl.sweep.answers.types.facts import AnswerType, Seconds

PEsOfGroup = Annotated[int, "PEs per group"]
Speedup = Annotated[float, "speed-up of the training over one PE"]
Extrapolated = Annotated[bool, "whether the epochs of that batch are extrapolated"]
Low = Annotated[float, "10th percentile over the draws"]
Median = Annotated[float, "50th percentile over the draws"]
High = Annotated[float, "90th percentile over the draws"]
Basis = Literal["oracle", "given"]


class EpochsRecord(TypedDict):
    """Epochs to the target by batch."""

    source: Annotated[list[str], "where epochs were measured"]
    epochs_min: Annotated[float, "epochs to the target with small batches"]
    critical_batch: Annotated[float, "batch that takes twice as many epochs; null: unknown"] | None
    measured: Annotated[list[int | None], "smallest and largest measured batch"]
    converges_to: Annotated[float, "largest batch that reaches the target; null: no bound"] | None
    alone: Annotated[float, "epochs with the batch of one replica"]
    alone_extrapolated: Extrapolated


class SplitRow(TypedDict):
    """Speed-up inside a hybrid's group."""

    strategy: words.Strategy
    group: PEsOfGroup
    speedup: Annotated[float, "speed-up of an iteration in a group over one PE"] | None
    fastest: Annotated[bool, "whether it is the fastest hybrid with groups of this size"]
    basis: Annotated[Basis, "source of the speed-up"]
    scaling_efficiency: Annotated[Basis, "source of T_1 / T_N across replicas"]


class HybridRow(TypedDict):
    """A strategy at one PE count."""

    pe: words.PE
    strategy: words.Strategy
    replicas: words.Replicas
    scaling_efficiency: Annotated[float, "T_1 / T_N across replicas"] | None
    speedup: Speedup | None
    p10: Low | None
    p50: Median | None
    p90: High | None
    wins: Annotated[bool, "whether it is the fastest at this PE count"]
    feasible: words.Feasible
    limit: words.Limits
    global_batch: words.GlobalBatch
    epochs: Annotated[float, "epochs to the target; null: it is not reached"] | None
    converges: Annotated[bool, "whether the target is reached"]
    extrapolated: Extrapolated


class HybridCrossover(TypedDict):
    """The PE count beyond which a hybrid wins."""

    strategy: words.Strategy
    group: PEsOfGroup
    against: Annotated[Literal["same", "best"], "data on as many PEs, or on at most as many"]
    pe: Annotated[int, "PE count from which the hybrid wins; null: never"] | None
    p10: Low | None
    p90: High | None
    chance: Annotated[float, "fraction of the draws with a crossover"]
    several: Annotated[bool, "whether it also wins, and loses again, at fewer PEs"]
    speedup: Speedup | None
    extrapolated: Extrapolated | None


class Gain(TypedDict):
    """The best hybrid against the best data parallelism."""

    pe: Annotated[int, "most PEs of either"]
    gain: Annotated[float, "relative gain in speed of the best hybrid over the best data"] | None
    p10: Low | None
    p50: Median | None
    p90: High | None
    chance: Annotated[float, "fraction of the draws with a gain"] | None
    strategy: words.Strategy | None
    hybrid_pe: Annotated[int, "PEs of the best hybrid"] | None
    data_pe: Annotated[int, "PEs of the best data parallelism"] | None
    extrapolated: Extrapolated | None


class HybridAnswer(TypedDict):
    """Speed-ups, crossovers and the gain of hybrids over data parallelism."""

    model: words.Model
    dataset: words.Dataset | None
    system: Annotated[str, "the machine; null: all speed-ups were given"] | None
    batch: Annotated[int, "samples per replica"]
    iteration_time: Annotated[Seconds, "time per iteration on one PE"] | None
    target: Annotated[str, "target of the training, such as top1>=0.759"]
    epochs: Annotated[EpochsRecord, "epochs to the target by batch"]
    splits: Annotated[list[SplitRow], "one row per hybrid: speed-up inside a group"]
    rows: Annotated[list[HybridRow], "one row per PE count and strategy"]
    crossovers: Annotated[list[HybridCrossover], "two rows per hybrid: where it wins"]
    gain: Annotated[Gain, "the best hybrid against the best data parallelism"]
    oracle: words.OracleName | None
    precision: words.Precision | None
    software: words.Software | None
    times: words.Times | None
    profile: words.Profile | None
    notes: words.Notes
    warnings: Annotated[list[str], "warnings about the answer"]


ANSWERS = {"hybrid": AnswerType(HybridAnswer, record=True)}
