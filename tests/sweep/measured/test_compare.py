"""Compare: accuracies counted by hand, a row for each row, and causes where they were built in."""

import csv
import io
import json
import re
import time
from pathlib import Path
from typing import Any

import pytest

import paradl
from paradl.grids.entries.names import CATALOGUE
from paradl.grids.reading.errors import InputError
from paradl.sweep.measured.compare import rate_prediction
from paradl.sweep.measured.predicted_runs import AS_MEASURED
from paradl.sweep.measured.runs import PARTS

ABCI = CATALOGUE / "measured" / "abci.csv"
PAPER = {**AS_MEASURED, "oracle": "paper"}
HEAD = ("model", "dataset", "strategy", "p", "samples_per_replica", "total_s", "comp_s", "comm_s")
PRIORS = ("--system", "abci", "--calibration", "none")


@pytest.fixture
def runs(tmp_path):
    """Writes rows, each a mapping beside the defaults, to a CSV file."""

    def write(*rows: dict) -> Path:
        default = {"model": "alexnet", "dataset": "imagenet", "strategy": "data", "p": 8}
        default |= {"samples_per_replica": 32, "total_s": 1}
        columns = dict.fromkeys([*HEAD, *(key for row in rows for key in row)])
        path = tmp_path / "runs.csv"
        with path.open("w", newline="") as file:
            lines = csv.DictWriter(file, list(columns))
            lines.writeheader()
            lines.writerows(default | row for row in rows)
        return path

    return write


def predicted(strategy: str = "data", p: int = 8, **settings: object) -> dict[str, float]:
    """[s an iteration] of the default row, as predict tells it."""
    answer = paradl.predict(
        "alexnet",
        strategy,
        p,
        32,
        dataset="imagenet",
        system="abci",
        settings={"calibration": "none", **settings},
    )
    return {part: answer[name] for part, name in zip(PARTS, NAMES, strict=True)}


NAMES = ("iteration_time", "iteration_comp_time", "iteration_comm_time")


def row_of(times: dict[str, float], **more: object) -> dict:
    return {f"{part}_s": value for part, value in times.items()} | more


@pytest.mark.parametrize(
    ("predicted", "measured", "expected"),
    [
        (1.0, 1.0, 1.0),
        (0.75, 1.0, 0.75),
        (1.25, 1.0, 0.75),
        (3.0, 1.0, 0.0),  # off by more than was measured: 0, not less
        (None, 1.0, None),
        (1.0, None, None),
        (1.0, 0.0, None),  # nothing was measured that a part of it could be
    ],
)
def test_accuracy(predicted, measured, expected):
    assert rate_prediction(predicted, measured) == expected


def test_a_row_is_what_predict_says(runs):
    measured = {"total": 0.4, "comp": 0.3, "comm": 0.1}
    (row,) = paradl.compare(runs(row_of(measured)), system="abci", calibration="none")["rows"]
    for part, seconds in predicted().items():
        assert row[f"predicted_{part}"] == seconds
        assert row[f"measured_{part}"] == measured[part]
        expected = max(0, 1 - abs(seconds - measured[part]) / measured[part])
        assert row[f"accuracy_{part}"] == pytest.approx(expected)
    assert (row["system"], row["p"], row["samples_per_replica"]) == ("abci", 8, 32)
    assert row["p10"] < row["predicted_total"] < row["p90"]
    assert row["reason"] is None


def test_table_iii_is_asked_as_the_runs_were_unless_told_otherwise(runs):
    path = runs({"strategy": "data+spatial"})
    for chosen, allreduce in (({}, "hierarchical"), ({"allreduce": "ring"}, "ring")):
        (row,) = paradl.compare(
            path, system="abci", calibration="none", settings={"oracle": "paper"} | chosen
        )["rows"]
        expected = predicted(
            "data+spatial", oracle="paper", allreduce=allreduce, conventions="authors"
        )
        assert row["predicted_total"] == expected["total"]


def test_a_row_names_its_system_or_takes_the_given(runs):
    path = runs({"system": "dgx1-v100"}, {"system": ""})
    answer = paradl.compare(path, system="dgx-h100", calibration="none")["rows"]
    assert [row["system"] for row in answer] == ["dgx1-v100", "dgx-h100"]
    assert answer[0]["predicted_total"] != answer[1]["predicted_total"]


def test_what_cannot_be_is_a_row_with_a_reason(runs):
    path = runs({"dataset": "cosmoflow-128"}, {"strategy": "data+filter", "p": 6}, {})
    answer = paradl.compare(path, system="abci", calibration="none")
    misfit, indivisible, good = answer["rows"]
    assert "alexnet" in misfit["reason"]
    assert "group_does_not_divide" in indivisible["reason"]
    for row in (misfit, indivisible):
        assert row["predicted_total"] is row["accuracy_total"] is row["anomaly"] is None
    assert good["reason"] is None
    overall = answer["summary"]["overall"]
    assert (overall["n"], overall["unpredicted"], overall["total"]["n"]) == (3, 2, 1)


def test_means_and_medians_by_hand(runs):
    exact = predicted()["total"]
    path = runs(
        {"total_s": exact, "authors_total_s": exact / 2},
        {"total_s": exact / 1.5},
        {"total_s": exact / 1.3, "authors_total_s": exact / 1.3},
        {"total_s": predicted("serial", 1)["total"], "strategy": "serial", "p": 1},
    )
    summary = paradl.compare(path, system="abci", calibration="none")["summary"]
    data = summary["by_strategy"]["data"]
    assert data["total"] == {
        "n": 3,
        "mean": pytest.approx((1 + 0.5 + 0.7) / 3),
        "median": pytest.approx(0.7),
    }
    assert data["authors"]["total"] == {
        "n": 2,
        "mean": pytest.approx(0.75),
        "median": pytest.approx(0.75),
        "ours": pytest.approx(0.85),
    }
    assert data["comp"] == {"n": 0, "mean": None, "median": None}
    assert summary["by_strategy"]["serial"]["total"]["mean"] == 1
    assert summary["by_model"]["alexnet"] == summary["overall"]
    assert summary["overall"]["total"]["mean"] == pytest.approx((1 + 0.5 + 0.7 + 1) / 4)


def anomaly(runs, *rows: dict) -> dict[str, Any] | None:
    """What stands out of the last run."""
    compared: list[dict[str, Any]] = paradl.compare(
        runs(*rows), system="abci", calibration="none", settings=PAPER
    )["rows"]
    return compared[-1]["anomaly"]


def cause(runs, *rows: dict) -> str:
    """Why the last run stands out, as it does."""
    odd = anomaly(runs, *rows)
    assert odd is not None
    return str(odd["cause"])


def times(strategy: str, p: int, comp: float = 1.0, comm: float = 1.0) -> dict:
    """A run whose compute and communication took `comp` and `comm` times the predicted."""
    answer = predicted(strategy, p, **PAPER)
    slower = {"comp": answer["comp"] * comp, "comm": answer["comm"] * comm}
    return row_of({"total": sum(slower.values()), **slower}, strategy=strategy, p=p)


def test_nothing_stands_out_of_a_run_near_its_prediction(runs):
    assert anomaly(runs, times("data", 8, 1.2, 1.3)) is None


def test_nothing_stands_out_of_a_part_that_does_not_matter(runs):
    serial = row_of({"total": predicted("serial", 1)["total"], "comm": 1e-3})
    assert anomaly(runs, serial | {"strategy": "serial", "p": 1}) is None


def test_compute_that_does_not_shrink(runs):
    serial, split_comp = (
        predicted(strategy, p, **PAPER)["comp"] for strategy, p in (("serial", 1), ("filter", 8))
    )
    whole = serial * (0.6 + 0.4 / 8)
    split = times("filter", 8, comp=whole / split_comp)
    assert cause(runs, split).startswith("compute does not shrink: 60% of the serial compute")
    more = times("filter", 8, comp=2 * serial / split_comp)
    assert "2.0 times the serial" in cause(runs, more)


def test_congestion_shows_at_scale(runs):
    assert "congestion" in cause(runs, times("data", 16), times("data", 64, comm=3))
    # As slow on few nodes: not the scale.
    even = cause(runs, times("data", 16, comm=3), times("data", 64, comm=3))
    assert even.startswith("bandwidth or start-ups: gradient_exchange takes 3.0 times as long")


def test_a_time_in_another_unit(runs):
    """Nothing of the machine explains a factor of a thousand."""
    for total in (1000, 0.001):
        assert cause(runs, row_of({"total": total})).startswith("the unit may be wrong")


def test_faster_than_predicted(runs):
    assert cause(runs, times("data", 64, comm=0.3)).startswith("overlap")


def test_waiting_for_the_slowest_is_no_fault_of_the_network(runs):
    """By DDP most of the gradients' way is hidden, and blamed for nothing."""
    given: dict[str, Any] = {"dataset": "imagenet", "system": "dgx1-v100"}
    prior = paradl.predict("resnet50", "data", 256, 32, **given)
    terms = prior["terms"]
    assert terms["hidden_communication"] > terms["straggler_wait"] > terms["gradient_exchange"]
    slower = {
        "comp": prior["iteration_comp_time"],
        "comm": 50 * prior["iteration_comm_time"],
    }
    row = row_of({"total": sum(slower.values()), **slower}, model="resnet50", system="dgx1-v100")
    (compared,) = paradl.compare(runs(row | {"p": 256}), calibration="none")["rows"]
    odd = compared["anomaly"]
    assert odd is not None
    assert odd["term"] == "straggler_wait"
    assert "'jitter'" in odd["cause"]


def test_many_runs_that_stand_out_take_time_in_proportion(runs):
    """0.5 s of CPU; more than 100 s where every run was compared with all others."""
    path = runs(*({"total_s": 2 + n / 1000} for n in range(2000)))
    before = time.process_time()
    rows = paradl.compare(path, system="abci", calibration="none")["rows"]
    assert time.process_time() - before < 6
    assert all(row["anomaly"] for row in rows)


def test_only_the_total(runs):
    slow = {"total_s": 3 * predicted("serial", 1)["total"], "strategy": "serial", "p": 1}
    assert cause(runs, slow).startswith("the time of one PE: layers run slower")
    # Of a machine without a profile none is blamed; of a group, its exchanges may hide less.
    node = row_of({"total": 0.5}, model="unet3d", dataset="kits19", system="dgx-a100")
    (compared,) = paradl.compare(runs(node | {"strategy": "data+spatial:group=8", "p": 8}))["rows"]
    odd = compared["anomaly"]
    assert odd is not None
    assert "stated peak" in odd["cause"]
    assert "profile" not in odd["cause"]
    assert "hidden" in odd["cause"]


def test_the_shipped_runs(cli):
    """What docs/accuracy.md shows for the paper's formulas."""
    code, out, err = cli("compare", ABCI, "--oracle", "paper", *PRIORS, "--format", "json")
    assert (code, err) == (0, "")
    answer = json.loads(out, parse_constant=pytest.fail)
    assert len(answer["rows"]) == 56
    lines = list(csv.DictReader(ABCI.read_text().splitlines()))
    for row, line in zip(answer["rows"], lines, strict=True):
        assert (row["model"], row["strategy"]) == (line["model"], line["strategy"])
        assert (row["p"], row["measured_total"]) == (int(line["p"]), float(line["total_s"]))
    overall = answer["summary"]["overall"]
    assert overall["total"]["mean"] == pytest.approx(0.687, abs=1e-3)
    assert overall["authors"]["total"]["mean"] == pytest.approx(0.691, abs=1e-3)
    assert overall["coverage"]["total"] is None


def test_a_row_is_within_its_interval_or_not(tmp_path):
    head, *lines = ABCI.read_text().splitlines()
    part_of_rows = tmp_path / "some.csv"
    part_of_rows.write_text("\n".join([head, *lines[::5]]))
    answer = paradl.compare(part_of_rows, system="abci", calibration="abci")
    assert {row["within"] for row in answer["rows"]} == {True, False}
    for row in answer["rows"]:
        assert row["p10"] <= row["p50"] <= row["p90"]
        assert row["within"] == (row["p10"] <= row["measured_total"] <= row["p90"])
    share = sum(row["within"] for row in answer["rows"]) / len(answer["rows"])
    assert answer["summary"]["overall"]["coverage"]["total"] == pytest.approx(share)


def test_csv_and_tables(cli, runs):
    path = runs({}, {"total_s": 10}, {"dataset": "cosmoflow-128"})
    code, out, _ = cli("compare", path, *PRIORS, "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(out)))
    assert code == 0
    assert [float(row["measured_total"]) for row in rows] == [1, 10, 1]
    assert rows[1]["cause"]
    assert rows[2]["predicted_total"] == ""
    code, out, _ = cli("compare", path, *PRIORS)
    assert code == 0
    assert "Anomalies" in out
    assert rows[1]["cause"] in out
    assert rows[2]["reason"] in out


def test_a_run_that_does_not_fit_is_rated_with_a_remark(cli, runs):
    """A measured run had room: the prediction says otherwise, and has a time nevertheless."""
    path = runs({}, {"samples_per_replica": 2**16})
    fits, too_large = paradl.compare(path, system="abci", calibration="none")["rows"]
    assert (fits["feasible"], fits["limit"]) == (True, [])
    assert not too_large["feasible"]
    assert "memory" in too_large["limit"]
    assert too_large["predicted_total"] > 0
    _, out, _ = cli("compare", path, *PRIORS)
    lines = [line for line in out.splitlines() if "memory" in line]
    assert [line for line in lines if "65,536" in line] == lines != []


def test_required_accuracy(cli, runs):
    path = runs({"total_s": predicted()["total"] / 1.25})  # 75 %
    assert cli("compare", path, *PRIORS, "--require-accuracy", 0.74)[0] == 0
    code, out, err = cli("compare", path, *PRIORS, "--require-accuracy", 0.76)
    assert code == 3
    assert out
    assert "75.0%" in err


def test_nothing_predicted_is_not_accurate(cli, runs):
    path = runs({"dataset": "cosmoflow-128"})
    assert cli("compare", path, *PRIORS, "--require-accuracy", 0)[0] == 3


BAD = [
    ({"model": "alexnt"}, "runs.csv:3: model: "),
    ({"dataset": "imagnet"}, "runs.csv:3: dataset: "),
    ({"strategy": "dta"}, "runs.csv:3: strategy: "),
    ({"system": "abcj"}, "runs.csv:3: system: "),
    ({"p": "many"}, "runs.csv:3: p: "),
    ({"total_s": -1}, "runs.csv:3: total_s: "),
]


@pytest.mark.parametrize(("row", "where"), BAD)
def test_bad_rows(row, where, runs, cli):
    code, out, err = cli("compare", runs({}, row), *PRIORS)
    assert (code, out) == (2, "")
    assert where in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--system", "abcj"), "paradl: --system: "),
        (("--calibration", "no_such"), "'no_such'"),
        (("--calibration", ""), "--calibration: "),
        (("--calibration", "./none.yaml"), "none.yaml: "),
    ],
)
def test_bad_options(options, message, runs, cli):
    code, out, err = cli("compare", runs({}), "--system", "abci", *options)
    assert (code, out) == (2, "")
    assert message in err


def test_the_documented_accuracy(cli):
    """The table of docs/accuracy.md is what the command above it prints."""
    text = (Path(__file__).parents[3] / "docs" / "accuracy.md").read_text()
    block = re.search(r"<!-- paradl (compare [^>]*none) -->\n```\n(.*?)```", text, re.DOTALL)
    assert block is not None
    command, path, *options = block[1].split()
    _, out, _ = cli(command, Path(__file__).parents[3] / path, *options)
    printed = [line.rstrip() for line in out.splitlines()]
    for line in block[2].splitlines():
        assert line in printed


def test_a_measured_memory_is_compared(runs, cli):
    """Beside what the machine oracle says that one PE holds; runs that tell none are left out."""
    given: dict[str, Any] = {"dataset": "imagenet", "system": "abci"}
    given["settings"] = {"oracle": "machine"}
    prior = paradl.predict("alexnet", "data", 8, 32, **given)["memory"]
    path = runs({"memory": f"{prior / 1e9 / 0.8:.9g} GB"}, {"memory": ""})
    first, second = paradl.compare(path, system="abci")["rows"]
    assert first["predicted_memory"] == prior
    assert first["accuracy_memory"] == pytest.approx(0.8)
    assert second["measured_memory"] is second["accuracy_memory"] is None
    overall = paradl.compare(path, system="abci")["summary"]["overall"]
    assert overall["memory"]["n"] == 1
    assert "predicted" in cli("compare", path, "--system", "abci")[1]


@pytest.mark.parametrize("memory", ["5", "-1 GB", "5 s", "much"])
def test_a_memory_that_is_none_is_refused(runs, memory):
    with pytest.raises(InputError, match=r"runs\.csv:2: memory: "):
        paradl.compare(runs({"memory": memory}), system="abci")


def test_replicas_that_are_not_those_of_the_layout_are_refused(runs):
    layout = {"model": "llama3_8b", "dataset": "pile", "strategy": "tp2 mb1 zero1", "p": 8}
    for replicas in (4, 8):
        path = runs({**layout, "samples_per_replica": 4, "replicas": replicas})
        if replicas == 4:
            assert len(paradl.compare(path, system="dgx-h100")["rows"]) == 1
        else:
            with pytest.raises(InputError, match=r"runs\.csv:2: replicas: expected 4"):
                paradl.compare(path, system="dgx-h100")
