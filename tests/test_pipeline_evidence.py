"""Published speed-ups of a pipeline, which no prior was fitted to, against the machine oracle's."""

import csv

import pytest

import sweep
from tests.test_evidence import EIGHT_P40, FACTS, RESNET101

RATE = "throughput_samples_per_s"
SEGMENTS = 64  # not published; torchgpipe runs activations again by default
BAND = 0.13


def predict_rate(strategy: str, pe: int, batch: int, recompute: str) -> float:
    """Images per second; the whole mini-batch passes through a pipeline."""
    settings = {"calibration": "none", "recompute": recompute}
    answer = sweep.predict(
        RESNET101, strategy, pe, batch, dataset="imagenet", system=EIGHT_P40, settings=settings
    )
    assert answer["feasible"]
    return batch / answer["iteration_time"]


def read_speedups() -> list[tuple[int, float]]:
    with (FACTS / "torchgpipe_resnet101.csv").open() as file:
        rates = {int(row["stages"]): float(row[RATE]) for row in csv.DictReader(file)}
    return [(stages, rate / rates[0]) for stages, rate in rates.items() if stages > 1]


@pytest.mark.parametrize(("stages", "measured"), read_speedups())
def test_a_pipeline_speeds_up_as_published(stages: int, measured: float) -> None:
    alone = predict_rate("serial", 1, 118, "none")
    batch = 128 * stages
    piped = predict_rate(f"pipeline:segments={SEGMENTS}", stages, batch, "full")
    assert piped / alone == pytest.approx(measured, rel=BAND)
