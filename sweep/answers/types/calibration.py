"""Answer of `calibrate`: the calibration as its file states it."""

from typing import Annotated, Any, TypedDict

from grids.entries.calibration import CalibrationFile, ModelError
from grids.entries.entry import Record
from sweep.answers.types.facts import AnswerType, Fact
from sweep.answers.types.words import Dataset, Model, OracleName, Precision, Strategy, System

SPREAD = "spread of the logarithm of the unexplained rest, "


def state_field(record: type[Record], name: str, before: str = "") -> Fact:
    """Fact about a field of the calibration's file, worded as in the file's own schema."""
    text = record.model_fields[name].description or ""
    return Fact(f"{before}{text[:1].lower()}{text[1:].rstrip('.')}")


class ErrorRecord(TypedDict):
    """Errors that the formulas do not explain."""

    serial: Annotated[float, state_field(ModelError, "serial", SPREAD)]
    group: Annotated[float, state_field(ModelError, "group", SPREAD)]
    reduce: Annotated[float, state_field(ModelError, "reduce", SPREAD)]
    exchange: Annotated[float, state_field(ModelError, "exchange", SPREAD)]
    unseen: Annotated[float, state_field(ModelError, "unseen")]
    distance: Annotated[float, state_field(ModelError, "distance")]


class SeriesRow(TypedDict):
    """Fitted runs of one model and strategy at several scales."""

    model: Model
    dataset: Dataset
    strategy: Strategy
    pe: Annotated[list[int], Fact("PE counts of the runs")]
    batch: Annotated[list[int], Fact("samples per replica of the runs")]


class CalibrationRecord(TypedDict):
    """Calibration of a machine."""

    name: Annotated[str, Fact("the calibration's name")]
    title: Annotated[str, Fact("a one-line description")]
    source: Annotated[list[str], Fact("the files of runs that were fitted")]
    system: System
    oracle: OracleName
    precision: Precision
    software: Annotated[str, Fact("the software of the runs")]
    parameters: Annotated[
        dict[str, Any], Fact("by name: value, spread of its logarithm, whether runs determine it")
    ]
    correlation: Annotated[
        list[list[float]],
        Fact("correlations of the parameters' logarithms: a lower triangle, in order"),
    ]
    serial: Annotated[
        dict[str, Any], Fact("by model: factor on the time on one PE, with its spread")
    ]
    architectures: Annotated[dict[str, Any], Fact("by model: fingerprint of the network that ran")]
    profile_factor: Annotated[
        float, Fact("factor on the time of a model that was profiled but not run")
    ]
    profile_spread: Annotated[
        float, Fact("spread of the time of a model that was profiled but not run")
    ]
    roofline_factor: Annotated[
        float, Fact("factor on the time of a model that was neither profiled nor run")
    ]
    roofline_spread: Annotated[
        float, Fact("spread of the time of a model that was neither profiled nor run")
    ]
    error: Annotated[ErrorRecord, state_field(CalibrationFile, "error")]
    series: Annotated[list[SeriesRow], state_field(CalibrationFile, "series")]
    layers: Annotated[list[str], state_field(CalibrationFile, "layers")]
    accuracy: Annotated[dict[str, Any], state_field(CalibrationFile, "accuracy")]


ANSWERS = {"calibrate": AnswerType(CalibrationRecord, record=True)}
