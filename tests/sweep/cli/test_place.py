"""`paradl place`: every form, progress, the picture, exit codes."""

import csv
import io
import json
import re

import pytest

from paradl.grids.graphs.graphfile import GRAPHS

DIAMOND = """name: diamond
operators:
  stem: {forward: 1 ms, backward: 2 ms, kept: 8 GB}
  left: {forward: 3 ms, backward: 6 ms, kept: 4 GB}
  right: {forward: 3 ms, backward: 6 ms}
tensors:
  - {maker: stem, takers: [left, right], bytes: 8 MB}
"""
# Side by side they are as fast as can be: nothing is left to prove, which takes a process.
PAIR = """name: pair
operators:
  left: {forward: 3 ms, backward: 6 ms}
  right: {forward: 3 ms, backward: 6 ms}
"""
ASKED = ("--devices", 2, "--system", "dgx1-v100")


@pytest.fixture
def diamond(tmp_path):
    path = tmp_path / "diamond.yaml"
    path.write_text(DIAMOND)
    return path


@pytest.fixture
def pair(tmp_path):
    path = tmp_path / "pair.yaml"
    path.write_text(PAIR)
    return path


def test_as_a_table(pair, cli):
    code, out, err = cli("place", pair, *ASKED, "--quiet")
    assert (code, err) == (0, "")
    assert "pair on dgx1-v100, PEs 0, 3" in out
    assert "9 ms" in out
    assert out.startswith("2 times as fast on 2 devices as on one: a step takes 9 ms; proven")
    assert "room 15 GB\n" in out  # one unit


def test_a_table_has_a_screenful_of_operators(tmp_path, cli):
    """Operators of two chains by turns, each chain on a device of its own; CSV has them all."""
    path = tmp_path / "many.yaml"
    lines = [f"  op{n:02}: {{forward: 1 ms, backward: 1 ms}}\n" for n in range(40)]
    chain = [f"  - {{maker: op{n:02}, takers: op{n + 2:02}, bytes: 1 GB}}\n" for n in range(38)]
    path.write_text(f"name: many\noperators:\n{''.join(lines)}tensors:\n{''.join(chain)}")
    _, out, _ = cli("place", path, *ASKED, "--quiet")
    title, *_, last = out[out.index("Operators") :].strip().splitlines()
    assert title.endswith("of the graph: the first 20 of 40 lines; --format json has all")
    assert "op19" in last
    _, rows, _ = cli("place", path, *ASKED, "--quiet", "--format", "csv")
    assert len(rows.splitlines()) == 41


def test_operators_are_in_the_order_of_the_graph(tmp_path, cli):
    path = tmp_path / "late.yaml"
    # The second chain starts on the other PE at once, and long before the first has ended.
    path.write_text(
        "name: late\noperators:\n"
        "  first: {forward: 5 ms, backward: 5 ms}\n"
        "  second: {forward: 1 ms, backward: 1 ms}\n"
        "  other: {forward: 6 ms, backward: 6 ms}\n"
        "tensors:\n  - {maker: first, takers: second, bytes: 8 MB}\n"
    )
    _, out, _ = cli("place", path, *ASKED, "--quiet")
    title, *_, first, last = out[out.index("Operators") :].strip().splitlines()
    assert title == "Operators, in the order of the graph"
    assert first.split()[:2] == ["first", "second"]
    assert last.split()[:2] == ["other", "other"]
    assert "forward from 0 s" in out  # both rows


def test_as_json_and_csv(pair, cli):
    code, out, err = cli("place", pair, *ASKED, "--format", "json", "--quiet")
    answer = json.loads(out, parse_constant=pytest.fail)
    assert (code, err) == (0, "")
    assert answer["proven"] is True
    code, out, err = cli("place", pair, *ASKED, "--format", "csv", "--quiet")
    rows = list(csv.DictReader(io.StringIO(out)))
    assert [row["operator"] for row in rows] == ["left", "right"]
    assert {row["pe"] for row in rows} == {"0", "3"}


def test_micro_batches(diamond, cli):
    arguments = ("place", diamond, *ASKED, "--quiet", "--micro-batches")
    code, out, err = cli(*arguments, "2")
    assert (code, err) == (0, "")
    assert "PEs 0, 3 in 2 micro-batches" in out
    assert "'placement:segments=2'" in out
    diamond.write_text(f"batch: 16\n{DIAMOND}")
    assert "16 samples in 2 micro-batches of 8" in cli(*arguments, "2")[1]
    code, out, err = cli(*arguments, "x")
    assert (code, out) == (2, "")
    assert err.startswith("paradl: --micro-batches: ")


def test_the_picture(pair, cli, tmp_path):
    path = tmp_path / "slide.svg"
    options = ("--plot", path, "--size", "slide", "--quiet")
    assert cli("place", pair, *ASKED, *options)[0] == 0
    # 10 inches.
    assert re.findall(r'<svg [^>]*\bwidth="([\d.]+)pt"', path.read_text()) == ["720"]


def test_memory_that_does_not_do(diamond, cli):
    text = diamond.read_text().replace("4 GB", "14 GB").replace("6 ms}", "6 ms, kept: 14 GB}")
    diamond.write_text(text)
    code, out, err = cli("place", diamond, *ASKED, "--quiet")
    assert code == 4
    assert "step" not in out
    assert "3 devices" in err


def test_a_profile_of_one_s_own_by_its_path(cli):
    path = GRAPHS / "inception_v3-pipedream.yaml"
    given = ("--devices", 2, "--system", "abci", "--effort", 0.3)
    code, out, _ = cli("place", path, *given, "--format", "json")
    answer = json.loads(out)
    assert code == 0
    assert answer["graph"] == "inception_v3-pipedream"
    assert answer["speedup"] > 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("alexnet", *ASKED), "paradl: --batch: "),
        (("alexnet", *ASKED, "--batch", 8, "--dataset", "imagenat"), "paradl: --dataset: "),
        (("nothing", *ASKED), "'nothing'"),
    ],
)
def test_bad_input_is_one_message(arguments, message, cli):
    code, out, err = cli("place", *arguments, "--quiet")
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1


def test_a_model_s_mistake_names_its_file(tmp_path, cli):
    path = tmp_path / "config.json"
    path.write_text('{"model_type": "lama"}')
    code, _, err = cli("place", path, "--batch", 8, *ASKED)
    assert code == 2
    assert err.startswith(f"paradl: {path}: unknown model_type")
