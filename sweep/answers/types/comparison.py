"""Answer of `compare`: measured runs beside their predictions."""

from typing import Annotated, Any, TypedDict

from sweep.answers.types.facts import AnswerType, Fact
from sweep.answers.types.words import Extrapolation, Limits, Notes, PlaceLabels, Reason


class RunRow(PlaceLabels):
    """A measured run and its prediction."""

    p: Annotated[int, Fact("PEs")]
    samples_per_replica: Annotated[float, Fact("samples per replica")]
    source: Annotated[str, Fact("where the run was measured")] | None
    note: Annotated[str, Fact("the note in the file")] | None
    limit: Limits
    reason: Reason | None
    anomaly: (
        Annotated[
            dict[str, Any],
            Fact("how the run deviates: part, factor, term, what, and the likely cause"),
        ]
        | None
    )
    extrapolation: Extrapolation
    measured_total: Annotated[float, Fact("time of an iteration, measured", "s")] | None
    measured_comp: Annotated[float, Fact("time computing, measured", "s")] | None
    measured_comm: Annotated[float, Fact("time communicating, measured", "s")] | None
    predicted_total: Annotated[float, Fact("time of an iteration, predicted", "s")] | None
    predicted_comp: Annotated[float, Fact("time computing, predicted", "s")] | None
    predicted_comm: Annotated[float, Fact("time communicating, predicted", "s")] | None
    authors_total: (
        Annotated[float, Fact("time of an iteration, predicted by the authors", "s")] | None
    )
    authors_comp: Annotated[float, Fact("time computing, predicted by the authors", "s")] | None
    authors_comm: Annotated[float, Fact("time communicating, predicted by the authors", "s")] | None
    accuracy_total: Annotated[float, Fact("accuracy of the prediction, total: 1 is exact")] | None
    accuracy_comp: Annotated[float, Fact("accuracy of the prediction, comp: 1 is exact")] | None
    accuracy_comm: Annotated[float, Fact("accuracy of the prediction, comm: 1 is exact")] | None
    authors_accuracy_total: (
        Annotated[float, Fact("accuracy of the authors' prediction, total: 1 is exact")] | None
    )
    authors_accuracy_comp: (
        Annotated[float, Fact("accuracy of the authors' prediction, comp: 1 is exact")] | None
    )
    authors_accuracy_comm: (
        Annotated[float, Fact("accuracy of the authors' prediction, comm: 1 is exact")] | None
    )
    p10: Annotated[float, Fact("10th percentile of predicted_total", "s", scaled=True)] | None
    p50: Annotated[float, Fact("50th percentile of predicted_total", "s", scaled=True)] | None
    p90: Annotated[float, Fact("90th percentile of predicted_total", "s", scaled=True)] | None
    p10_comp: Annotated[float, Fact("10th percentile of predicted_comp", "s")] | None
    p50_comp: Annotated[float, Fact("50th percentile of predicted_comp", "s")] | None
    p90_comp: Annotated[float, Fact("90th percentile of predicted_comp", "s")] | None
    p10_comm: Annotated[float, Fact("10th percentile of predicted_comm", "s")] | None
    p50_comm: Annotated[float, Fact("50th percentile of predicted_comm", "s")] | None
    p90_comm: Annotated[float, Fact("90th percentile of predicted_comm", "s")] | None
    within: Annotated[bool, Fact("whether measured_total lies between p10 and p90")] | None
    within_comp: Annotated[bool, Fact("whether measured_comp lies between p10 and p90")] | None
    within_comm: Annotated[bool, Fact("whether measured_comm lies between p10 and p90")] | None
    measured_memory: Annotated[float, Fact("memory of a PE, measured", "B")] | None
    predicted_memory: Annotated[float, Fact("memory of a PE, predicted", "B")] | None
    accuracy_memory: Annotated[float, Fact("accuracy of the predicted memory: 1 is exact")] | None


class Comparison(TypedDict):
    """All runs of a file, with the accuracy of their predictions."""

    rows: Annotated[
        list[RunRow], Fact("one row per row of the file, in its order, with its prediction")
    ]
    summary: Annotated[
        dict[str, Any], Fact("accuracies: overall, strategies_mean, by_strategy, by_model")
    ]
    notes: Notes


ANSWERS = {"compare": AnswerType(Comparison, record=True)}
