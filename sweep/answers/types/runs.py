"""Answers about measured runs: `compare` with predictions, and `calibrate` by them."""

from typing import Annotated, TypedDict

from pydantic import Field

from paradl.grids.entries.calibration import CalibrationFile
from paradl.grids.entries.entry import Count, Name, Record
from paradl.sweep.answers.types import words
from paradl.sweep.answers.types.facts import AnswerType, Fact, Seconds


class Anomaly(TypedDict):
    """How a run deviates, and why."""

    part: Annotated[str, "the part of its time that deviates"]
    factor: Annotated[float, "measured over predicted"] | None
    term: Annotated[str, "the term that takes most of it"]
    what: Annotated[str, "how it deviates, in words"]
    cause: Annotated[str, "the likely cause"]


class RunRow(words.PlaceLabels):
    """A measured run and its prediction."""

    p: Annotated[int, "PEs"]
    samples_per_replica: Annotated[float, "samples per replica"]
    source: Annotated[str, "where the run was measured"] | None
    note: Annotated[str, "the note in the file"] | None
    feasible: words.Feasible
    limit: words.Limits
    reason: words.Reason | None
    fitted: Annotated[bool, "whether the calibration was fitted to this configuration"] | None
    anomaly: Annotated[Anomaly, "how the run deviates, and why"] | None
    extrapolation: words.Extrapolation
    measured_total: Annotated[Seconds, "time of an iteration, measured"] | None
    measured_comp: Annotated[Seconds, "time computing, measured"] | None
    measured_comm: Annotated[Seconds, "time communicating, measured"] | None
    predicted_total: Annotated[Seconds, "time of an iteration, predicted"] | None
    predicted_comp: Annotated[Seconds, "time computing, predicted"] | None
    predicted_comm: Annotated[Seconds, "time communicating, predicted"] | None
    authors_total: Annotated[Seconds, "time of an iteration, predicted by the authors"] | None
    authors_comp: Annotated[Seconds, "time computing, predicted by the authors"] | None
    authors_comm: Annotated[Seconds, "time communicating, predicted by the authors"] | None
    accuracy_total: Annotated[float, "accuracy of the prediction, total: 1 is exact"] | None
    accuracy_comp: Annotated[float, "accuracy of the prediction, comp: 1 is exact"] | None
    accuracy_comm: Annotated[float, "accuracy of the prediction, comm: 1 is exact"] | None
    authors_accuracy_total: Annotated[float, "accuracy of the authors' total: 1 is exact"] | None
    authors_accuracy_comp: Annotated[float, "accuracy of the authors' comp: 1 is exact"] | None
    authors_accuracy_comm: Annotated[float, "accuracy of the authors' comm: 1 is exact"] | None
    p10: Annotated[Seconds, "10th percentile of predicted_total"] | None
    p50: Annotated[Seconds, "50th percentile of predicted_total"] | None
    p90: Annotated[Seconds, "90th percentile of predicted_total"] | None
    p10_comp: Annotated[Seconds, "10th percentile of predicted_comp"] | None
    p50_comp: Annotated[Seconds, "50th percentile of predicted_comp"] | None
    p90_comp: Annotated[Seconds, "90th percentile of predicted_comp"] | None
    p10_comm: Annotated[Seconds, "10th percentile of predicted_comm"] | None
    p50_comm: Annotated[Seconds, "50th percentile of predicted_comm"] | None
    p90_comm: Annotated[Seconds, "90th percentile of predicted_comm"] | None
    within: Annotated[bool, "whether measured_total lies between p10 and p90"] | None
    within_comp: Annotated[bool, "whether measured_comp lies between p10 and p90"] | None
    within_comm: Annotated[bool, "whether measured_comm lies between p10 and p90"] | None
    measured_mfu: Annotated[float, "MFU at the measured time"] | None
    predicted_mfu: Annotated[float, "MFU at the predicted time"] | None
    measured_memory: Annotated[float, Fact("memory of a PE, measured", "B")] | None
    predicted_memory: Annotated[float, Fact("memory of a PE, predicted", "B")] | None
    accuracy_memory: Annotated[float, "accuracy of the predicted memory: 1 is exact"] | None
    measured_bytes: Annotated[dict[str, float], Fact("sent by kind, measured", "B")] | None
    predicted_bytes: Annotated[dict[str, float], Fact("sent by kind, predicted", "B")] | None
    fits: words.FitChance | None


class Average(TypedDict):
    """Accuracies of a part of the time."""

    n: Annotated[int, "rows that have both values"]
    mean: Annotated[float, "mean"] | None
    median: Annotated[float, "median"] | None


class AuthorsAverage(Average):
    """Accuracies of the predictions that came with the rows."""

    ours: Annotated[float, "mean of ours on these rows"] | None


class RunAverages(TypedDict):
    """Average accuracies over some rows."""

    n: Annotated[int, "rows"]
    unpredicted: Annotated[int, "rows without a prediction"]
    total: Annotated[Average, "of the time"]
    comp: Annotated[Average, "of computing"]
    comm: Annotated[Average, "of communicating"]
    memory: Annotated[Average, "of the memory"]
    authors: Annotated[dict[str, AuthorsAverage], "of predictions that came with rows, by part"]
    coverage: Annotated[dict[str, float | None], "share within 80 % intervals, by part"]


class AccuracySummary(TypedDict):
    """Average accuracies of all rows, of each strategy and of each model."""

    overall: Annotated[RunAverages, "of all rows"]
    strategies_mean: Annotated[dict[str, float | None], "means of strategies' means, by part"]
    by_strategy: Annotated[dict[str, RunAverages], "by strategy"]
    by_model: Annotated[dict[str, RunAverages], "by model"]


class Comparison(TypedDict):
    """All runs of a file, with the accuracy of their predictions."""

    rows: Annotated[list[RunRow], "one row per row of the file, in its order, with its prediction"]
    summary: Annotated[AccuracySummary, "accuracies: overall, and by strategy and model"]
    notes: words.Notes


class RunColumns(Record, extra="allow"):
    """Row of a CSV file of measured runs (docs/your-runs.md)."""

    model: Name
    dataset: Name
    strategy: Name
    p: Count = Field(description="PEs")
    samples_per_replica: Count = Field(description="of a PE (data) or group (hybrids), else of all")
    total_s: float = Field(description="time of an iteration [s]")
    comp_s: float | None = Field(default=None, description="its time computing [s]")
    comm_s: float | None = Field(default=None, description="its time communicating [s]")
    memory: str | float | None = Field(default=None, description="of a PE, such as 5.3 GB [B]")
    system: str = Field(default="", description="the machine; by default that of --system")
    source: str = Field(default="", description="where the run was measured")
    note: str = ""


ANSWERS = {
    "compare": AnswerType(Comparison, record=True),
    "calibrate": AnswerType(CalibrationFile, record=True),
}
