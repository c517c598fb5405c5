"""Reading measured epochs: series, points that never converge, and every mistake."""

import pytest

from grids.convergence.points import MeasuredPoint
from grids.reading.errors import InputError

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
    assert [len(each.points) for each in series] == [2, 1, 1, 1, 1, 1]
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


MOST = "expected a number above 0 and at most"
BAD = [
    ((HEAD,), "epochs.csv: expected a row for each global batch, got none; is it the right file?"),
    (
        (HEAD.replace("global_batch", "globalbatch"), ROW),
        "epochs.csv:1: unknown column 'globalbatch'; did you mean 'global_batch'? known: ",
    ),
    ((HEAD, change("model", "")), "epochs.csv:2: model: expected a name of at most 200 characters"),
    ((HEAD, change("target", "x" * 201)), "epochs.csv:2: target: expected a name of at most 200"),
    ((HEAD, change("global_batch", "32k")), f"epochs.csv:2: global_batch: {MOST} 9.01e+15, got "),
    ((HEAD, change("global_batch", "32k")), "got '32k'; write all digits and no unit, such as 327"),
    ((HEAD, change("global_batch", "32,768").replace("32,768", '"32,768"')), "got '32,768'; write"),
    ((HEAD, change("global_batch", "0")), f"epochs.csv:2: global_batch: {MOST}"),
    ((HEAD, change("global_batch", "-64")), f"epochs.csv:2: global_batch: {MOST}"),
    ((HEAD, change("global_batch", "")), f"epochs.csv:2: global_batch: {MOST}"),
    ((HEAD, change("global_batch", "nan")), f"epochs.csv:2: global_batch: {MOST}"),
    ((HEAD, change("global_batch", "64.5")), "global_batch: expected a whole number of samples, g"),
    ((HEAD, change("global_batch", "9" * 400)), f"epochs.csv:2: global_batch: {MOST}"),
    ((HEAD, ROW, change("epochs", "0")), f"epochs.csv:3: epochs: {MOST} 1e+09, got '0'"),
    ((HEAD, change("epochs", "-3")), f"epochs.csv:2: epochs: {MOST}"),
    ((HEAD, change("epochs", "nan")), f"epochs.csv:2: epochs: {MOST}"),
    ((HEAD, change("epochs", "inf")), f"epochs.csv:2: epochs: {MOST}"),
    ((HEAD, change("epochs", "nevr")), "epochs.csv:2: epochs: expected a number above 0 and"),
    ((HEAD, change("epochs", "1e-300")), f"epochs.csv:2: epochs: {MOST}"),
    ((HEAD, change("epochs", "")), "epochs.csv:2: epochs: expected a number, got nothing; give ep"),
    ((HEAD, change("steps", "-1")), f"epochs.csv:2: steps: {MOST} 1e+15, got '-1'"),
    (
        (HEAD, ROW, change("epochs", "13")),
        "epochs.csv:3: global_batch: 1,024 stands in line 2 with",
    ),
    ((HEAD, ROW, change("epochs", "never")), "epochs.csv:3: global_batch: 1,024 stands in line 2"),
    ((HEAD, *(change("global_batch", str(n)) for n in range(1, 1002))), "expected at most 1,000 "),
]


@pytest.mark.parametrize(("lines", "message"), BAD)
def test_what_is_wrong_is_told_by_line(lines, message, read_lines):
    with pytest.raises(InputError) as told:
        read_lines(*lines)
    assert message in str(told.value)
    assert "\n" not in str(told.value)
    assert len(str(told.value)) < 1000
