"""Tables at the widths of terminals: whole texts, named columns, nothing told twice."""

import csv
import io
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from paradl.sweep.text.columns import Column
from paradl.sweep.text.tables import draw_table, print_record, show

STRATEGIES = ["serial", "data", "data+pipeline:group=4,segments=8", "data+spatial"]
LIMIT = ["too_many_pes", "memory", "group_does_not_divide"]
# What `best` answers of a slice with one system, model and PE count; the last is not feasible.
RANKED: list[dict[str, Any]] = [
    {
        "rank": number + 1 if number < 3 else None,
        "model": "vgg16",
        "dataset": "imagenet",
        "system": "abci",
        "strategy": strategy,
        "pe": 256 if number < 3 else None,
        "batch": 64 if number < 3 else None,
        "epoch_time": 60.351 * (number + 1) if number < 3 else None,
        "comp_time": 41.007 if number < 3 else None,
        "comm_time": 19.344 if number < 3 else None,
        "memory": 7.374e9 / (number + 1) if number < 3 else None,
        "feasible": number < 3,
        "limit": [] if number < 3 else LIMIT,
        "faster_than_next": 0.987 if number == 0 else None,
    }
    for number, strategy in enumerate(STRATEGIES)
]


@pytest.fixture
def printed(monkeypatch, capsys):
    """What is printed at a width; None: into a pipe."""

    def run(width: int | None, rows=RANKED) -> str:
        monkeypatch.delenv("COLUMNS", raising=False)
        if width is not None:
            monkeypatch.setenv("COLUMNS", str(width))
        show(rows, "table")
        return str(capsys.readouterr().out)

    return run


@pytest.mark.parametrize("width", [60, 80, 120])
def test_lines_fit_and_no_text_is_shortened(width, printed):
    out = printed(width)
    assert max(map(len, out.splitlines())) <= width
    assert "…" not in out
    for strategy in STRATEGIES:
        assert strategy in out


@pytest.mark.parametrize("width", [60, 80, 120])
def test_each_column_is_shown_told_above_or_named_below(width, printed):
    # Heads are broken where it is narrow: their underscores stay at the ends of lines.
    out = printed(width)
    _, _, below = out.partition("left out for width: ")
    above = out.splitlines()[0]
    heads = out.partition("──")[0]
    for key in RANKED[0]:
        pieces = key.split("_")
        assert (
            str(RANKED[0][key]) in above or all(item in heads for item in pieces) or key in below
        ), key
    assert ("--format csv has all" in " ".join(out.split())) == bool(below)


def test_what_goes_first():
    columns = [Column(key, ("x" * 10,)) for key in RANKED[0]]
    orders = [draw_table(columns, width)[1] for width in range(30, 190)]
    longest = max(orders, key=len)
    assert longest[:4] == ["feasible", "comm_time", "comp_time", "faster_than_next"]
    assert all(item == longest[: len(item)] for item in orders)
    assert not {"rank", "model", "strategy", "pe"} & {*longest}
    assert longest[-1] == "batch"


def test_a_pipe_is_wide(printed):
    out = printed(None)
    assert "left out" not in out
    assert "too_many_pes, memory, group_does_not_divide" in out
    assert "faster_than_next" in out


@pytest.mark.parametrize("width", [60, 80, 120, None])
def test_what_is_the_same_throughout_is_told_once(width, printed):
    out = " ".join(printed(width).split())
    assert out.startswith("vgg16, imagenet, abci ")
    assert out.count("vgg16") == out.count("imagenet") == out.count("abci") == 1


def test_two_rows_that_are_the_same_are_two_rows(printed):
    assert printed(80, [{"a": "x", "b": 1}] * 2).count("x") == 2


def test_a_row_that_does_not_fit_is_a_line_a_key(printed):
    (whole, *_) = out = printed(50, RANKED[:1]).splitlines()
    assert "value" in whole
    assert len(out) == len(RANKED[0]) + 3
    assert any(line.split() == ["epoch_time", "60.35", "s/epoch"] for line in out)


def test_units_stand_in_heads(printed):
    out = printed(None)
    assert "[GB]" in out
    assert " 7.374 " in out
    assert " 3.687 " in out
    far_apart = printed(None, [{"a": "x", "memory": 1e3}, {"a": "y", "memory": 9e9}])
    assert "1 kB" in far_apart
    assert "9 GB" in far_apart


def test_texts_wrap_between_words(printed):
    meaning = "the number of processing elements, of which each has a memory of its own"
    out = printed(60, [{"parameter": "pe", "meaning": meaning}, {"parameter": "b", "meaning": "b"}])
    assert max(map(len, out.splitlines())) <= 60
    assert " ".join(out.split()).count("of which each has a memory") == 1


def test_a_record_wraps_too(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "60")
    print_record({"limit": LIMIT * 3, "feasible": False})
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 60
    assert out.count("group_does_not_divide") == 3


def test_a_store_is_ranked_at_80_columns(monkeypatch, cli, small_url):
    monkeypatch.setenv("COLUMNS", "80")
    code, out, _ = cli("best", small_url, "--sel", "model=alexnet", "--sel", "pe=4")
    assert code == 0
    assert "alexnet, imagenet, abci, pe 4, batch 32" in " ".join(out.split())
    assert max(map(len, out.splitlines())) <= 80
    assert "data+channel" in out


def test_csv_has_every_column_at_any_width(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "40")
    show(RANKED, "csv")
    (first, *_) = csv.DictReader(io.StringIO(capsys.readouterr().out))
    assert [*first] == [*RANKED[0]]


TEXTS = st.text(st.sampled_from("ab_ 漢"), max_size=80)


@given(st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=8), st.integers(1, 120))
def test_any_columns_fit_or_only_labels_are_left(columns, width):
    columns = [Column(f"c{n}_{head}", (cell, "")) for n, (head, cell) in enumerate(columns)]
    lines, left_out = draw_table(columns, width)
    shown = [item for item in columns if item.key not in left_out]
    assert len(shown) + len(left_out) == len(columns)
    assert max(map(cell_len, lines)) <= width or len(shown) == 1
    written = "".join("".join(lines).split()).replace("─", "")
    texts = "".join("".join([item.key, *item.cells]) for item in shown)
    assert sorted(written) == sorted(texts.replace(" ", ""))
