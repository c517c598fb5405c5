"""Reading measured runs: every row in its place, and every mistake told by file and line."""

import csv
from pathlib import Path
from typing import Any

import pytest

import paradl
from paradl.grids.reading.errors import InputError
from paradl.sweep.measured.compare import summarise_accuracy
from paradl.sweep.measured.runs import PARTS, RunTimes, read_runs

HEAD = "model,dataset,strategy,p,samples_per_replica,total_s"
ROW = "alexnet,imagenet,data,8,32,0.25"


@pytest.fixture
def written(tmp_path):
    def write(*lines: str, end: str = "\n"):
        path = tmp_path / "runs.csv"
        path.write_bytes(end.join(lines).encode())
        return path

    return write


def test_the_required_columns_are_enough(written):
    (run,) = read_runs(written(HEAD, ROW))
    assert (run.model, run.dataset, run.strategy) == ("alexnet", "imagenet", "data")
    assert (run.p, run.samples_per_replica) == (8, 32)
    assert run.measured == RunTimes(0.25, None, None)
    assert run.authors == RunTimes(None, None, None)
    assert run.system is None
    assert run.where.endswith("runs.csv:2")


def test_columns_in_any_order_and_more_of_them(written):
    head = "note,total_s,p,comm_s,model,weather,system,dataset,samples_per_replica,strategy,comp_s"
    row = '"a, b",0.25,8,0,alexnet,fair,abci,imagenet,32,data,0.2'
    head, row = f"{head},authors_total_s,source", f"{row},0.3,log"
    (run,) = read_runs(written(head, row))
    assert run.measured == RunTimes(0.25, 0.2, 0.0)
    assert run.authors.total == 0.3
    assert (run.system, run.source, run.note) == ("abci", "log", "a, b")


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_blank_lines_and_line_ends(end, written):
    path = written("\ufeff" + HEAD, "", ROW, " ,,", ROW, "", end=end)
    assert [run.where.rpartition(":")[2] for run in read_runs(path)] == ["3", "5"]


def test_a_field_of_several_lines_counts_them(written):
    path = written(f"{HEAD},note", f'{ROW},"one\ntwo"', f"{ROW},three")
    assert [run.where.rpartition(":")[2] for run in read_runs(path)] == ["2", "4"]


def field(column: str, value: str) -> str:
    return ",".join(
        value if name == column else old
        for name, old in zip(HEAD.split(","), ROW.split(","), strict=True)
    )


BAD = [
    ((), "runs.csv: "),
    (("", " "), "runs.csv: "),
    ((HEAD,), "runs.csv: "),
    ((HEAD.replace("total_s", "total"), ROW), "the column total_s is missing"),
    (
        (HEAD.replace("p,samples_per_replica", "pe,batch"), ROW),
        "the column p is missing; rename pe to p, batch to samples_per_replica",
    ),
    ((HEAD.replace(",", ";"), ROW), "runs.csv:1: "),
    ((HEAD.replace(",", "\t"), ROW), "runs.csv:1: "),
    ((f"{HEAD},p", f"{ROW},8"), "runs.csv:1: the column 'p'"),
    ((HEAD, ROW, f"{ROW},1"), "runs.csv:3: "),
    ((HEAD, "alexnet"), "runs.csv:2: "),
    ((HEAD, ROW, field("model", "")), "runs.csv:3: model: "),
    *((((HEAD, field("p", value))), "runs.csv:2: p: ") for value in ("x", "0", "1.5", "9" * 400)),
    ((HEAD, field("samples_per_replica", "-4")), "runs.csv:2: samples_per_replica: "),
    *(
        ((HEAD, field("total_s", value)), "runs.csv:2: total_s: ")
        for value in ("", "nan", "inf", "0", "-1", "1e308")
    ),
    ((f"{HEAD},comp_s", f"{ROW},-1"), "runs.csv:2: comp_s: "),
    ((f"{HEAD},comp_s", f"{ROW},1e-320"), "runs.csv:2: comp_s: "),
    ((f"{HEAD},comp_s", f"{ROW},200"), "runs.csv:2: comp_s: "),  # of milliseconds
    ((f"{HEAD},comm_s", f"{ROW},200"), "runs.csv:2: comm_s: "),
    ((f"{HEAD},authors_comm_s", f"{ROW},few"), "runs.csv:2: authors_comm_s: "),
    ((HEAD, field("model", "x" * 200_000)), "runs.csv:2: "),
    ((HEAD + ",x" * 10**6, ROW), "runs.csv:1: the column 'x'"),
    ((HEAD, f'"{ROW}'), "runs.csv:2: "),
]


@pytest.mark.parametrize(("lines", "where"), BAD)
def test_mistakes_have_their_line(lines, where, written):
    with pytest.raises(InputError) as error:
        read_runs(written(*lines))
    assert where in str(error.value)
    assert "\n" not in str(error.value)


def test_no_file(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        read_runs(tmp_path / "none.csv")


def rate(strategy: str, accuracy: float) -> dict[str, Any]:
    nothing = ("predicted_total", "within", "within_comp", "within_comm", "accuracy_memory")
    parts = {f"accuracy_{part}": accuracy for part in PARTS}
    authors = {f"authors_accuracy_{part}": None for part in PARTS}
    return {"strategy": strategy, "model": "m", **dict.fromkeys(nothing), **parts, **authors}


def test_each_strategy_counts_once_and_serial_runs_do_not() -> None:
    rows = [rate("data", 0.9), rate("data", 0.7), rate("filter", 0.6), rate("serial", 0.0)]
    summary = summarise_accuracy(rows)
    assert summary["strategies_mean"] == pytest.approx(dict.fromkeys(PARTS, (0.8 + 0.6) / 2))
    assert summary["overall"]["total"]["mean"] == pytest.approx(0.55)
    assert summarise_accuracy([rate("serial", 1.0)])["strategies_mean"]["total"] is None


def predict(p: int) -> dict[str, float]:
    answer = paradl.predict(
        "resnet50",
        "data+filter",
        p,
        64,
        dataset="imagenet",
        system="abci",
        settings={"calibration": "none"},
    )
    return {part: answer[f"iteration_{part}_time"] for part in ("comp", "comm")}


def test_what_grows_with_pes_inside_groups_is_log_files_and_no_congestion(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    small, large = predict(16), predict(256)
    with path.open("w", newline="") as file:
        columns = ("model", "dataset", "strategy", "p", "samples_per_replica")
        lines = csv.writer(file)
        lines.writerow([*columns, "total_s", "comp_s", "comm_s"])
        for p, times, slower in ((16, small, 1), (256, large, 4)):
            comp, comm = times["comp"], slower * times["comm"]
            lines.writerow(["resnet50", "imagenet", "data+filter", p, 64, comp + comm, comp, comm])
    near, far = paradl.compare(path, system="abci", calibration="none")["rows"]
    assert near["anomaly"] is None
    assert "log files" in far["anomaly"]["cause"]
