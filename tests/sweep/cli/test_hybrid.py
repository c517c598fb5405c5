"""`paradl hybrid`: the published gains, a user's own epochs, every form, bad input."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

PAL = Path(__file__).parents[3] / "examples" / "pal2019.csv"
GIVEN = ("--convergence", PAL, "--scaling-efficiency", 1)
INCEPTION = (*GIVEN, "--model", "inception_v3", "--batch", 64, "--pe", 256, "--speedup", "2=1.32")
MINE = """model,dataset,target,global_batch,epochs
mine,my_images,top1>=0.7,256,30
mine,my_images,top1>=0.7,1024,33
mine,my_images,top1>=0.7,4096,60
mine,my_images,top1>=0.7,8192,never
"""


def read_strictly(text: str) -> Any:
    return json.loads(text, parse_constant=pytest.fail)


@pytest.mark.parametrize(
    ("model", "batch", "pe", "speedup", "gain", "origin"),
    [
        ("inception_v3", 64, 256, 1.32, 1.32 * 23 / 24 - 1, "recalled"),  # 26.5 % at 256
        ("big_lstm", 64, 32, 1.22, 0.22, "inverted from the gain"),
        ("gnmt", 128, 256, 1.15, 1.15 * 1.878 / 2 - 1, "inverted from the gain"),  # 8 %
    ],
)
def test_the_published_gains(model, batch, pe, speedup, gain, origin, cli):
    case = ("--model", model, "--batch", batch, "--pe", pe, "--speedup", f"2={speedup}")
    code, out, err = cli("hybrid", *GIVEN, *case, "--format", "json")
    answer = read_strictly(out)
    assert (code, err) == (0, "")
    assert answer["gain"]["gain"] == pytest.approx(gain, rel=1e-12)
    assert answer["gain"]["hybrid_pe"] == pe
    assert answer["epochs"]["source"][0].startswith(origin)
    _, table, _ = cli("hybrid", *GIVEN, *case)
    assert f"Gain up to {pe} PEs: {gain:.1%} (" in table
    assert origin in table
    # Of relative epochs that are all 1 no draw says anything.
    assert ("no interval" in table) == (model == "big_lstm")


def test_by_measured_epochs_gnmt_in_pairs_does_not_win(cli):
    case = ("--model", "gnmt_v2", "--dataset", "wmt16-en-de", "--batch", 128, "--pe", 256)
    given = ("--speedup", "2=1.15", "--scaling-efficiency", 1)
    _, out, _ = cli("hybrid", *case, *given, "--format", "json")
    answer = read_strictly(out)
    assert answer["gain"]["gain"] == pytest.approx(-0.055, abs=5e-4)
    assert answer["gain"]["p90"] < 0
    assert {row["pe"] for row in answer["crossovers"]} == {None}
    assert answer["epochs"]["measured"] == [2048, 16384]
    _, table, _ = cli("hybrid", *case, *given)
    assert table.startswith("No hybrid wins")


def test_epochs_of_one_s_own(cli, tmp_path):
    path = tmp_path / "epochs.csv"
    path.write_text(MINE)
    case = (
        "--convergence",
        path,
        "--model",
        "mine",
        "--batch",
        32,
        "--scaling-efficiency",
        0.95,
    )
    code, out, _ = cli("hybrid", *case, "--speedup", "2=1.6", "--pe", 512)
    assert code == 0
    assert "none beyond 4,096" in out
    rows = [line.split() for line in out.splitlines() if line.strip().startswith("256 ")]
    assert [row[:4] for row in rows] == [
        ["256", "data", "256", "8,192"],
        ["256", "2-way", "128", "4,096"],
    ]
    assert "never" in rows[0]
    assert rows[1][-1] == "wins"
    # 128 PEs is the last count at which data converges.
    answer = read_strictly(
        cli("hybrid", *case, "--speedup", "2=1.1", "--pe", 512, "--format", "json")[1]
    )
    assert answer["crossovers"][0]["pe"] == 130
    assert answer["gain"]["data_pe"] == 128


def test_a_row_of_csv_for_each_count(cli):
    code, out, _ = cli("hybrid", *INCEPTION, "--pe", "96,128", "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(out)))
    assert code == 0
    assert [(row["pe"], row["strategy"]) for row in rows] == [
        *(("96", name) for name in ("data", "2-way")),
        *(("128", name) for name in ("data", "2-way")),
    ]
    assert float(rows[2]["epochs"]) == 12


def test_crossovers_in_words(cli):
    def list_crossovers(*options: object) -> list[str]:
        _, out, _ = cli("hybrid", *INCEPTION, "--pe", 64, *options)
        return [line for line in out.splitlines() if "data on as many PEs" in line]

    two, four = list_crossovers("--speedup", "4=1.01")
    assert two.split("PEs")[1].split() == ["36", "30", "to", "56", "100.0%", "extrapolated"]
    # Both ends of the interval are the same, and stand there once.
    assert four.split("PEs")[1].split() == ["never", "never", "0.0%"]
    assert "all counts" in list_crossovers("--speedup", "4=4.5")[1]


def test_the_catalogue_s_epochs_and_the_oracle(cli):
    case = ("--model", "resnet50", "--dataset", "imagenet", "--system", "abci", "--batch", 64)
    asked = ("--pe", 16, "--strategy", "data+filter:group=2", "--format", "json")
    code, out, _ = cli("hybrid", *case, *asked)
    answer = read_strictly(out)
    assert code == 0
    assert (answer["system"], answer["target"]) == ("abci", "top1>=0.759")
    assert answer["splits"][0]["basis"] == "oracle"


def test_an_equal_gain_of_all_draws_does_not_deny_other_spreads(cli):
    case = ("--convergence", PAL, "--dataset", "imagenet-299", "--model", "inception_v3")
    asked = ("--system", "abci", "--batch", 64, "--pe", 1024, "--speedup", "2=1.3")
    _, out, _ = cli("hybrid", *case, *asked)
    assert "(9.38 to 35.6)" in out  # speed-ups have intervals
    assert "30.0% (no interval: all draws give the same), 2-way on 438 over data on 219" in out


def test_falls_are_told(cli):
    case = ("--model", "cosmoflow", "--dataset", "cosmoflow-128", "--batch", 1, "--pe", 64)
    _, _, err = cli("hybrid", *case, "--speedup", "2=1.5", "--scaling-efficiency", 1)
    assert "18.3 at 64" in err


def test_nothing_feasible(cli, tmp_path):
    given = ("--convergence", PAL, "--system", "abci", "--batch", 4096, "--pe", 4)
    case = ("--model", "vgg16", "--dataset", "imagenet")
    code, out, err = cli("hybrid", *given, *case, "--strategy", "data+filter:group=2")
    assert (code, out) == (2, "")
    assert "'vgg16'" in err
    case = ("--model", "inception_v3", "--dataset", "imagenet-299")
    hybrid = ("--strategy", "data+filter:group=2", "--plot", tmp_path / "none.png")
    code, out, err = cli("hybrid", *given, *case, *hybrid)
    assert list(tmp_path.iterdir()) == []
    assert code == 4
    assert "memory" in out
    assert "no hybrid" in err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--speedup", "1.32"), "--speedup: "),
        (("--speedup", "2=1.2", "--speedup", "2=1.3"), "--speedup: "),
        (("--speedup", "2=1", "--pe", "1,x"), "--pe: "),
        (("--speedup", "2=1", "--target", "accuracy"), "'accuracy'"),
        (("--speedup", "2=1", "--model", "resnet"), "big_lstm"),
        (("--speedup", "2=1", "--dataset", "lm1b"), "imagenet"),
        (("--speedup", "2=1", "--convergence", "no.csv"), "no.csv: "),
        (("--strategy", "data+filter"), "--strategy: "),
        (("--speedup", "2=1", "--batch", "16385000"), "--batch: expected at most 1,281,167"),
    ],
)
def test_bad_input_is_one_message(options, message, cli):
    base = (*GIVEN, "--model", "inception_v3", "--batch", 64, "--pe", 256)
    code, out, err = cli("hybrid", *base, *options)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1
    assert len(err) < 1000


TEXT = """model,dataset,target,global_batch,epochs
llama3_8b,pile,loss<=2.2,1024,0.9
llama3_8b,pile,loss<=2.2,4096,1.0
llama3_8b,pile,loss<=2.2,16384,1.5
"""
LLAMA = ("--model", "llama3_8b", "--system", "dgx-h200", "--batch", 1, "--pe", 1024)


def test_a_transformer_s_own_epochs(cli, tmp_path):
    path = tmp_path / "crit.csv"
    path.write_text(TEXT)
    case = (*LLAMA, "--dataset", "pile", "--convergence", path, "--speedup", "2=1.8")
    code, out, err = cli("hybrid", *case)
    # Its states need more than a PE has, and the message says what divides them.
    assert code == 4
    assert "zero" in err
    code, out, _ = cli("hybrid", *case, "--set", "zero=1", "--format", "json")
    answer = read_strictly(out)
    assert code == 0
    assert answer["gain"]["gain"] is not None
    assert answer["epochs"]["measured"] == [1024, 16384]
    # None of E(b) / E(B), SU^2 and SE is 1, but the published argument holds row by row.
    [row] = [row for row in answer["rows"] if (row["pe"], row["strategy"]) == (64, "2-way")]
    ratio = answer["epochs"]["alone"] / row["epochs"]
    assert row["speedup"] == pytest.approx(1.8 * row["scaling_efficiency"] * 32 * ratio)


@pytest.mark.parametrize(
    "text",
    [
        TEXT.replace(",target", ",goal"),
        TEXT.replace("llama3_8b", "llama2_7b"),
        TEXT.replace("0.9", "-0.9"),
        TEXT.replace("16384", "16k"),
        TEXT.replace("1.0", "one"),
    ],
)
def test_a_transformer_s_bad_epochs_are_one_message(text, cli, tmp_path):
    path = tmp_path / "crit.csv"
    path.write_text(text)
    case = (*LLAMA, "--dataset", "pile", "--convergence", path, "--speedup", "2=1.8")
    code, out, err = cli("hybrid", *case)
    assert (code, out) == (2, "")
    assert "crit.csv" in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("model", "dataset"), [("gpt3_175b", "c4"), ("llama3_8b", "c4:length=8192")]
)
def test_epochs_on_c4(model, dataset, cli):
    given = ("--speedup", "2=1.7", "--scaling-efficiency", 1, "--format", "json")
    case = ("--model", model, "--dataset", dataset, "--batch", 1, "--pe", 64)
    code, out, _ = cli("hybrid", *case, *given)
    assert code == 0
    assert read_strictly(out)["epochs"]["source"][0].startswith("mlcommons/logging")
    # The samples of an epoch are known, also of a text cut into sequences of another length.
    code, out, err = cli("hybrid", *case, *given, "--batch", 10**9)
    assert (code, out) == (2, "")
    assert err.startswith("paradl: --batch: ")


@pytest.mark.parametrize("dataset", ["pile", "c4"])
def test_a_transformer_without_epochs_is_told_which_are_known(dataset, cli):
    case = ("--model", "llama2_7b", "--dataset", dataset, "--system", "abci")
    code, out, err = cli("hybrid", *case, "--batch", 1, "--pe", 64)
    assert (code, out) == (2, "")
    assert "gpt3_175b on c4" in err
    assert len(err) < 1000


def test_epochs_are_read_from_files_alone(cli):
    case = (*LLAMA, "--dataset", "pile", "--convergence", "crit.txt", "--speedup", "2=1.8")
    code, out, err = cli("hybrid", *case)
    assert (code, out) == (2, "")
    assert "crit.txt" in err
    assert "none" not in err


def test_what_forbids_stands_in_the_table(cli, tmp_path):
    path = tmp_path / "crit.csv"
    path.write_text(TEXT)
    case = ("hybrid", *LLAMA, "--dataset", "pile", "--convergence", path, "--set", "zero=1")
    # Data lacks memory on one PE alone; no group of 3 divides the heads.
    code, out, err = cli(*case, "--strategy", "data+tensor:tensor=3", "--pe", "1,2,3")
    assert code == 4
    assert "does_not_divide" in out
    assert "no hybrid" in err


def test_one_point_is_no_law(cli, tmp_path):
    path = tmp_path / "epochs.csv"
    path.write_text("\n".join(MINE.splitlines()[:2]))
    case = ("--model", "mine", "--batch", 32, "--pe", 8, "--speedup", "2=1.6")
    code, _, err = cli("hybrid", "--convergence", path, *case, "--scaling-efficiency", 1)
    assert code == 2
    assert "epochs.csv:2: " in err


def test_several_series_are_told_apart(cli, tmp_path):
    path = tmp_path / "epochs.csv"
    rows = MINE.splitlines()
    path.write_text("\n".join([*rows, *(row.replace("0.7", "0.75") for row in rows[1:])]))
    case = ("--model", "mine", "--batch", 32, "--pe", 8, "--speedup", "2=1.6")
    given = ("hybrid", "--convergence", path, *case, "--scaling-efficiency", 1)
    code, _, err = cli(*given)
    assert code == 2
    assert "'top1>=0.7' on 'my_images', 'top1>=0.75' on" in err
    assert cli(*given, "--target", "top1>=0.75")[0] == 0


def test_no_law_is_known(cli):
    case = ("--model", "inception_v3", "--batch", 32, "--pe", 8, "--speedup", "2=1.6")
    for dataset in ((), ("--dataset", "imagenet-299")):
        code, _, err = cli("hybrid", *case, "--scaling-efficiency", 1, *dataset)
        assert code == 2
        assert "--convergence FILE.csv" in err


def test_the_picture(cli, tmp_path):
    pytest.importorskip("matplotlib", reason="pictures need matplotlib")
    path = tmp_path / "hybrid.png"
    style = ("--size", "slide")
    assert cli("hybrid", *INCEPTION, "--plot", path, *style)[0] == 0
    with Image.open(path) as drawn:
        assert drawn.width == 1500
