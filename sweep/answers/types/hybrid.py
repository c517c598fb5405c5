"""Answers of `hybrid` and `place`: when hybrids win, and where operators run."""

from typing import Annotated, Literal, NotRequired, TypedDict

from paradl.sweep.answers.types import words
from paradl.sweep.answers.types.facts import AnswerType, Bytes, Fact, Seconds

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
    p10: Annotated[int, "10th percentile over the draws"] | None
    p90: Annotated[int, "90th percentile over the draws"] | None
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


class BasisOfHybrids(TypedDict):
    """What the times rest on; null if all speed-ups were given."""

    oracle: words.OracleName | None
    precision: words.Precision | None
    software: words.Software | None
    times: Annotated[str, "source of the times: measured, roofline, or rates of layouts"] | None
    profile: words.Profile | None
    notes: words.Notes


class HybridAnswer(BasisOfHybrids):
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
    warnings: Annotated[list[str], "warnings about the answer"]


Pass = Literal["forward", "backward"]


class OperatorRow(TypedDict):
    """When and where an operator runs; times count from the start of the step."""

    operator: Annotated[str, "name of the operator"]
    micro_batch: Annotated[int, "micro-batch, counted from 0"]
    device: Annotated[int, "device, counted from 0"]
    pe: Annotated[int, "the device's PE in the node"]
    forward_start: Annotated[Seconds, "start of the forward pass"]
    forward_end: Annotated[Seconds, "end of the forward pass"]
    backward_start: Annotated[Seconds, "start of the backward pass"]
    backward_end: Annotated[Seconds, "end of the backward pass"]


# Not a class: "pass" and "from" are keywords of Python.
MessageRow = TypedDict(
    "MessageRow",
    {
        "pass": Annotated[Pass, "forward or backward pass"],
        "tensor": Annotated[str, "the operator whose output, or its gradient, is sent"],
        "from": Annotated[int, "the sending PE"],
        "to": Annotated[int, "the receiving PE"],
        "bytes": Annotated[Bytes, "size of the message"],
        "sent": Annotated[Seconds, "time of departure"],
        "come": Annotated[Seconds, "time of arrival"],
    },
)


class TimeBounds(TypedDict):
    """Lower bounds on the time of a step."""

    critical_path: Annotated[Seconds, "the longest chain of operators"]
    work: Annotated[Seconds, "total time of all operators, divided by the devices"]
    proven: Annotated[Seconds, "the best bound proven"]


class PlacementFields(TypedDict):
    """What is placed, and where."""

    graph: Annotated[str, "the graph, or the network"]
    system: words.System
    devices: Annotated[int, "devices that may be used"]
    pes: Annotated[list[int], "the PEs of these devices in the node"]
    batch: Annotated[int, "samples per step; null: the graph does not say"] | None
    micro_batches: Annotated[int, "micro-batches per step"]
    samples: Annotated[list[int], "samples of each micro-batch"] | None
    times: Annotated[Literal["oracle", "measured"], "source of the operators' times"]
    source: Annotated[list[str], "where the graph comes from"]


class PlanFields(TypedDict):
    """A placement that fits, or the fact that none does."""

    feasible: Annotated[bool, "whether memory suffices; if not, see smallest_devices"]
    # Of a placement that fits.
    step_time: NotRequired[Annotated[Seconds, "time per step"]]
    forward_time: NotRequired[Annotated[Seconds, "time of the forward pass"]]
    backward_time: NotRequired[Annotated[Seconds, "time of the backward pass"]]
    serial_time: NotRequired[Annotated[Seconds, "time per step on one device"]]
    speedup: NotRequired[Annotated[float, "serial_time over step_time"]]
    proven: NotRequired[Annotated[bool, "whether the placement is proven optimal"]]
    gap: NotRequired[Annotated[float, "most that a better one could save, as a fraction"]]
    bounds: NotRequired[Annotated[TimeBounds, "lower bounds on the time per step"]]
    interrupted: NotRequired[Annotated[bool, "whether the search was stopped"]]
    memory: NotRequired[Annotated[list[float], Fact("memory used by device", "B", scaled=True)]]
    room: NotRequired[Annotated[Bytes, "usable memory of a device"]]
    fits_one: NotRequired[Annotated[bool, "whether all operators fit on one device"]]
    sent_bytes: NotRequired[Annotated[float, Fact("bytes sent in both passes", "B")]]
    busiest_link: NotRequired[
        Annotated[float, "share of the step that the busiest link is used, one way"]
    ]
    operators: NotRequired[Annotated[list[OperatorRow], "one row per operator and micro-batch"]]
    messages: NotRequired[Annotated[list[MessageRow], "one row per tensor or gradient"]]
    # If none fits.
    smallest_devices: NotRequired[
        Annotated[int, "fewest devices that suffice; null: unknown, or no number does"] | None
    ]


class PlacementRecord(PlacementFields, PlanFields):
    """A placement, or the fact that none fits in memory."""


ANSWERS = {
    "hybrid": AnswerType(HybridAnswer, record=True),
    "place": AnswerType(PlacementRecord, record=True),
}
