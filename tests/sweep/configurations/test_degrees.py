"""Samples per second and model FLOPs over the peak, of every network in every answer."""

from typing import Any

import pytest

import paradl
from paradl.grids.design_space import SpaceValues, make_grid
from paradl.grids.grid import read_grid
from paradl.sweep.questions.best.question import rank_strategies

PLACE: dict[str, Any] = {"dataset": "imagenet", "system": "dgx-h100:precision=amp"}
PEAK, MACS = 989.4e12, 4.09e9  # H100: dense fp16; ResNet-50: He et al. 2016, forward


def test_images_per_second_and_mfu() -> None:
    answer = paradl.predict("resnet50", "data", 8, 64, **PLACE)
    rate = 8 * 64 / answer["iteration_time"]
    assert answer["samples_per_second"] == pytest.approx(rate)
    assert answer["samples_per_pe_second"] == pytest.approx(rate / 8)
    assert answer["mfu"] == pytest.approx(6 * MACS * rate / 8 / PEAK, rel=0.02)


def test_a_slower_peak_is_better_used() -> None:
    """The peak of the question, whether fixed or an axis."""
    mfu = [
        paradl.predict("resnet50", "data", 8, 64, parameters=given, **PLACE)["mfu"]
        for given in ({}, {"peak_flops": PEAK / 2})
    ]
    assert mfu[0] < mfu[1] < 2 * mfu[0]


def test_a_peak_of_rows_is_that_of_the_rate() -> None:
    peaks = [PEAK / 2, PEAK]
    axes: dict[str, Any] = {"model": "resnet50", "strategy": "data", "pe": 8, "batch": 64, **PLACE}
    axes["speed"] = [{"peak_flops": peak} for peak in peaks]
    rows = rank_strategies(read_grid({"axes": axes}))
    for row, peak in zip(rows, peaks, strict=True):
        rate = row["samples_per_pe_second"] or 0.0
        assert row["mfu"] == pytest.approx(6 * MACS * rate / peak, rel=0.02)


@pytest.mark.parametrize("oracle", ["machine", "paper"])
def test_a_ranking_has_the_rates_of_predictions(oracle: str) -> None:
    given: dict[str, Any] = {"dataset": "imagenet", "system": "abci"}
    given["settings"] = {"oracle": oracle}
    space = SpaceValues("vgg16", pe=4, batch=8, strategy=["data", "serial"], **given)
    data, serial = rank_strategies(make_grid(space))
    answer = paradl.predict("vgg16", "data", 4, 8, **given)
    for name in ("iteration_time", "samples_per_second", "samples_per_pe_second", "mfu"):
        assert data[name] == pytest.approx(answer[name], rel=1e-6)  # cells are in single precision
        assert serial[name] is None


def test_tokens_are_those_of_samples() -> None:
    words: dict[str, Any] = {"global_batch": 64, "sequence": 4096}
    answer = paradl.predict("llama2_7b", "tp2 mb1 zero1", 8, system="dgx-h100", **words)
    assert answer["tokens_per_second"] == pytest.approx(4096 * answer["samples_per_second"])
    assert 0 < answer["mfu"] <= answer["hfu"] < 1
