"""Screenfuls, constants above a table, and what a ranking tells in words."""

import pytest

from paradl.sweep.show.planning import show_sensitivities
from paradl.sweep.show.rows import SCREENFUL, shorten_label, show_rows
from paradl.sweep.show.tables import LONG, print_table

ROW = {"model": "vgg16", "strategy": "data", "pe": 4, "memory": 5e9, "fastest_time": 1.5}


def test_a_screenful(capsys):
    show_rows([ROW | {"pe": n} for n in range(493)], "table")
    shown = capsys.readouterr()
    assert shown.err == "paradl: 473 more: --all\n"
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
    rows = [ROW | cell | {"change": change} for change in (-0.25, *[None] * 11)]
    show_sensitivities(rows, "table", every=False)
    shown = capsys.readouterr()
    assert "-25.0%" in shown.out
    assert shown.err == "paradl: 2 more: --all\n"
