"""Answers about one configuration: `predict` and `explain`."""

from typing import Annotated, Any, NotRequired, TypedDict

from kernels.names.layout_terms import EVERY_TERM
from sweep.answers.types import words
from sweep.answers.types.facts import AnswerType, Fact


class Prediction(words.PlaceLabels):
    """Times, memory and limits of a configuration; null where it cannot exist."""

    pe: words.PE
    replicas: words.Replicas | None
    group: words.Group | None
    degrees: Annotated[
        dict[str, int],
        Fact("degree of each parallelism, the outermost first"),
    ]
    segments: words.Segments | None
    batch: Annotated[float, Fact("samples per replica")] | None
    global_batch: Annotated[float, Fact("samples per iteration")] | None
    epoch_time: words.EpochTime | None
    comp_time: words.CompTime | None
    comm_time: words.CommTime | None
    epochs: words.Epochs | None
    train_time: words.TrainTime | None
    iteration_time: Annotated[float, Fact("time per iteration", "s", scaled=True)] | None
    iteration_comp_time: (
        Annotated[float, Fact("compute time per iteration", "s", scaled=True)] | None
    )
    iteration_comm_time: (
        Annotated[float, Fact("communication time per iteration", "s", scaled=True)] | None
    )
    memory: words.Memory | None
    memory_parts: words.MemoryParts
    largest_batch: (
        Annotated[int, Fact("most samples per replica that fit in memory; null: any number fits")]
        | None
    )
    feasible: words.Feasible
    limit: words.Limits
    oracle: words.OracleName
    precision: words.Precision
    software: words.Software
    times: words.Times
    profile: words.Profile
    convergence: Annotated[str, Fact("the measured epochs that were used, or why none were")]
    notes: words.Notes
    terms: Annotated[
        dict[str, float | None], Fact("time per epoch by term", "s/epoch", names=tuple(EVERY_TERM))
    ]
    parameters: Annotated[
        dict[str, float | None], Fact("parameter values used in the formulas", words.OF_PARAMETER)
    ]
    calibration: (
        Annotated[str, Fact("name of the calibration; null: only priors, or no intervals")] | None
    )
    intervals: (
        Annotated[
            dict[str, Any],
            Fact("p10, p50 and p90 of the times per iteration and of the training time"),
        ]
        | None
    )
    extrapolation: words.Extrapolation
    smallest_group: (
        Annotated[int, Fact("PEs in the smallest group that fits; 0: none fits; null: no groups")]
        | None
    )
    layout: NotRequired[Annotated[str, Fact("layout of a transformer in words")]]
    exchanges: NotRequired[
        Annotated[dict[str, float], Fact("communication by term, exposed and hidden", "s/epoch")]
    ]
    bubble_share: NotRequired[Annotated[float, Fact("pipeline_bubble over the time")] | None]
    obstacles: NotRequired[Annotated[list[str], Fact("rules that the layout breaks")]]
    samples: NotRequired[Annotated[float, Fact("samples per epoch")]]
    iterations: NotRequired[Annotated[float, Fact("iterations per epoch")]]


class LayerRow(TypedDict):
    """A layer, and one PE's share of it."""

    layer: Annotated[str, Fact("the layer's name")]
    kind: Annotated[str, Fact("the layer kind")]
    output: Annotated[list[int], Fact("channels and extents of the output")]
    x: Annotated[int, Fact("input items per sample")]
    y: Annotated[int, Fact("output items per sample")]
    weights: Annotated[int, Fact("weights")]
    biases: Annotated[int, Fact("biases")]
    macs: words.Macs
    split: Annotated[bool, Fact("whether the PEs of a group divide the layer")]
    seconds_per_sample: Annotated[
        float, Fact("time of both passes per sample on one PE", "s", scaled=True)
    ]
    forward: Annotated[float, Fact("forward time per sample on one PE", "s", scaled=True)]
    backward: Annotated[float, Fact("backward time per sample on one PE", "s", scaled=True)]
    overhead: Annotated[
        float, Fact("time per pass on one PE, whatever the batch", "s", scaled=True)
    ]
    gathered_items: Annotated[float, Fact("items per sample that one PE sends in gathers")]
    halo_items: Annotated[float, Fact("items per sample that one PE sends as halos")]
    memory: Annotated[
        float,
        Fact("tensors that one PE keeps for the backward pass, and weights", "B", scaled=True),
    ]
    stage: NotRequired[Annotated[int, Fact("pipeline stage, counted from 1")]]
    device: NotRequired[Annotated[int, Fact("device that runs the layer, counted from 1")]]


class Explanation(Prediction):
    """A prediction with its formulas, and how to launch the training."""

    sentence: words.Sentence | None
    formulas: Annotated[
        list[dict[str, Any]], Fact("one row per term: formula, numbers, seconds, share of the time")
    ]
    hidden: Annotated[
        list[dict[str, Any]],
        Fact("the same for communication hidden behind compute, which is not part of the sum"),
    ]
    memory_formulas: Annotated[
        list[dict[str, Any]], Fact("one row per part of the memory: formula and numbers")
    ]
    symbols: Annotated[list[dict[str, Any]], Fact("meaning and value of each symbol")]
    launch: Annotated[dict[str, Any], Fact("launch command, ranks and groups")] | None
    layers: Annotated[
        list[dict[str, Any]], Fact("one row per layer: sizes, and one PE's share of it")
    ]


ANSWERS = {
    "predict": AnswerType(Prediction, record=True),
    "explain": AnswerType(Explanation, record=True),
    "explain --layers-table": AnswerType(LayerRow),
}
