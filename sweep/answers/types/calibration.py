"""The answer of `calibrate`: the calibration, as its file has it."""

from typing import Annotated, Any, TypedDict

from grids.entries.calibration import CalibrationFile, ModelError
from grids.entries.entry import Record
from sweep.answers.types.facts import AnswerType, Fact
from sweep.answers.types.words import Dataset, Model, OracleName, Precision, Strategy, System

SPREAD = "spread of the logarithm of what remains unexplained, "


def state_field(record: type[Record], name: str, before: str = "") -> Fact:
    """The fact about a field of the calibration's file, as the file explains it."""
    text = record.model_fields[name].description or ""
    return Fact(f"{before}{text[:1].lower()}{text[1:].rstrip('.')}")


class ErrorRecord(TypedDict):
    """Errors that the formulas leave unexplained."""

    serial: Annotated[float, state_field(ModelError, "serial", SPREAD)]
    group: Annotated[float, state_field(ModelError, "group", SPREAD)]
    reduce: Annotated[float, state_field(ModelError, "reduce", SPREAD)]
    exchange: Annotated[float, state_field(ModelError, "exchange", SPREAD)]
    unseen: Annotated[float, state_field(ModelError, "unseen")]
    distance: Annotated[float, state_field(ModelError, "distance")]


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
    error: Annotated[ErrorRecord, state_field(CalibrationFile, "error")]
    series: Annotated[list[SeriesRow], state_field(CalibrationFile, "series")]
    layers: Annotated[list[str], state_field(CalibrationFile, "layers")]
    accuracy: Annotated[dict[str, Any], state_field(CalibrationFile, "accuracy")]


ANSWERS = {"calibrate": AnswerType(CalibrationRecord, record=True)}
