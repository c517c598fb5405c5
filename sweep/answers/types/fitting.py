"""The answer of `fit`: which layouts of a transformer fit in memory, and why the others do not."""

from typing import Annotated, TypedDict

from sweep.answers.types.facts import AnswerType, Fact
from sweep.answers.types.words import PE, Feasible, GlobalBatch, Model, System

PARTS_MEANING = "memory of the fullest PE by part"


class TimeParts(TypedDict):
    """The time of a layout, with an 80 % interval."""

    iteration_time: Annotated[float, Fact("time of an iteration", "s", scaled=True)]
    iteration_time_p10: Annotated[float, Fact("its 10th percentile", "s", scaled=True)]
    iteration_time_p90: Annotated[float, Fact("its 90th percentile", "s", scaled=True)]
    tokens_per_second: Annotated[float, Fact("tokens of all PEs", "1/s")]
    tokens_per_pe_second: Annotated[float, Fact("tokens of a PE", "1/s")]
    mfu: Annotated[float, Fact("model FLOPs over the peak of all PEs (Korthikanti, equation 7)")]
    hfu: Annotated[float, Fact("the same, with FLOPs that are computed again")]
    train_time: Annotated[float, Fact("time to train on so many tokens", "s", scaled=True)] | None
    pe_hours: Annotated[float, Fact("PE-hours of it")] | None
    cost: Annotated[float, Fact("price of these PE-hours")] | None
    terms: Annotated[dict[str, float], Fact("time of an iteration by term", "s", scaled=True)]
    exchanges: Annotated[
        dict[str, float], Fact("communication by term, exposed and hidden", "s", scaled=True)
    ]
    bubble_share: Annotated[float, Fact("pipeline_bubble over the time of an iteration")]


class LayoutRow(TypedDict):
    """A layout, at its largest micro-batch that fits, with its memory."""

    layout: Annotated[str, Fact("its degrees and settings, such as tp8 pp4 dp32 mb1 zero1")]
    tensor: Annotated[int, Fact("PEs that share each matrix")]
    context: Annotated[int, Fact("PEs that share each sequence")]
    expert: Annotated[int, Fact("parts of the routed experts")]
    expert_tensor: Annotated[int, Fact("PEs that share each matrix of an expert")]
    pipeline: Annotated[int, Fact("stages")]
    chunks: Annotated[int, Fact("chunks a stage")]
    group: Annotated[int, Fact("micro-batches in a row of a chunk, where they are interleaved")]
    data: Annotated[int, Fact("replicas")]
    micro: Annotated[int, Fact("sequences of a micro-batch: the largest power of two that fits")]
    zero: Annotated[int, Fact("the ZeRO stage; 1 is the distributed optimizer")]
    shard: Annotated[int, Fact("ranks that ZeRO divides over")]
    recompute: Annotated[str, Fact("what the backward pass computes again")]
    sequence: Annotated[bool, Fact("whether it has sequence parallelism")]
    memory: Annotated[float, Fact("memory of the fullest PE", "B", scaled=True)]
    capacity_used: Annotated[float, Fact("memory over the capacity of a PE")]
    memory_parts: Annotated[dict[str, float], Fact(PARTS_MEANING, "B", scaled=True)]
    stage: Annotated[int, Fact("the fullest stage, from 0")]
    remarks: Annotated[list[str], Fact("what is odd about it, and forbids nothing")]
    same: Annotated[list[str], Fact("layouts of the same time and memory, which divide more")]
    time: Annotated[TimeParts, Fact("how long it takes, where layouts are ranked by time")] | None


class LoserRow(TypedDict):
    """A reason that forbids layouts."""

    reason: Annotated[str, Fact("its name")]
    layouts: Annotated[int, Fact("candidates that it forbids")]
    alone: Annotated[int, Fact("candidates that nothing else forbids")]
    remedy: Annotated[str, Fact("what would let them fit")]


class PartRow(TypedDict):
    """A part of a layout's memory, with its formula."""

    part: Annotated[str, Fact("its name")]
    memory: Annotated[float, Fact("memory of the fullest PE", "B", scaled=True)]
    formula: Annotated[str, Fact("what it is, in words")]
    numbers: Annotated[str, Fact("the same in numbers [B]")]


class LaunchFile(TypedDict):
    """A file to write, of which the last is the script to run on each node."""

    file: Annotated[str, Fact("its name")]
    text: Annotated[str, Fact("its lines")]


class FitAnswer(TypedDict):
    """Which layouts fit, and on request how long they take."""

    model: Model
    system: System
    pe: PE
    global_batch: GlobalBatch
    length: Annotated[int, Fact("tokens of a sequence")]
    precision: Annotated[str, Fact("the recipe of bytes a parameter")]
    attention: Annotated[str, Fact("whether scores are kept in memory: fused or unfused")]
    loss: Annotated[str, Fact("what is kept of logits: whole, plain, chunked or fused")]
    schedule: Annotated[str, Fact("the schedule of pipelines")]
    context_by: Annotated[str, Fact("how PEs that share a sequence exchange keys and values")]
    parameters: Annotated[int, Fact("parameters of the network")]
    capacity: Annotated[float, Fact("memory of a PE", "B", scaled=True)]
    candidates: Annotated[int, Fact("layouts that were looked at")]
    fitting: Annotated[int, Fact("candidates that fit, at any micro-batch")]
    ranked: Annotated[int, Fact("layouts that fit at some micro-batch: `layouts` has the first")]
    feasible: Feasible
    smallest: Annotated[LayoutRow, Fact("of what divides, the one of least memory")] | None
    times: Annotated[str, Fact("where times come from, and what intervals allow for")] | None
    faster_than_next: (
        Annotated[float, Fact("probability that the first layout takes less time than the second")]
        | None
    )
    layouts: Annotated[
        list[LayoutRow], Fact("those that fit, the least divided first, or the fastest")
    ]
    losers: Annotated[list[LoserRow], Fact("why others do not")]
    parts: Annotated[list[PartRow], Fact("memory of the one layout that was given")]
    changes: Annotated[
        list[LayoutRow],
        Fact("where it fits, larger micro-batches; else what a change, or two, would let fit"),
    ]
    launch: Annotated[list[LaunchFile], Fact("what to type, where a stack is given and it fits")]


class FastestLayout(TypedDict):
    """A number of PEs with its fastest layout; null throughout where none fits."""

    model: Model
    system: System
    pe: PE
    global_batch: GlobalBatch
    layout: Annotated[str, Fact("the fastest layout that fits")] | None
    iteration_time: Annotated[float, Fact("time of an iteration", "s", scaled=True)] | None
    tokens_per_pe_second: Annotated[float, Fact("tokens of a PE", "1/s")] | None
    mfu: Annotated[float, Fact("model FLOPs over the peak of all PEs")] | None
    reason: Annotated[str, Fact("what forbids most layouts, where none fits")] | None


class LayoutFrontRow(FastestLayout):
    """A layout that no other one beats in two quantities, as `pareto --sequence` answers."""

    memory: Annotated[float, Fact("memory of the fullest PE", "B", scaled=True)]


class LayoutProvisionRow(FastestLayout):
    """The time to train on so many PEs, as `provision --sequence` answers."""

    train_time: Annotated[float, Fact("time to train on so many tokens", "s", scaled=True)] | None
    pe_hours: Annotated[float, Fact("PE-hours of it")] | None
    cost: Annotated[float, Fact("price of these PE-hours")] | None
    meets: Annotated[bool, Fact("whether the expected time meets the deadline")]
    holds: Annotated[float, Fact("probability that the deadline holds")] | None


class LayoutLimitRow(FastestLayout):
    """How well a transformer scales to so many PEs, as `limits --sequence` answers."""

    efficiency: Annotated[float, Fact("tokens a PE over the most of any fewer PEs")] | None
    efficient: Annotated[bool, Fact("whether that is what was asked for, or more")]
    binds: Annotated[str, Fact("what it waits for most, beside a single PE's work")] | None
    share: Annotated[float, Fact("part of the time that this takes")] | None


ANSWERS = {
    "fit": AnswerType(FitAnswer, record=True),
    "limits --sequence": AnswerType(LayoutLimitRow),
    "pareto --sequence": AnswerType(LayoutFrontRow),
    "provision --sequence": AnswerType(LayoutProvisionRow),
}
