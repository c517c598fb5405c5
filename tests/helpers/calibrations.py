"""Calibrations as plain data, with every parameter at a multiple of its prior's median."""

from typing import Any

from paradl.grids.entries.calibration import list_priors

ERROR = {
    "serial": 0.03,
    "group": 0.1,
    "reduce": 0.07,
    "exchange": 0.2,
    "unseen": 0.5,
    "distance": 0.1,
}
SERIES = {"model": "resnet50", "dataset": "imagenet", "strategy": "data", "pe": [4, 64]}


def define_calibration(
    name: str = "mine",
    system: str = "abci",
    precision: Any = "fp32",
    software: Any = "plain",
    times: float = 1.0,
    spread: float = 0.1,
    **changes: Any,
) -> dict[str, Any]:
    """Define a calibration whose parameters are `times` their priors' medians, within bounds."""
    priors = list_priors(precision, software)
    parameters = {
        key: {"value": min(times * prior.median, prior.high), "spread": spread}
        for key, prior in priors.items()
    }
    usual = {
        "name": name,
        "system": system,
        "oracle": "machine",
        "precision": precision,
        "software": software,
        "parameters": parameters,
        "error": ERROR,
        "series": [SERIES | {"batch": [32]}],
    }
    return usual | changes
