"""Reading of measured epochs: series, points that never converge, and every mistake."""

import pytest

from paradl.grids.convergence.points import MeasuredPoint
from paradl.grids.reading.errors import InputError

HEAD = "model,dataset,target,global_batch,epochs,steps,optimizer"
ROW = "toy,small,90 %,1024,12.5,,sgd"


def test_a_series_is_of_one_source_model_dataset_target_and_optimizer(read_lines):
    series = read_lines(
        f"{HEAD},source",
        f"{ROW},mine",
        "toy,small,90 %,512,11,,sgd,mine",
        "toy,small,90 %,512,11,,adam,mine",
        "toy,small,91 %,512,11,,sgd,mine",
        "toy,large,90 %,512,11,,sgd,mine",
        "other,small,90 %,512,11,,sgd,mine",
        "toy,small,90 %,512,11,,sgd,yours",
    )
    assert [len(line.points) for line in series] == [2, 1, 1, 1, 1, 1]
    first = series[0]
    assert (first.source, first.model, first.dataset) == ("mine", "toy", "small")
    assert (first.target, first.optimizer) == ("90 %", "sgd")


def test_points_rise_in_batch_and_know_their_lines(read_lines):
    (series,) = read_lines(
        HEAD, ROW, "toy,small,90 %,512,,4000,sgd", "toy,small,90 %,2048,15,9,sgd"
    )
    assert [point.global_batch for point in series.points] == [512, 1024, 2048]
    assert [point.where.rpartition(":")[2] for point in series.points] == ["3", "2", "4"]
    assert [point.epochs for point in series.points] == [None, 12.5, 15]
    assert [point.steps for point in series.points] == [4000, None, 9]


@pytest.mark.parametrize("never", ["never", "Never", "NEVER"])
def test_a_batch_that_never_converges(never, read_lines):
    (series,) = read_lines(HEAD, ROW, f"toy,small,90 %,2048,{never},,sgd")
    assert [point.converged for point in series.points] == [True, False]


def test_the_same_row_twice_counts_once(read_lines):
    (series,) = read_lines(HEAD, ROW, ROW)
    assert [type(point) for point in series.points] == [MeasuredPoint]


def test_four_columns_and_epochs_are_enough(read_lines):
    (series,) = read_lines("global_batch,target,epochs,dataset,model", "64,90 %,7,small,toy")
    assert (series.source, series.optimizer, series.points[0].epochs) == ("", "", 7)


def change(column: str, value: str) -> str:
    return ",".join(
        value if name == column else old
        for name, old in zip(HEAD.split(","), ROW.split(","), strict=True)
    )


BAD = [
    ((HEAD,), "epochs.csv:"),
    ((HEAD.replace("global_batch", "globalbatch"), ROW), "epochs.csv:1:"),
    ((HEAD, change("model", "")), "epochs.csv:2: model:"),
    ((HEAD, change("target", "x" * 201)), "epochs.csv:2: target:"),
    ((HEAD, change("global_batch", "32k")), "epochs.csv:2: global_batch:"),
    ((HEAD, change("global_batch", "32k")), "got '32k'"),
    ((HEAD, change("global_batch", "32,768").replace("32,768", '"32,768"')), "got '32,768'"),
    ((HEAD, change("global_batch", "0")), "epochs.csv:2: global_batch:"),
    ((HEAD, change("global_batch", "-64")), "epochs.csv:2: global_batch:"),
    ((HEAD, change("global_batch", "")), "epochs.csv:2: global_batch:"),
    ((HEAD, change("global_batch", "nan")), "epochs.csv:2: global_batch:"),
    ((HEAD, change("global_batch", "64.5")), "global_batch:"),
    ((HEAD, change("global_batch", "9" * 400)), "epochs.csv:2: global_batch:"),
    ((HEAD, ROW, change("epochs", "0")), "epochs.csv:3: epochs:"),
    ((HEAD, change("epochs", "-3")), "epochs.csv:2: epochs:"),
    ((HEAD, change("epochs", "nan")), "epochs.csv:2: epochs:"),
    ((HEAD, change("epochs", "inf")), "epochs.csv:2: epochs:"),
    ((HEAD, change("epochs", "nevr")), "epochs.csv:2: epochs:"),
    ((HEAD, change("epochs", "1e-300")), "epochs.csv:2: epochs:"),
    ((HEAD, change("epochs", "")), "epochs.csv:2: epochs:"),
    ((HEAD, change("steps", "-1")), "epochs.csv:2: steps:"),
    ((HEAD, ROW, change("epochs", "13")), "epochs.csv:3: global_batch: "),
    ((HEAD, ROW, change("epochs", "never")), "epochs.csv:3: global_batch: "),
    ((HEAD, *(change("global_batch", str(n)) for n in range(1, 1002))), "expected at most 1,000 "),
]


@pytest.mark.parametrize(("lines", "message"), BAD)
def test_what_is_wrong_is_stated_by_line(lines, message, read_lines):
    with pytest.raises(InputError) as error:
        read_lines(*lines)
    assert message in str(error.value)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 1000
