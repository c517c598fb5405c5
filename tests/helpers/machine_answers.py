"""Answers of the machine oracle for one configuration of any machine, along one more axis."""

from typing import Any

import numpy as np

from paradl.grids.grid import Grid
from paradl.grids.spec import Spec
from paradl.kernels.arrays import use_numpy
from paradl.kernels.configuration.answers import Answer
from paradl.kernels.configuration.case import Case
from paradl.kernels.names.arrays import Floats
from paradl.kernels.oracle.answer import answer_case

Definition = dict[str, Any]
STRATEGIES = (
    "data",
    *(f"data+{group}:group=4" for group in ("spatial", "filter", "channel", "pipeline")),
)


def take_case(
    machine: Definition | str, strategy: str, pe: int, model: str, batch: int = 32, **axes: Any
) -> Case:
    """Return the case of a model on ImageNet; `axes` are parameters with one value or several."""
    labels = {"model": model, "dataset": "imagenet", "system": [machine], "strategy": strategy}
    spec = {"axes": {**labels, "pe": pe, "batch": batch, **axes}}
    case = Grid.from_spec(Spec.model_validate(spec)).case((0, 0, 0, 0))
    assert isinstance(case, Case)
    return case


def answer(*configuration: Any, **axes: Any) -> Answer:
    """Answer the case of `take_case` in numpy."""
    with use_numpy():
        return answer_case(take_case(*configuration, **axes))


def add_times(answer: Answer) -> Floats:
    """Return seconds per epoch along the axis that varies."""
    return np.asarray(answer.compute + answer.communication).ravel()
