"""The answers of `predict` and `explain` about one configuration."""

from typing import Annotated, Any, NotRequired, TypedDict

from kernels.names.terms import TERMS
from sweep.answers.types import words
from sweep.answers.types.facts import AnswerType, Fact


class Prediction(words.PlaceLabels):
    """Time, memory and limits of a configuration; null where it cannot exist."""

    pe: words.PE
    replicas: words.Replicas | None
    group: words.Group | None
    degrees: Annotated[
        dict[str, int],
        Fact("parts into which each parallelism divides the PEs, the outermost first"),
    ]
    segments: words.Segments | None
    batch: Annotated[float, Fact("samples per replica")] | None
    global_batch: Annotated[float, Fact("samples of an iteration")] | None
    epoch_time: words.EpochTime | None
    comp_time: words.CompTime | None
    comm_time: words.CommTime | None
    epochs: words.Epochs | None
    train_time: words.TrainTime | None
    iteration_time: Annotated[float, Fact("time of an iteration", "s", scaled=True)] | None
    iteration_comp_time: (
        Annotated[float, Fact("time computing, per iteration", "s", scaled=True)] | None
    )
    iteration_comm_time: (
        Annotated[float, Fact("time communicating, per iteration", "s", scaled=True)] | None
    )
    memory: words.Memory | None
    memory_parts: words.MemoryParts
    largest_batch: (
        Annotated[int, Fact("samples per replica that fit in memory; 0: none; null: no bound")]
        | None
    )
    feasible: words.Feasible
    limit: words.Limits
    oracle: words.OracleName
    precision: words.Precision
    software: words.Software
    times: words.Times
    profile: words.Profile
    convergence: Annotated[str, Fact("the measured epochs that were taken, or why none")]
    notes: words.Notes
    terms: Annotated[
        dict[str, float | None], Fact("time of an epoch by term", "s/epoch", names=tuple(TERMS))
    ]
    parameters: Annotated[
        dict[str, float | None], Fact("what the formulas were evaluated with", words.OF_PARAMETER)
    ]
    calibration: (
        Annotated[str, Fact("the calibration, by name; null: priors alone, or no intervals")] | None
    )
    intervals: (
        Annotated[
            dict[str, Any],
            Fact("p10, p50 and p90 of times of an iteration, and of a training"),
        ]
        | None
    )
    extrapolation: words.Extrapolation
    smallest_group: (
        Annotated[int, Fact("PEs of the smallest group that fits; 0: none; null: no groups")] | None
    )
    samples: NotRequired[Annotated[float, Fact("samples of an epoch")]]
    iterations: NotRequired[Annotated[float, Fact("iterations of an epoch")]]


class LayerRow(TypedDict):
    """A layer, and what one PE has of it."""

    layer: Annotated[str, Fact("the layer's name")]
    kind: Annotated[str, Fact("what it computes")]
    output: Annotated[list[int], Fact("channels and extents of its output")]
    x: Annotated[int, Fact("items of its input, a sample")]
    y: Annotated[int, Fact("items of its output, a sample")]
    weights: Annotated[int, Fact("weights")]
    biases: Annotated[int, Fact("biases")]
    macs: words.Macs
    split: Annotated[bool, Fact("whether the PEs of a group divide it")]
    seconds_per_sample: Annotated[
        float, Fact("time of both passes on one PE, a sample", "s", scaled=True)
    ]
    forward: Annotated[float, Fact("time forward on one PE, a sample", "s", scaled=True)]
    backward: Annotated[float, Fact("time backward on one PE, a sample", "s", scaled=True)]
    overhead: Annotated[
        float, Fact("time of a pass on one PE, however many samples", "s", scaled=True)
    ]
    gathered_items: Annotated[float, Fact("items that one PE sends in gathers, a sample")]
    halo_items: Annotated[float, Fact("items that one PE sends as halos, a sample")]
    memory: Annotated[
        float,
        Fact("what one PE keeps of it for the backward pass, with its weights", "B", scaled=True),
    ]
    stage: NotRequired[Annotated[int, Fact("the pipeline stage, from 1")]]
    device: NotRequired[Annotated[int, Fact("the device it is placed on, from 1")]]


class Explanation(Prediction):
    """A prediction with its formulas, and how to launch such a training."""

    sentence: words.Sentence | None
    formulas: Annotated[
        list[dict[str, Any]], Fact("a row a term: formula, numbers, seconds, part of the time")
    ]
    hidden: Annotated[
        list[dict[str, Any]],
        Fact("the same of what passes while PEs compute: no part of the sum"),
    ]
    memory_formulas: Annotated[
        list[dict[str, Any]], Fact("a row a part of the memory: formula and numbers")
    ]
    symbols: Annotated[list[dict[str, Any]], Fact("what each symbol means, and its value")]
    launch: (
        Annotated[dict[str, Any], Fact("the command, ranks and groups of such a training")] | None
    )
    layers: Annotated[list[dict[str, Any]], Fact("a row a layer: sizes, and what one PE has of it")]


ANSWERS = {
    "predict": AnswerType(Prediction, record=True),
    "explain": AnswerType(Explanation, record=True),
    "explain --layers-table": AnswerType(LayerRow),
}
