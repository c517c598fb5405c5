"""JSON schemas of what each verb prints with `--format json`: for agents and scripts."""

from dataclasses import dataclass
from typing import Literal

from grids.entries.parameters import PARAMETERS
from sweep.answers.types.calibration import CalibrationRecord
from sweep.answers.types.catalogue import DatasetRow, ModelRow, ParameterRow, StrategyRow, SystemRow
from sweep.answers.types.comparison import Comparison
from sweep.answers.types.cubes import Difference, Status
from sweep.answers.types.facts import Field, Schema, describe_fields, list_fields, state_parameter
from sweep.answers.types.fitting import FitAnswer
from sweep.answers.types.hybrid import HybridAnswer
from sweep.answers.types.learning import LeakageRow, ScoreRow, SurrogateRow
from sweep.answers.types.placement import PlacementRecord
from sweep.answers.types.plans import BottleneckRow, NeedRow, ProvisionRow, SensitivityRow
from sweep.answers.types.prediction import Explanation, LayerRow, Prediction
from sweep.answers.types.rankings import CrossoverRow, LimitsRow, ParetoRow, RankingRow, RegretRow
from sweep.answers.types.words import Extras

DRAFT = "https://json-schema.org/draft/2020-12/schema"


# An axis of parameters that change together has a name of the user's.
ROWS: Schema = {
    "type": ["integer", "null"],
    "unit": "1",
    "description": "the number of a row of parameters that change together, by its axis",
}


@dataclass(frozen=True)
class Answer:
    """The answer of a verb: rows, or one record.

    axes: rows have values along a space's axes, too, of several machines their settings, and notes;
    `sought` where a row may be of no cell, and its values null.
    """

    row: type
    record: bool = False
    axes: Literal["none", "known", "sought"] = "none"

    def list_fields(self) -> dict[str, Field]:
        """All fields that a row may have."""
        fields = list_fields(self.row)
        if self.axes == "none":
            return fields
        axes = {name: _make_axis(name, self.axes == "sought") for name in PARAMETERS}
        return axes | list_fields(Extras) | fields


def _make_axis(name: str, nullable: bool) -> Field:
    """A parameter's value in a row."""
    kind = int if PARAMETERS[name].whole else float
    return Field(kind, state_parameter(name), nullable, optional=True)


ANSWERS = {
    "best": Answer(RankingRow, axes="sought"),
    "limits": Answer(LimitsRow, axes="known"),
    "limits --crossovers": Answer(CrossoverRow, axes="known"),
    "bottleneck": Answer(BottleneckRow, axes="known"),
    "sensitivity": Answer(SensitivityRow, axes="known"),
    "provision --deadline": Answer(ProvisionRow, axes="sought"),
    "provision --need": Answer(NeedRow, axes="known"),
    "pareto": Answer(ParetoRow, axes="known"),
    "regret": Answer(RegretRow, axes="known"),
    "diff": Answer(Difference, record=True),
    "predict": Answer(Prediction, record=True),
    "explain": Answer(Explanation, record=True),
    "explain --layers-table": Answer(LayerRow),
    "status": Answer(Status, record=True),
    "compare": Answer(Comparison, record=True),
    "calibrate": Answer(CalibrationRecord, record=True),
    "hybrid": Answer(HybridAnswer, record=True),
    "fit": Answer(FitAnswer, record=True),
    "place": Answer(PlacementRecord, record=True),
    "leakage": Answer(LeakageRow),
    "surrogate evaluate": Answer(ScoreRow),
    "surrogate predict": Answer(SurrogateRow),
    "models": Answer(ModelRow),
    "datasets": Answer(DatasetRow),
    "systems": Answer(SystemRow),
    "strategies": Answer(StrategyRow),
    "parameters": Answer(ParameterRow),
}


def build_schemas() -> dict[str, Schema]:
    """The schema of each verb's JSON, by the verb, JSON schema draft 2020-12.

    `unit` beside `type` is an annotation: the unit of the numbers, SI.
    """
    return {verb: _build_schema(verb, answer) for verb, answer in ANSWERS.items()}


def _build_schema(verb: str, answer: Answer) -> Schema:
    head = {"$schema": DRAFT, "title": f"paradl {verb} --format json"}
    row = describe_fields(answer.list_fields())
    if answer.axes != "none":
        row["additionalProperties"] = ROWS
    return head | (row if answer.record else {"type": "array", "items": row})
