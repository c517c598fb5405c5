"""What `calibrate` answers: the calibration, as its file has it."""

from typing import Annotated, Any, TypedDict

from sweep.answers.facts import Fact
from sweep.answers.words import Dataset, Model, OracleName, Precision, Strategy, System

SPREAD = "spread of the logarithm of what remains unexplained"


class ErrorRecord(TypedDict):
    """What the formulas leave unexplained."""

    serial: Annotated[float, Fact(f"{SPREAD}, computing on one PE")]
    group: Annotated[float, Fact(f"{SPREAD}, computing in groups")]
    reduce: Annotated[float, Fact(f"{SPREAD}, exchange of gradients")]
    exchange: Annotated[float, Fact(f"{SPREAD}, what goes on inside groups")]
    unseen: Annotated[float, Fact("how much wider for a series that was not fitted")]
    distance: Annotated[float, Fact("and for each factor of two from its nearest PE count")]


class SeriesRow(TypedDict):
    """Runs that were fitted: one model and strategy at several scales."""

    model: Model
    dataset: Dataset
    strategy: Strategy
    pe: Annotated[list[int], Fact("PE counts of the runs")]
    batch: Annotated[list[int], Fact("samples per replica of the runs")]


class CalibrationRecord(TypedDict):
    """A machine, calibrated."""

    name: Annotated[str, Fact("the calibration's name")]
    title: Annotated[str, Fact("what it is, in words")]
    source: Annotated[list[str], Fact("the files of runs that it was made of")]
    system: System
    oracle: OracleName
    precision: Precision
    software: Annotated[str, Fact("the software of the runs")]
    parameters: Annotated[
        dict[str, Any], Fact("by name: value, spread of its logarithm, determined")
    ]
    correlation: Annotated[
        list[list[float]], Fact("of their logarithms: a lower triangle, in order")
    ]
    serial: Annotated[
        dict[str, Any], Fact("by model: factor on the time on one PE, and its spread")
    ]
    architectures: Annotated[
        dict[str, Any], Fact("by model: the fingerprint of the network that ran")
    ]
    profile_factor: Annotated[
        float, Fact("factor on a model's time that was profiled, and not run")
    ]
    profile_spread: Annotated[
        float, Fact("spread of a model's time that was profiled, and not run")
    ]
    roofline_factor: Annotated[float, Fact("factor on a model's time that was neither")]
    roofline_spread: Annotated[float, Fact("spread of a model's time that was neither")]
    error: Annotated[ErrorRecord, Fact("what remains unexplained")]
    series: Annotated[list[SeriesRow], Fact("runs that were fitted")]
    layers: Annotated[list[str], Fact("kinds of layers that multiply, of all networks that ran")]
    accuracy: Annotated[
        dict[str, Any], Fact("by what was left out: rows, accuracies, shares in intervals")
    ]
