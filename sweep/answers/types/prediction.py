"""Answers about one configuration: `predict` and `explain`."""

from typing import Annotated, NotRequired, TypedDict

from paradl.kernels.names.layout_terms import EVERY_TERM
from paradl.sweep.answers.types import words
from paradl.sweep.answers.types.facts import AnswerType, Bytes, Fact, Seconds


class Interval(TypedDict):
    """Percentiles of a number; null where it has none."""

    p10: Annotated[float, "10th percentile"] | None
    p50: Annotated[float, "50th percentile"] | None
    p90: Annotated[float, "90th percentile"] | None


class IntervalFields(TypedDict):
    """How sure a prediction is."""

    calibration: Annotated[str, "name of the calibration; null: priors, or no intervals"] | None
    intervals: (
        Annotated[dict[str, Interval], "p10, p50 and p90 of times per iteration and training"]
        | None
    )
    extrapolation: words.Extrapolation


class BasisFields(TypedDict):
    """What a prediction rests on."""

    oracle: words.OracleName
    precision: words.Precision
    software: words.Software
    times: Annotated[str, "source of the times: measured, roofline, or rates of layouts"]
    profile: words.Profile
    convergence: Annotated[str, "the measured epochs that were used, or why none were"]
    notes: words.Notes


class CellFields(TypedDict):
    """Times, memory and limits."""

    pe: words.PE
    replicas: words.Replicas | None
    group: words.Group | None
    segments: words.Segments | None
    batch: Annotated[float, "samples per replica"] | None
    global_batch: Annotated[float, "samples per iteration"] | None
    epoch_time: words.EpochTime | None
    comp_time: words.CompTime | None
    comm_time: words.CommTime | None
    epochs: words.Epochs | None
    train_time: words.TrainTime | None
    iteration_time: words.IterationTime | None
    iteration_comp_time: Annotated[Seconds, "compute time per iteration"] | None
    iteration_comm_time: Annotated[Seconds, "communication time per iteration"] | None
    memory: words.Memory | None
    memory_capacity: words.MemoryCapacity | None
    fits: words.FitChance | None
    feasible: words.Feasible
    limit: words.Limits
    terms: Annotated[
        dict[str, float | None], Fact("time per epoch by term", "s/epoch", names=tuple(EVERY_TERM))
    ]
    # Unless the samples do not fit the model.
    input: NotRequired[
        Annotated[str, "what hosts must feed, if that may be the limit and is not stated"] | None
    ]
    samples: NotRequired[Annotated[float, "samples per epoch"]]
    iterations: NotRequired[Annotated[float, "iterations per epoch"]]


class GroupFields(TypedDict):
    """What is found in one way for groups that divide layers, in another for layouts."""

    memory_parts: words.MemoryParts
    largest_batch: Annotated[int, "most samples per replica that fit; null: any number"] | None
    degrees: Annotated[dict[str, int], "degree of each parallelism, the outermost first"]
    parameters: Annotated[
        dict[str, float | None], Fact("parameter values used in the formulas", words.OF_PARAMETER)
    ]


class SmallestGroup(TypedDict):
    """The smallest group, unless a question leaves it open."""

    smallest_group: (
        Annotated[int, "PEs in the smallest group that fits; 0: none; null: no groups"] | None
    )


class LayoutFields(TypedDict):
    """Further facts of layouts of transformers."""

    layout: NotRequired[words.LayoutWords]
    stage: NotRequired[Annotated[int, "the fullest stage, from 0"]]
    exchanges: NotRequired[
        Annotated[dict[str, float], Fact("communication by term, exposed and hidden", "s/epoch")]
    ]
    bubble_share: NotRequired[Annotated[float, "pipeline_bubble over the time"] | None]
    obstacles: NotRequired[Annotated[list[str], "rules that the layout breaks"]]


class Prediction(
    words.PlaceLabels,
    words.SampleRates,
    words.LayoutTraits,
    words.CostFields,
    CellFields,
    GroupFields,
    IntervalFields,
    SmallestGroup,
    LayoutFields,
    BasisFields,
):
    """The answer for a configuration; null where it cannot exist."""


class TermRow(TypedDict):
    """A term of the time, with its formula."""

    term: Annotated[str, "its name"]
    formula: Annotated[str, "what it is, in symbols"]
    numbers: Annotated[str, "the same in numbers, of one iteration"]
    seconds_per_iteration: Annotated[Seconds, "its time per iteration"]
    seconds_per_epoch: Annotated[float, Fact("its time per epoch", "s/epoch")]
    part: Annotated[float, "fraction of the time"]


class MemoryRow(TypedDict):
    """A part of the memory of the fullest PE, with its formula."""

    part: Annotated[str, "its name"]
    formula: Annotated[str, "what it is, in symbols"]
    numbers: Annotated[str, "the same in numbers"]
    bytes: Annotated[Bytes, "its size"]
    share: Annotated[float, "fraction of the memory"]


class SymbolRow(TypedDict):
    """A symbol of the formulas."""

    symbol: Annotated[str, "the symbol"]
    meaning: Annotated[str, "its meaning"]
    value: Annotated[float, Fact("its value; null: it varies", "of unit")] | None
    unit: Annotated[str, "the unit of its value"]


class Sampler(TypedDict):
    """Arguments of PyTorch's DistributedSampler."""

    num_replicas: Annotated[int, "replicas"]
    rank: Annotated[str, "the replica of a rank, as a Python expression"]


class Processes(TypedDict):
    """Processes of a run, one per PE."""

    command: Annotated[str, "the command on each node"]
    world_size: Annotated[int, "ranks"]
    nnodes: Annotated[int, "nodes"]
    nproc_per_node: Annotated[int, "ranks of a node"]
    last_node: Annotated[int, "ranks of the last node"]


class Launch(Processes):
    """How to launch a configuration."""

    mesh: Annotated[dict[str, int], "ranks by dimension of the device mesh"]
    sampler: Annotated[Sampler, "of the data loader"]
    local_batch: Annotated[float, "samples per replica and pass"]
    micro_batch: Annotated[float, "samples per segment of a pass"]
    micro_batches: Annotated[int, "segments of an iteration"]
    accumulate: Annotated[int, "passes of an iteration"]
    global_batch: Annotated[float, "samples of an iteration"]


class ChangeRow(TypedDict):
    """A layout near another one, with its memory."""

    layout: Annotated[str, "its degrees and settings"]
    memory: Annotated[Bytes, "memory of the fullest PE"]


class LaunchFile(TypedDict):
    """A file to write, of which the last is the script to run on each node."""

    file: Annotated[str, "its name"]
    text: Annotated[str, "its lines"]


class LayerRow(TypedDict):
    """A layer, and one PE's share of it."""

    layer: Annotated[str, "the layer's name"]
    kind: Annotated[str, "the layer kind"]
    output: Annotated[list[int], "channels and extents of the output"]
    x: Annotated[int, "input items per sample"]
    y: Annotated[int, "output items per sample"]
    weights: Annotated[int, "weights"]
    biases: Annotated[int, "biases"]
    macs: words.Macs
    split: Annotated[bool, "whether the PEs of a group divide the layer"]
    seconds_per_sample: Annotated[Seconds, "time of both passes per sample on one PE"]
    forward: Annotated[Seconds, "forward time per sample on one PE"]
    backward: Annotated[Seconds, "backward time per sample on one PE"]
    overhead: Annotated[Seconds, "time per pass on one PE, whatever the batch"]
    gathered_items: Annotated[float, "items per sample that one PE sends in gathers"]
    halo_items: Annotated[float, "items per sample that one PE sends as halos"]
    memory: Annotated[Bytes, "tensors kept for the backward pass, and weights"]
    # Of a pipeline, and of a placement.
    stage: NotRequired[Annotated[int, "pipeline stage, counted from 1"]]
    device: NotRequired[Annotated[int, "device that runs the layer, counted from 1"]]


class ExplanationFields(TypedDict):
    """Formulas of a prediction, and how to launch the training."""

    sentence: words.Sentence | None
    formulas: Annotated[list[TermRow], "one row per term: formula, numbers, seconds, part"]
    hidden: Annotated[list[TermRow], "the same for hidden communication, no part of the sum"]
    memory_formulas: Annotated[list[MemoryRow], "one row per part of the memory"]
    symbols: Annotated[list[SymbolRow], "meaning and value of each symbol"]
    launch: Annotated[Launch, "launch command, mesh of ranks, samples of each"] | None
    layers: Annotated[list[LayerRow], "one row per layer"]


class ExplanationOfLayouts(TypedDict):
    """The same that only layouts have."""

    changes: NotRequired[
        Annotated[list[ChangeRow], "larger micro-batches that fit, or changes that let it fit"]
    ]
    launch_files: NotRequired[Annotated[list[LaunchFile], "files that start it with a stack"]]


class Explanation(Prediction, ExplanationFields, ExplanationOfLayouts):
    """A prediction with its formulas, and how to launch the training."""


ANSWERS = {
    "predict": AnswerType(Prediction, record=True),
    "explain": AnswerType(Explanation, record=True),
    "explain --layers-table": AnswerType(LayerRow),
}
