"""Answers about one configuration: `predict` and `explain`."""

from typing import Annotated, Any, NotRequired, TypedDict

from paradl.kernels.names.layout_terms import EVERY_TERM
from paradl.sweep.answers.types import words
from paradl.sweep.answers.types.facts import AnswerType, Bytes, Fact, Seconds


class Prediction(words.PlaceLabels, words.SampleRates, words.LayoutTraits):
    """Times, memory and limits of a configuration; null where it cannot exist."""

    pe: words.PE
    replicas: words.Replicas | None
    group: words.Group | None
    degrees: Annotated[dict[str, int], "degree of each parallelism, the outermost first"]
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
    memory_parts: words.MemoryParts
    largest_batch: Annotated[int, "most samples per replica that fit; null: any number"] | None
    feasible: words.Feasible
    limit: words.Limits
    oracle: words.OracleName
    precision: words.Precision
    software: words.Software
    times: Annotated[str, "source of the times: measured, roofline, or rates of layouts"]
    profile: words.Profile
    convergence: Annotated[str, "the measured epochs that were used, or why none were"]
    notes: words.Notes
    terms: Annotated[
        dict[str, float | None], Fact("time per epoch by term", "s/epoch", names=tuple(EVERY_TERM))
    ]
    parameters: Annotated[
        dict[str, float | None], Fact("parameter values used in the formulas", words.OF_PARAMETER)
    ]
    calibration: Annotated[str, "name of the calibration; null: priors, or no intervals"] | None
    intervals: (
        Annotated[dict[str, Any], "p10, p50 and p90 of times per iteration and training"] | None
    )
    extrapolation: words.Extrapolation
    smallest_group: (
        Annotated[int, "PEs in the smallest group that fits; 0: none; null: no groups"] | None
    )
    # Of layouts of transformers.
    stage: NotRequired[Annotated[int, "the fullest stage, from 0"]]
    exchanges: NotRequired[
        Annotated[dict[str, float], Fact("communication by term, exposed and hidden", "s/epoch")]
    ]
    bubble_share: NotRequired[Annotated[float, "pipeline_bubble over the time"] | None]
    obstacles: NotRequired[Annotated[list[str], "rules that the layout breaks"]]
    # Unless the samples do not fit the model.
    samples: NotRequired[Annotated[float, "samples per epoch"]]
    iterations: NotRequired[Annotated[float, "iterations per epoch"]]


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


class Explanation(Prediction):
    """A prediction with its formulas, and how to launch the training."""

    sentence: words.Sentence | None
    formulas: Annotated[list[dict[str, Any]], "one row per term: formula, numbers, seconds, part"]
    hidden: Annotated[list[dict[str, Any]], "the same for hidden communication, no part of the sum"]
    memory_formulas: Annotated[list[dict[str, Any]], "one row per part of the memory"]
    symbols: Annotated[list[dict[str, Any]], "meaning and value of each symbol"]
    launch: Annotated[dict[str, Any], "launch command, mesh of ranks, samples of each"] | None
    layers: Annotated[list[dict[str, Any]], "one row per layer"]
    # Of layouts.
    changes: NotRequired[
        Annotated[list[ChangeRow], "larger micro-batches that fit, or changes that let it fit"]
    ]
    launch_files: NotRequired[Annotated[list[LaunchFile], "files that start it with a stack"]]


ANSWERS = {
    "predict": AnswerType(Prediction, record=True),
    "explain": AnswerType(Explanation, record=True),
    "explain --layers-table": AnswerType(LayerRow),
}
