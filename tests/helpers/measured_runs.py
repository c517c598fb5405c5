"""Rows of runs files whose times are exactly the oracle's, for a known machine."""

from collections.abc import Iterable, Mapping
from typing import Any

from calibrations import define_calibration

import paradl

Row = dict[str, str]
Configuration = tuple[str, str, int, int]  # model, strategy, PEs, samples a replica

DATASETS = {"cosmoflow": "cosmoflow-256", "inception_v3": "imagenet-299"}
TIMES = {
    "total_s": "iteration_time",
    "comp_s": "iteration_comp_time",
    "comm_s": "iteration_comm_time",
}


def predict_rows(
    configurations: Iterable[Configuration], system: str = "abci", calibration: object = "none"
) -> list[Row]:
    """Predict a row for each configuration."""
    return [_predict_row(configuration, system, calibration) for configuration in configurations]


def _predict_row(configuration: Configuration, system: str, calibration: object) -> Row:
    model, strategy, p, batch = configuration
    dataset = DATASETS.get(model, "imagenet")
    settings = {"calibration": calibration}
    prediction = paradl.predict(
        model, strategy, p, batch, dataset=dataset, system=system, settings=settings
    )
    run = {"model": model, "dataset": dataset, "strategy": strategy, "p": str(p)}
    seconds = {column: repr(prediction[name]) for column, name in TIMES.items()}
    return run | {"samples_per_replica": str(batch)} | seconds


def list_runs(system: str, network: str = "vgg16") -> list[Row]:
    """List seven runs of two networks, 5 % slower or faster than predicted."""
    configurations = [
        *((network, "data", p, 32) for p in (2, 4, 8)),
        ("resnet50", "data", 8, 32),
        ("resnet50", "filter", 4, 32),
        ("resnet50", "channel", 4, 32),
        ("resnet50", "data+spatial:group=4", 8, 32),
    ]
    rows = predict_rows(configurations, system)
    for number, row in enumerate(rows):
        off = 1.05 if number % 2 else 0.95
        row |= {name: repr(off * float(row[name])) for name in TIMES} | {"system": system}
    return rows


def set_parameters(values: Mapping[str, float], **changes: Any) -> dict[str, Any]:
    """Define a calibration of ABCI with these parameters, the others at their priors' medians."""
    definition = define_calibration(**changes)
    exact = {name: {"value": value, "spread": 0.1} for name, value in values.items()}
    return definition | {"parameters": definition["parameters"] | exact}
