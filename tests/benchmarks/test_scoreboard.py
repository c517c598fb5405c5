"""The scoreboard judges a folder of runs: its page, its commands, and what it refuses."""

import csv
import json
import re
import shlex
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from benchmarks import layout_runs, layouts, others, scoreboard
from benchmarks.forecasts import apply_rule, forecast_runs, take_constant
from paradl.grids.entries.transformer_rates import FITTED
from paradl.kernels.names.stored import PERCENTILES
from paradl.sweep.cli.main import main

DOCS = Path(__file__).parents[2] / "docs"
ROWS = DOCS / "files" / "scoreboard"
PAGE = (DOCS / "scoreboard.md").read_text()

Judge = Callable[..., tuple[int, str, str]]


def read_table(text: str, title: str) -> list[list[str]]:
    """Cells of the first table of a page's section, without its head."""
    block = next(b for b in text.split(title, 1)[1].split("\n\n") if b.lstrip().startswith("|"))
    lines = block.strip().splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


@pytest.fixture
def judge(capsys: pytest.CaptureFixture[str]) -> Judge:
    """Judges paths: exit code, page, messages."""

    def run(*paths: Path, rows: Path | None = None) -> tuple[int, str, str]:
        code = 0
        try:
            scoreboard.main([*paths], rows)
        except SystemExit as ended:
            code = int(ended.code or 0)
        return code, *capsys.readouterr()

    return run


def write_runs(path: Path, numbers: list[int], **changes: str) -> Path:
    """Write rows of `layouts.csv`, which no fit has seen under another source."""
    with layout_runs.RUNS.open(newline="") as file:
        rows = [*csv.DictReader(file)]
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows[number] | {"source": "ours"} | changes for number in numbers)
    return path


def test_a_folder_is_judged_by_the_shipped_rates(judge: Judge, tmp_path: Path) -> None:
    """Runs that no fit has seen, beside another tool's predictions, by plain arithmetic."""
    runs = layout_runs.read_runs(write_runs(tmp_path / "runs.csv", [0, 1, 5]))
    lines = [f"guess,1.0,echo,{run.key},{run.seconds * 1.1}" for run in runs]
    lines.append("guess,1.0,echo,no-such-run,1")
    (tmp_path / "guess.csv").write_text("\n".join([",".join(others.COLUMNS), *lines]) + "\n")
    (tmp_path / "else.csv").write_text("a,b\n1,2\n")
    code, page, messages = judge(tmp_path)
    assert code == 0
    assert messages.count("not read") == messages.count("\n") == 1
    (summary,) = read_table(page, "# Scoreboard")
    fitted = layouts.select_timed()
    for column, predicted in (
        (2, [layout_runs.predict_seconds(run, FITTED) for run in runs]),
        (5, [take_constant(run, fitted) for run in runs]),
        (6, [apply_rule(run) for run in runs]),
    ):
        far = [abs(one / run.seconds - 1) for one, run in zip(predicted, runs, strict=True)]
        assert summary[column] == f"{1 - sum(far) / 3:.1%}"
    (whole, *_) = read_table(page, "## Other tools")
    assert whole[:4] == ["guess 1.0", "3", "90.0%", "1.10"]
    assert whole[4:] == [summary[2], *summary[5:7]]
    assert "Fits without" not in page
    assert "Unseen when predicted" not in page


def test_a_fitted_run_is_predicted_without_its_software() -> None:
    """Another run of the same software by the shipped rates."""
    runs = layouts.select_timed()[:60:5]
    seen, unseen = runs[:-1], runs[-1]
    stack = seen[0].stack
    one, other = forecast_runs([seen[0], unseen], seen)
    assert (one.left_out, other.left_out) == (stack, "")
    assert one.values == layouts.fit([run for run in seen if run.stack != stack])
    assert other.values == FITTED
    low, high = one.interval
    assert low < one.seconds < high
    assert np.log(high / one.seconds) == pytest.approx(PERCENTILES[90] * one.spread)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tensor": "3.5"}, r"runs\.csv:2: tensor: expected a whole number, got '3\.5'"),
        ({"tensor": "0"}, r"runs\.csv:2: tensor: expected 1 to"),
        ({"zero": "4"}, r"runs\.csv:2: zero: expected 0 to 3, got 4"),
        ({"stack": "MegatronLM 2021"}, r"runs\.csv:2: unknown stack 'MegatronLM 2021'"),
        ({"system": "dgx-h10"}, r"runs\.csv:2: unknown system 'dgx-h10'; did you mean"),
        ({"precision": "amp"}, r"runs\.csv:2: unknown precision 'amp'"),
        ({"precision": "nvfp4"}, r"runs\.csv:2: .*no peak in nvfp4"),
        ({"recompute": "some"}, r"runs\.csv:2: unknown recompute 'some'"),
        ({"network": "gpt"}, r"runs\.csv:2: network: expected settings of a family, got 'gpt'"),
        (
            {"network": "{name: gpt, block: 2}"},
            r"runs\.csv:2: model published: family: block: unknown key",
        ),
        ({"iteration_s": "-2"}, r"runs\.csv:2: iteration_s: expected more than 0, got '-2'"),
        ({"iteration_s": "fast"}, r"runs\.csv:2: iteration_s: expected a number, got 'fast'"),
        ({"iteration_s": ""}, r"no run with a time \(iteration_s\)"),
        ({"micro": "7"}, r"runs\.csv:2: gpt-1\.7b on 32 PEs, ours: no such layout"),
    ],
)
def test_a_mistake_in_a_row_is_one_message(
    changes: dict[str, str], message: str, judge: Judge, tmp_path: Path
) -> None:
    check_refusal(judge(write_runs(tmp_path / "runs.csv", [0], **changes)), message)


def check_refusal(judged: tuple[int, str, str], message: str) -> None:
    """One message on stderr, nothing on stdout, exit code 2."""
    code, page, messages = judged
    assert (code, page) == (2, "")
    assert re.search(message, messages), messages
    assert messages.startswith("paradl: ")
    assert messages.count("\n") == 1
    assert len(messages) < 1000


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "runs.csv: no such folder or file"),
        ("", r"runs\.csv: no run with a time"),
        ("stack,network\na,b\n", r"runs\.csv:1: the column source is missing"),
        ("tool,version,command,key,seconds\na,1,b,c,0\n", r"runs\.csv:2: seconds: expected more"),
        ("tool,version,key,seconds\na,1,c,2\n", r"runs\.csv:1: the column command is missing"),
    ],
)
def test_a_file_that_is_none_of_ours_is_one_message(
    text: str | None, message: str, judge: Judge, tmp_path: Path
) -> None:
    if text is not None:
        (tmp_path / "runs.csv").write_text(text)
    check_refusal(judge(tmp_path / "runs.csv"), message)


def test_an_unknown_column_is_refused(judge: Judge, tmp_path: Path) -> None:
    path = write_runs(tmp_path / "runs.csv", [0])
    path.write_text(path.read_text().replace("recompute,", "recompute,expert_tensors,", 1))
    check_refusal(judge(path), r"unknown column 'expert_tensors'; did you mean 'expert_tensor'")


def test_rows_are_written_to_no_file(judge: Judge, tmp_path: Path) -> None:
    path = write_runs(tmp_path / "runs.csv", [0])
    check_refusal(judge(path, rows=path), r"runs\.csv/networks: Not a directory")


def read_rows() -> list[dict[str, str]]:
    """The runs that the page links."""
    with (ROWS / "rows.csv").open(newline="") as file:
        return [*csv.DictReader(file)]


def test_the_page_is_what_the_stated_fits_predict() -> None:
    """Every twentieth row: page and rows are written as a whole."""
    fits = read_table(PAGE, "## Fits without each software")
    values = {name: dict(zip(FITTED, map(float, numbers), strict=True)) for name, *numbers in fits}
    runs = {run.key: run for run in layouts.select_timed()}
    rows = read_rows()
    assert {*runs} <= {row["key"] for row in rows}
    for row in rows[::20]:
        if row["left_out"]:
            seconds = layout_runs.predict_seconds(runs[row["key"]], values[row["left_out"]])
            assert float(row["predicted_s"]) == pytest.approx(seconds, rel=1e-3)
            assert float(row["measured_s"]) == pytest.approx(runs[row["key"]].seconds)


def test_the_summary_is_that_of_the_rows() -> None:
    """And paradl is nearer than both baselines."""
    title, count, accuracy, held, _, *others = read_table(PAGE, "# Scoreboard")[0][:7]
    assert title == "dense networks"
    experts = [row["key"] for row in read_rows() if "moe" in find_network(row)]
    rows = [
        row
        for row in read_rows()
        if not row["system"].startswith("tpu") and row["key"] not in experts
    ]
    assert int(count) == len(rows)
    ratios = [float(row["predicted_s"]) / float(row["measured_s"]) for row in rows]
    mean = sum(max(1 - abs(ratio - 1), 0) for ratio in ratios) / len(rows)
    assert float(accuracy.strip("%")) == pytest.approx(100 * mean, abs=0.06)
    inside = [
        float(row["low_s"]) <= float(row["measured_s"]) <= float(row["high_s"]) for row in rows
    ]
    assert float(held.strip("%")) == pytest.approx(100 * sum(inside) / len(rows), abs=0.6)
    assert float(accuracy.strip("%")) > max(float(other.strip("%")) for other in others) + 5


@cache
def list_networks() -> dict[str, str]:
    """The settings of networks, by a run's key."""
    paths = layout_runs.RUNS, layout_runs.UNSEEN
    return {run.key: run.network for path in paths for run in layout_runs.read_runs(path)}


def find_network(row: dict[str, str]) -> str:
    """The settings of a row's network."""
    return list_networks()[row["key"]]


def test_commands_name_files_that_exist() -> None:
    commands = [shlex.split(row["command"]) for row in read_rows() if row["command"]]
    assert len(commands) > 0.95 * len(read_rows())
    for words in commands:
        files = [words[words.index(option) + 1] for option in ("--model", "--system")]
        assert all((ROWS / file.partition(":")[0]).is_file() for file in files)


@pytest.mark.parametrize("number", range(6))
def test_a_command_prints_its_rows_prediction(
    number: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [row for row in read_rows() if row["command"]]
    row = rows[number * len(rows) // 6]
    monkeypatch.chdir(ROWS)
    monkeypatch.setattr(sys, "argv", [*shlex.split(row["command"]), "--json"])
    with pytest.raises(SystemExit, match="0"):
        main()
    seconds = json.loads(capsys.readouterr().out)["iteration_time"]
    assert seconds == pytest.approx(float(row["predicted_s"]), rel=1e-4)
