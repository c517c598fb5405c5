"""Independent evidence: published speed-ups that no parameter was fitted to.

Bands, not fits: they state how far and in which direction the oracle is off, and what it leaves
out. Speed-ups, since absolute times depend on the library.
"""

import csv
import re
from pathlib import Path
from typing import Any

import pytest

import paradl

FACTS = Path(__file__).parent / "data" / "facts"
UNCALIBRATED = {
    "oracle": "paper",
    "calibration": "none",
}  # ABCI's own library and network are not those of others

RESNET101 = {
    "name": "resnet101",
    "source": "He et al., CVPR 2016, table 1",
    "rank": 2,
    "family": {"name": "resnet", "stages": [3, 4, 23, 3]},
}

# Eight Tesla P40 (data sheet: 12 TFLOP/s, 24 GB, 346 GB/s) in one node, joined by PCIe 3.0 x16.
# Latency and efficiency as in the catalogue's systems.
EIGHT_P40 = {
    "name": "8xp40",
    "pe": {
        "name": "P40",
        "device": "p40",
        "peak_flops": "12 TFLOP/s",
        "efficiency": 0.5,
        "memory_capacity": "24 GB",
        "memory_bandwidth": "346 GB/s",
    },
    "pes_per_node": 8,
    "links_per_node": 1,
    "levels": [{"name": "node", "pes": 8, "latency": "9 us", "bandwidth": "16 GB/s"}],
}


def read_rows(path: Path) -> list[dict[str, str]]:
    with path.open() as file:
        return list(csv.DictReader(file))


def facts(name: str) -> list[dict[str, str]]:
    return read_rows(FACTS / name)


def images_per_s(precision: str, gpus: int) -> float:
    (row,) = (
        row
        for row in facts("resnet50_dgx1_v100.csv")
        if (row["precision"], row["gpus"]) == (precision, str(gpus))
    )
    return float(row["images_per_s"])


def throughput(model: Any, strategy: str, pe: int, batch: int, system: Any, delta=4.0):
    answer = paradl.predict(
        model,
        strategy,
        pe,
        batch,
        dataset="imagenet",
        system=system,
        parameters={"delta": delta},
        settings=UNCALIBRATED,
    )
    return answer["samples"] / answer["epoch_time"]


def test_the_profile_of_one_device_carries_over():
    """A V100's time on ABCI (Chainer) predicts that on a DGX-1 in PyTorch within 5 %."""
    predicted = throughput("resnet50", "data", 1, 128, "dgx1-v100")
    assert predicted == pytest.approx(images_per_s("fp32", 1), rel=0.05)


# The source states no batch: the bands hold for all that fit the memory. Predictions are above what
# was measured, always: no input pipeline, no stragglers, no kernels that all-reduces slow down. In
# mixed precision (two bytes an item) compute is three times shorter, and all that weighs more.
DGX1 = [("fp32", 4.0, 1.05), ("amp", 2.0, 1.16)]


@pytest.mark.parametrize(("precision", "delta", "most"), DGX1)
@pytest.mark.parametrize("batch", [64, 128, 256])
def test_data_parallelism_on_a_dgx1(precision: str, delta: float, most: float, batch: int):
    one, eight = images_per_s(precision, 1), images_per_s(precision, 8)
    model = {
        "name": "resnet50",
        "rank": 2,
        "family": {"name": "resnet", "stages": [3, 4, 6, 3]},
        "profiles": [{"device": "v100", "shape": [3, 224, 224], "seconds": 1 / one}],
    }
    predicted = [throughput(model, "data", pe, batch, "dgx1-v100", delta=delta) for pe in (1, 8)]
    speedup = predicted[1] / predicted[0]
    assert 1 < speedup / (eight / one) < most
    assert speedup < 8


def stages(count: int) -> float:
    (row,) = (r for r in facts("torchgpipe_resnet101.csv") if r["stages"] == str(count))
    return float(row["throughput_samples_per_s"])


# Measured against one stage, which recomputes activations as several do; the oracle recomputes
# none. The number of micro-batches is not among the facts, and it decides how long the pipeline
# fills and drains. With 16 the measured speed-ups are met within 15 %; with more, predictions are
# above them by up to a third: nothing in the oracle copies between streams or starts kernels.
PIPELINES = [(16, 0.95, 1.15), (32, 1.05, 1.20), (64, 1.10, 1.35)]


@pytest.mark.parametrize("count", [2, 4, 8])
@pytest.mark.parametrize(("segments", "least", "most"), PIPELINES)
def test_a_pipeline_of_resnet101(count: int, segments: int, least: float, most: float):
    batch = 8 * segments
    one = throughput(RESNET101, "serial", 1, batch, EIGHT_P40)
    several = throughput(RESNET101, f"pipeline:segments={segments}", count, batch, EIGHT_P40)
    assert least < (several / one) / (stages(count) / stages(1)) < most


def test_more_stages_bring_less_each():
    """Measured and predicted: the efficiency of a pipeline falls with its stages."""
    one = throughput(RESNET101, "serial", 1, 256, EIGHT_P40)
    for reached in (
        [stages(count) / stages(1) / count for count in (2, 4, 8)],
        [
            throughput(RESNET101, "pipeline:segments=32", count, 256, EIGHT_P40) / one / count
            for count in (2, 4, 8)
        ],
    ):
        assert reached[1:] == sorted(reached[1:], reverse=True)
        assert all(value < 1 for value in reached)


CLUSTERS = Path(__file__).parents[1] / "grids" / "catalogue" / "measured" / "clusters.csv"


def scaling(system: str, pe: int, batch: int) -> float:
    """Images a second of a PE, of that of one alone, by the machine oracle's priors."""
    one, many = (
        paradl.predict("resnet50", "data", count, batch, dataset="imagenet", system=system)
        for count in (1, pe)
    )
    return one["iteration_time"] / many["iteration_time"]


def test_the_scaling_of_a_dgx1_in_fp32():
    """NVIDIA: 0.971 on 8 GPUs; within 3 %."""
    assert scaling("dgx1-v100", 8, 128) == pytest.approx(0.971, rel=0.03)


def test_the_scaling_of_abci_on_1088_gpus():
    """Sony (Mikami et al. 2018): 0.916; within 10 %."""
    assert scaling("abci:precision=amp,software=ddp", 1088, 32) == pytest.approx(0.916, rel=0.1)


def test_an_interval_holds_what_hosts_bind():
    answer = paradl.predict(
        "resnet50", "data", 8, 256, dataset="imagenet", system="dgx1-v100:precision=amp"
    )
    interval = answer["intervals"]["iteration_time"]
    assert interval["p10"] < 8 * 256 / 8322 < interval["p90"]


def test_published_runs_of_machines_that_nobody_calibrated():
    """One to 4,320 devices: at least 85 % right on average, and intervals that hold 80 %."""
    overall = paradl.compare(CLUSTERS)["summary"]["overall"]
    assert overall["total"]["mean"] > 0.85
    assert overall["coverage"]["total"] > 0.8


PAGE = Path(__file__).parents[1] / "docs" / "accuracy.md"
# Runs on ABCI that the shipped calibration has not seen, and those that it was fitted to.
UNSEEN, FITTED = (CLUSTERS.with_name(name) for name in ("abci_unseen.csv", "abci.csv"))


@pytest.fixture(scope="module")
def unseen() -> dict[str, Any]:
    """Averages over the runs that no fit has seen, by the shipped calibration."""
    return dict(paradl.compare(UNSEEN, system="abci")["summary"])


def read_cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


def format_averages(name: str, average: dict[str, Any]) -> list[str]:
    """The cells of a row of the page's table: runs, accuracy of each part, totals in intervals."""
    parts = (average[part] for part in ("total", "comp", "comm"))
    rates = [f"{p['mean']:.1%} / {p['median']:.1%}" if p["n"] else "-" for p in parts]
    return [name, str(average["n"]), *rates, f"{average['coverage']['total']:.1%}"]


def test_the_page_shows_the_runs_that_no_fit_has_seen(unseen):
    """Each row of the table is computed anew."""
    block = PAGE.read_text().split("measured/abci_unseen.csv --system abci -->\n```\n")[1]
    rows = block.split("```")[0].splitlines()[2:]
    lines = [re.split(r"\s{2,}", line.strip()) for line in rows]
    printed = {name: [name, *cells[:4], cells[-1]] for name, *cells in lines}
    averages = {"all": unseen["overall"], **unseen["by_strategy"], **unseen["by_model"]}
    mean = unseen["strategies_mean"]
    assert printed.pop("mean of strategies")[2] == f"{mean['total']:.1%}"
    assert printed == {name: format_averages(name, rows) for name, rows in averages.items()}


def test_the_page_beside_what_the_paper_claims(unseen):
    """Accuracy of totals [%]: the paper's, and of runs that no fit has seen; means over all six."""
    table = PAGE.read_text().split("claimed for their runs")
    names, theirs = (
        read_cells(part) for part in (table[0].splitlines()[-3], table[1].split("\n")[0])
    )
    claimed = dict(zip(names[1:], map(float, theirs[1:]), strict=True))
    *strategies, _ = claimed
    mean = sum(claimed[name] for name in strategies) / len(strategies)
    assert claimed["mean"] == pytest.approx(mean, abs=0.005)
    ours = read_cells(table[1].splitlines()[1])[1:]
    totals = [unseen["by_strategy"][name]["total"]["mean"] for name in strategies]
    assert ours == [f"{100 * value:.1f}" for value in (*totals, unseen["strategies_mean"]["total"])]


def test_no_fit_has_seen_them():
    """None is a run of the calibration's file, which has as many runs as the calibration says."""
    keys = ("model", "dataset", "strategy", "p", "samples_per_replica")
    fitted, others = (
        [tuple(row[key] for key in keys) for row in read_rows(path)] for path in (FITTED, UNSEEN)
    )
    assert not {*fitted} & {*others}
    assert len(others) == 74
    title = (FITTED.parents[1] / "calibrations" / "abci.yaml").read_text().partition("source")[0]
    assert f"from {len(fitted)} measured runs" in title


# The default oracle on the same pipeline; the number of micro-batches was not published.
SEGMENTS = 64


def predict_rate(strategy: str, pe: int, batch: int, recompute: str) -> float:
    """Images per second; the whole mini-batch passes through a pipeline."""
    settings = {"calibration": "none", "recompute": recompute}
    answer = paradl.predict(
        RESNET101, strategy, pe, batch, dataset="imagenet", system=EIGHT_P40, settings=settings
    )
    assert answer["feasible"]
    return batch / answer["iteration_time"]


def read_speedups() -> list[tuple[int, float]]:
    rows = facts("torchgpipe_resnet101.csv")
    rates = {int(row["stages"]): float(row["throughput_samples_per_s"]) for row in rows}
    return [(stages, rate / rates[0]) for stages, rate in rates.items() if stages > 1]


@pytest.mark.parametrize(("stages", "measured"), read_speedups())
def test_a_pipeline_speeds_up_as_published(stages: int, measured: float) -> None:
    alone = predict_rate("serial", 1, 118, "none")
    batch = 128 * stages
    piped = predict_rate(f"pipeline:segments={SEGMENTS}", stages, batch, "full")
    assert piped / alone == pytest.approx(measured, rel=0.13)
