"""Screenfuls, constants above a table, and what a ranking tells in words."""

import re

import pytest
from open_answers import show_front, show_sensitivities

from paradl.sweep.text.columns import Ranged, make_column
from paradl.sweep.text.tables import LONG, SCREENFUL, print_table, shorten_label, show_rows

ROW = {"model": "vgg16", "strategy": "data", "pe": 4, "memory": 5e9, "fastest_time": 1.5}


def test_a_screenful(capsys):
    show_rows([ROW | {"pe": n} for n in range(493)], "table")
    shown = capsys.readouterr()
    assert shown.err == "paradl: 473 more rows: --all\n"
    rows = [line for line in shown.out.splitlines() if line.strip().isdigit()]
    assert len(rows) == SCREENFUL


@pytest.mark.parametrize(("form", "every"), [("table", True), ("json", False), ("csv", False)])
def test_every_row(form, every, capsys):
    show_rows([ROW | {"model": f"net{n}"} for n in range(30)], form, every)
    shown = capsys.readouterr()
    assert shown.out.count("net") == 30
    assert shown.err == ""


def test_long_tables_are_plain(capsys):
    rows = [ROW | {"pe": n, "strategy": "data+filter"} for n in range(LONG + 1)]
    show_rows(rows, "table", every=True)
    _, head, *lines = capsys.readouterr().out.strip().splitlines()
    assert len(lines) == LONG + 1
    assert head.split() == ["pe"]
    assert lines[-1] == str(LONG)


def test_what_nobody_sees_is_escaped(capsys):
    print_table([ROW | {"model": "\x1b[2J"}] * (LONG + 1))
    assert "\\x1b[2J" in capsys.readouterr().out


def test_constants_stand_above(capsys):
    print_table([ROW, ROW | {"pe": 8}])
    line, head, *_ = capsys.readouterr().out.splitlines()
    assert line == "vgg16, data, memory 5 GB, fastest_time 1.5 s/epoch"
    assert head.split() == ["pe"]
    print_table([ROW])
    assert capsys.readouterr().out.startswith("vgg16, data, pe 4\n")


@pytest.mark.parametrize(
    ("label", "short"),
    [
        ("data", "data"),
        ("data+filter:group=best", "data+filter"),
        ("data+pipeline:group=8,segments=best", "data+pipeline:group=8"),
    ],
)
def test_what_was_searched_is_no_name(label, short):
    assert shorten_label(label) == short


def test_the_parameters_of_the_largest_gain_come_first(capsys):
    cell = {"parameter": "jitter", "value": 0.1, "elasticity": 0.1, "upgrade": "halved"}
    rows = [ROW | cell | {"change": change, "fits": None} for change in (-0.25, *[None] * 11)]
    show_sensitivities(rows, "table", every=False)
    shown = capsys.readouterr()
    assert "-25.0%" in shown.out
    assert shown.err == "paradl: 2 more rows: --all\n"


@pytest.mark.parametrize(
    ("times", "head", "cells"),
    [
        ([1.5, 3600.0], "[s/epoch]", ["1.5", "3,600"]),
        ([90.0, 7200.0], "[s/epoch]", ["90", "7,200"]),
        ([900.0, 7200.0], "[min/epoch]", ["15", "120"]),
        ([8640.0, 432000.0], "[h/epoch]", ["2.4", "120"]),
        ([1e-3, 3600.0], "", ["1 ms/epoch", "60 min/epoch"]),
    ],
)
def test_times_have_a_unit_that_suits_the_shortest(times, head, cells):
    column = make_column("epoch_time", [{"epoch_time": time} for time in times])
    assert (column.unit, [*column.cells]) == (head, cells)


def test_an_interval_stays_with_its_number():
    rows = [{"epoch_time": Ranged(1.5, 1.25, 2.0)}, {"epoch_time": Ranged(30.0, None, None)}]
    column = make_column("epoch_time", rows)
    assert (column.unit, column.cells) == ("[s/epoch]\n80 % interval", ("1.5 (1.25 to 2)", "30"))
    far = make_column("epoch_time", [*rows, {"epoch_time": Ranged(90000.0, 86400.0, 96000.0)}])
    assert far.cells[0] == "1.5 s/epoch (1.25 to 2)"
    assert far.cells[2] == "25 h/epoch (24 to 26.7)"


def test_a_long_front_is_thinned(capsys):
    rows = [{**ROW, "dataset": "d", "pe": n, "fastest_time": 64.0 / n} for n in range(64, 0, -1)]
    show_front(rows, "table", every=False, describe=lambda front: f"{len(front)} of them.")
    shown = capsys.readouterr()
    assert shown.out.startswith("64 of them.\n")
    _, _, lines = shown.out.partition("──")
    counts = [int(line.split()[0]) for line in lines.splitlines()[1:] if line]
    assert counts[0] == 64
    assert counts[-1] == 1
    assert shown.err == f"paradl: {64 - len(counts)} more configurations: --all\n"
    show_front(rows, "table", every=True, describe=lambda front: "")
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    "words",
    [
        ("--model", "llama2_7b", "--strategy", "tp8", "--global-batch", "64"),
        ("--model", "resnet50", "--dataset", "imagenet", "--strategy", "data", "--batch", "32"),
    ],
)
def test_a_prediction_begins_with_its_time_and_what_takes_it(words, cli):
    """Shares of an iteration's terms add up to all of it, those of the memory too."""
    code, out, err = cli("predict", "--system", "dgx-h100", "--pe", "32", *words)
    assert code == 0, err
    assert re.match(
        r"[\d.]+ m?s \([\d.]+ to [\d.,]+\) per iteration, .* GB, fits with [^;]*%; \d+% of", out
    )
    times, memory = (
        out.partition(title)[2].partition("\n\n")[0]
        for title in ("Time of an iteration", "Memory of the fullest PE")
    )
    for part in (times, memory):
        shares = [float(share) for share in re.findall(r" (\d+\.\d)% *", part)]
        assert sum(shares) == pytest.approx(100, abs=0.6)


def test_limits_name_the_furthest_and_keep_what_was_asked(cli, monkeypatch):
    """A row for each strategy and machine, at 80 columns with what stops it."""
    monkeypatch.setenv("COLUMNS", "80")
    systems = ("--system", "dgx-h100,abci", "--pe", "1..64", "--batch", "8,32")
    code, out, err = cli("limits", "--model", "resnet50", "--dataset", "imagenet", *systems)
    assert code == 0, err
    assert "scales furthest, to at least 64 PEs of " in out
    _, *places = re.split(r"\n\n(?=dgx-h100|abci)", out)
    assert [place.partition("\n")[0] for place in places] == [
        "dgx-h100, amp, ddp",
        "abci, fp32, plain",
    ]
    for place in places:
        assert (
            len(re.findall(r"(?m)^ (?:data|serial|spatial|pipeline|filter|channel)", place)) == 10
        )
        assert all(head in place for head in ("largest_", "forbidden_by", "fastest_", " to "))
    assert max(map(len, out.splitlines())) <= 80
    assert "20 more rows: --all" in err


def test_a_reason_names_a_system_once(cli):
    """Though it has a ranking for each bandwidth."""
    asked = ("--model", "llama3_8b", "--system", "dgx-h100", "--pe", "8", "--global-batch", "64")
    bandwidths = ("--set", "inter_bandwidth=25 GB/s,50 GB/s")
    code, out, err = cli("best", *asked, *bandwidths)
    assert code == 0, err
    assert "dgx-h100\n reason" in out


def test_columns_that_were_asked_stay(capsys, monkeypatch):
    """Others make room for them; where they still do not fit, places become titles."""
    monkeypatch.setenv("COLUMNS", "32")
    rows = [
        {"model": model, "pe": n, "group": 4 * n, "global_batch": 1024 * n}
        | {"epoch_time": n / 7, "iteration_time": n / 4}
        for model in ("a-long-name-of-a-network", "vgg16")
        for n in (1, 2, 4)
    ]
    print_table(rows, asked=["iteration_time"])
    out = capsys.readouterr().out
    assert out.startswith("a-long-name-of-a-network\n")
    assert "\n\nvgg16\n" in out
    assert out.count(" 250") == 2
    assert "left out for width: " in out
    assert max(map(len, out.splitlines())) <= 32


def test_a_ranking_over_places_keeps_its_order(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "30")
    rows = [
        {"rank": n, "system": "abci" if n % 2 else "dgx-h100", "pe": 2**n, "epoch_time": n / 7}
        for n in range(1, 9)
    ]
    print_table([row | {"iteration_time": row["pe"] / 4} for row in rows])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines if "abci" in line or "dgx" in line] == [*"12345678"]
