"""The answer of `fit`: which layouts of a transformer fit in memory, and why the others do not."""

from typing import Annotated, TypedDict

from paradl.sweep.answers.types.facts import AnswerType, Bytes, Fact, Seconds
from paradl.sweep.answers.types.words import (
    PE,
    Cost,
    Feasible,
    GlobalBatch,
    Model,
    PEHours,
    System,
    TrainTime,
)

# Remarks: little memory is left for what is not counted; the named software does not run it.
TIGHT, UNSUPPORTED = "tight", "unsupported"
PARTS_MEANING = "memory of the fullest PE by part"


class TimeParts(TypedDict):
    """The time of a layout, with an 80 % interval."""

    iteration_time: Annotated[Seconds, "time of an iteration"]
    iteration_time_p10: Annotated[Seconds, "its 10th percentile"]
    iteration_time_p90: Annotated[Seconds, "its 90th percentile"]
    tokens_per_second: Annotated[float, Fact("tokens per second of all PEs", "1/s")]
    tokens_per_pe_second: Annotated[float, Fact("tokens per second of a PE", "1/s")]
    mfu: Annotated[float, "model FLOPs over the peak of all PEs (Korthikanti, equation 7)"]
    hfu: Annotated[float, "the same, with recomputed FLOPs"]
    train_time: Annotated[TrainTime, "time to train on the tokens of --tokens"] | None
    pe_hours: Annotated[PEHours, "PE-hours of the training"] | None
    cost: Annotated[Cost, "price of these PE-hours"] | None
    terms: Annotated[dict[str, float], Fact("time of an iteration by term", "s", scaled=True)]
    exchanges: Annotated[
        dict[str, float], Fact("communication by term, exposed and hidden", "s", scaled=True)
    ]
    bubble_share: Annotated[float, "pipeline_bubble over the time of an iteration"]


class LayoutRow(TypedDict):
    """A layout, at its largest micro-batch that fits, with its memory."""

    layout: Annotated[str, "its degrees and settings, such as tp8 pp4 dp32 mb1 zero1"]
    tensor: Annotated[int, "PEs that share each matrix"]
    context: Annotated[int, "PEs that share each sequence"]
    expert: Annotated[int, "parts of the routed experts"]
    expert_tensor: Annotated[int, "PEs that share each matrix of an expert"]
    pipeline: Annotated[int, "stages"]
    chunks: Annotated[int, "chunks per stage"]
    group: Annotated[int, "consecutive micro-batches per chunk, if interleaved"]
    data: Annotated[int, "replicas"]
    micro: Annotated[int, "sequences of a micro-batch: the largest power of two that fits"]
    zero: Annotated[int, "the ZeRO stage; 1 is the distributed optimizer"]
    shard: Annotated[int, "ranks that ZeRO divides over"]
    recompute: Annotated[str, "what the backward pass computes again"]
    sequence: Annotated[bool, "whether it has sequence parallelism"]
    memory: Annotated[Bytes, "memory of the fullest PE"]
    capacity_used: Annotated[float, "memory over the capacity of a PE"]
    fits: Annotated[bool, "whether it fits beside the headroom"]
    memory_parts: Annotated[dict[str, float], Fact(PARTS_MEANING, "B", scaled=True)]
    stage: Annotated[int, "the fullest stage, from 0"]
    remarks: Annotated[list[str], "oddities that forbid nothing"]
    runs_with: Annotated[list[str], "stacks that run such a layout, if they know the network"]
    same: Annotated[list[str], "layouts of the same time and memory, which divide more"]
    time: Annotated[TimeParts, "how long it takes, where layouts are ranked by time"] | None


class LoserRow(TypedDict):
    """A reason that forbids layouts."""

    reason: Annotated[str, "its name"]
    layouts: Annotated[int, "candidates that it forbids"]
    alone: Annotated[int, "candidates that nothing else forbids"]
    remedy: Annotated[str, "what would let them fit"]


class PartRow(TypedDict):
    """A part of a layout's memory, with its formula."""

    part: Annotated[str, "its name"]
    memory: Annotated[Bytes, "memory of the fullest PE"]
    formula: Annotated[str, "what it is, in words"]
    numbers: Annotated[str, "the same in numbers [B]"]


class LaunchFile(TypedDict):
    """A file to write, of which the last is the script to run on each node."""

    file: Annotated[str, "its name"]
    text: Annotated[str, "its lines"]


class FitAnswer(TypedDict):
    """Which layouts fit, and on request how long they take."""

    model: Model
    system: System
    pe: PE
    global_batch: GlobalBatch
    length: Annotated[int, "tokens of a sequence"]
    precision: Annotated[str, "name of the recipe of bytes per parameter"]
    attention: Annotated[str, "whether scores are kept in memory: fused or unfused"]
    loss: Annotated[str, "what is kept of logits: whole, plain, chunked or fused"]
    schedule: Annotated[str, "the schedule of pipelines"]
    context_by: Annotated[str, "how PEs that share a sequence exchange keys and values"]
    parameters: Annotated[int, "parameters of the network"]
    capacity: Annotated[Bytes, "memory of a PE"]
    headroom: Annotated[float, "share of it that is kept free"]
    candidates: Annotated[int, "layouts that were examined"]
    fitting: Annotated[int, "candidates that fit, at any micro-batch"]
    ranked: Annotated[int, "layouts that fit at some micro-batch: `layouts` has the first"]
    feasible: Feasible
    smallest: Annotated[LayoutRow, "the one of least memory, of those that divide"] | None
    times: Annotated[str, "where times come from, and what intervals allow for"] | None
    faster_than_next: Annotated[float, "probability that the first layout beats the second"] | None
    layouts: Annotated[list[LayoutRow], "those that fit, the best first"]
    losers: Annotated[list[LoserRow], "why others do not"]
    parts: Annotated[list[PartRow], "memory of the one layout that was given"]
    changes: Annotated[list[LayoutRow], "larger micro-batches, or changes that would let it fit"]
    launch: Annotated[list[LaunchFile], "what to type, where a stack is given and it fits"]


class FastestLayout(TypedDict):
    """A number of PEs with its fastest layout; null throughout where none fits."""

    model: Model
    system: System
    pe: PE
    global_batch: GlobalBatch
    layout: Annotated[str, "the fastest layout that fits"] | None
    remarks: Annotated[list[str], "its oddities, which forbid nothing"]
    iteration_time: Annotated[Seconds, "time of an iteration"] | None
    tokens_per_pe_second: Annotated[float, Fact("tokens per second of a PE", "1/s")] | None
    mfu: Annotated[float, "model FLOPs over the peak of all PEs"] | None
    reason: Annotated[str, "what forbids most layouts, where none fits"] | None


class LayoutFrontRow(FastestLayout):
    """A layout that no other one beats in two quantities, as `pareto --sequence` answers."""

    memory: Annotated[Bytes, "memory of the fullest PE"]


class LayoutProvisionRow(FastestLayout):
    """The time to train on a number of PEs, as `provision --sequence` answers."""

    train_time: Annotated[TrainTime, "time to train on the tokens of --tokens"] | None
    pe_hours: Annotated[PEHours, "PE-hours of the training"] | None
    cost: Annotated[Cost, "price of these PE-hours"] | None
    meets: Annotated[bool, "whether the expected time meets the deadline"]
    holds: Annotated[float, "probability that the deadline holds"] | None


class LayoutLimitRow(FastestLayout):
    """How well a transformer scales to a number of PEs, as `limits --sequence` answers."""

    efficiency: Annotated[float, "tokens per PE and second over the most of any fewer PEs"] | None
    efficient: Annotated[bool, "whether the efficiency is as high as requested"]
    binds: Annotated[str, "the largest term, apart from a single PE's work"] | None
    share: Annotated[float, "fraction of the time that this term takes"] | None


ANSWERS = {
    "fit": AnswerType(FitAnswer, record=True),
    "limits --sequence": AnswerType(LayoutLimitRow),
    "pareto --sequence": AnswerType(LayoutFrontRow),
    "provision --sequence": AnswerType(LayoutProvisionRow),
}
