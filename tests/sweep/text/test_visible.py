"""Names that others wrote reach a terminal as text, and none of their control characters."""

import csv
import io
import json
import os
import pty
import sys
from contextlib import suppress
from pathlib import Path

import pytest
import yaml

import paradl
from paradl.grids.library import find
from paradl.sweep.text.tables import show
from paradl.sweep.text.visible import escape_invisible, escape_lines

OWNED = "\x1b]0;owned\x07"  # renames a terminal's window
RED = "\x1b[31m"
OVERRIDE = "\u202e"  # what follows is shown from right to left
EVIL = f"net{OWNED}{RED}{OVERRIDE}"
SHOWN = r"net\x1b]0;owned\x07\x1b[31m\u202e"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("data+filter:group=4 [8 ms] § 2, 数据, é", "data+filter:group=4 [8 ms] § 2, 数据, é"),
        ("one\ndone: all is well", r"one\ndone: all is well"),
        (EVIL, SHOWN),
        ("a\rb\tc\x9b31m\x00\x7f", r"a\rb\tc\x9b31m\x00\x7f"),
        ("\u2066a\u2069\u200e\u2028", r"\u2066a\u2069\u200e\u2028"),
        (os.fsdecode(b"\xff.yaml"), r"\udcff.yaml"),
        ("", ""),
    ],
)
def test_what_no_eye_sees_is_an_escape(text, expected) -> None:
    assert escape_invisible(text) == expected


def test_a_message_may_have_lines() -> None:
    assert escape_lines(f"{EVIL}\n  pe: {RED}") == f"{SHOWN}\n  pe: \\x1b[31m"


def is_clean(text: str) -> bool:
    return all(character.isprintable() or character == "\n" for character in text)


@pytest.fixture
def model(tmp_path) -> Path:
    """A model's file, whose path is as bad as can be."""
    path = tmp_path / f"{RED}.yaml"
    path.write_text(yaml.safe_dump(find("model", "alexnet", Path()).definition()))
    return path


def test_names_are_text(model, cli) -> None:
    """Inside of files they are refused, and the message is clean, too."""
    definition = yaml.safe_load(model.read_text()) | {"name": EVIL}
    model.write_text(yaml.safe_dump(definition))
    options = ("--dataset", "imagenet", "--system", "abci", "--strategy", "serial")
    code, out, err = cli("predict", "--model", model, *options, "--batch", 8, "--pe", 1)
    assert (code, out) == (2, "")
    assert is_clean(err)
    assert "not a text character" in err


@pytest.fixture
def spec(model) -> dict:
    axes = {"model": str(model), "dataset": "imagenet", "system": "abci", "strategy": "serial"}
    return {"oracle": "paper", "axes": axes | {"pe": [1, 2], "batch": 8}}


@pytest.fixture
def store(spec, tmp_path) -> str:
    place = tmp_path / f"cube{OWNED}.zarr"
    paradl.run(spec, place)
    return str(place)


@pytest.mark.parametrize("command", [("limits",), ("status", "--verify")])
def test_a_store(command, store, cli) -> None:
    code, out, err = cli(command[0], store, *command[1:])
    assert (code, err) == (0, "")
    assert is_clean(out)
    _, out, _ = cli(command[0], store, "--format", "json")
    assert json.loads(out)
    assert is_clean(out)


def test_a_store_that_says_what_it_likes(store, cli) -> None:
    root = Path(store, "zarr.json")
    metadata = json.loads(root.read_text())
    spec = json.loads(metadata["attributes"]["paradl_spec"])
    spec["axes"]["model"][0]["name"] = EVIL
    for change in ({"paradl_format": EVIL}, {"paradl_spec": json.dumps(spec)}):
        forged = metadata | {"attributes": metadata["attributes"] | change}
        root.write_text(json.dumps(forged))
        code, out, err = cli("limits", store)
        assert (code, out) == (2, "")
        assert is_clean(err)


def test_a_name_makes_no_line_of_a_table(capsys) -> None:
    show([{"name": "a\nb", "levels": ("node\x07", "rack")}], "table")
    *_, first, second, empty = capsys.readouterr().out.splitlines()
    assert first.split() == ["a\\nb", "node\\x07"]
    assert second.split() == ["rack"]
    assert not empty.strip()


def test_a_damaged_store(store, cli) -> None:
    chunk = next(Path(store).glob("memory/c*0"))
    chunk.write_bytes(b"")
    code, out, err = cli("status", store, "--verify")
    assert code == 1
    assert is_clean(out + err)
    assert "memory of model alexnet" in out
    assert r"cube\x1b]0;owned\x07.zarr" in out


def test_a_sweep(spec, spec_file, tmp_path, cli) -> None:
    spec["axes"]["model"] = "alexnet"  # a path with an ESC is no text of a YAML file
    path, store = spec_file(spec), tmp_path / f"{RED}.zarr"
    code, out, err = cli("sweep", path, store, "--dry-run")
    assert (code, err) == (0, "")
    assert is_clean(out)
    code, out, err = cli("sweep", path, store)
    assert (code, out) == (0, "")
    assert err.endswith("\\x1b[31m.zarr\n")
    assert is_clean(err)


@pytest.mark.parametrize("command", ["predict", "explain"])
def test_one_configuration(command, model, cli) -> None:
    options = (
        "--dataset",
        "imagenet",
        "--system",
        "abci",
        "--strategy",
        "serial",
        "--batch",
        8,
        "--model",
        model,
    )
    for pe in (1, 2):  # two are too many, which stderr says
        _, out, err = cli(command, *options, "--pe", pe)
        assert is_clean(out + err)
        assert "alexnet" in out


def test_a_refusal(model, tmp_path, cli) -> None:
    missing = tmp_path / f"{EVIL}.yaml"
    code, _, err = cli("sweep", missing, tmp_path / "cube.zarr")
    assert code == 2
    assert is_clean(err)
    assert f"{SHOWN}.yaml" in err


@pytest.fixture
def runs(model, tmp_path) -> Path:
    path = tmp_path / f"runs{RED}.csv"
    with path.open("w", newline="") as file:
        lines = csv.writer(file)
        names = ["model", "dataset", "system", "strategy", "p", "samples_per_replica"]
        lines.writerow([*names, "total_s", "note"])
        lines.writerow([model, "imagenet", "abci", "data", 4, 8, 0.3, EVIL])
    return path


def test_measured_runs(runs, cli) -> None:
    code, out, err = cli("compare", runs)
    assert (code, err) == (0, "")
    assert is_clean(out)
    assert "\\x1b[31m.yaml" in out
    runs.write_text(runs.read_text().replace(",data,", f",{EVIL},"))
    code, out, err = cli("compare", runs)
    assert (code, out) == (2, "")
    assert is_clean(err)
    assert "runs\\x1b[31m.csv:2: strategy" in err


def test_csv_is_data(runs, cli) -> None:
    """A program that reads it finds the very names."""
    (row,) = csv.DictReader(io.StringIO(cli("compare", runs, "--format", "csv")[1]))
    assert row["note"] == EVIL


def test_csv_on_a_terminal_is_visible(runs, cli, monkeypatch) -> None:
    ours, terminal = pty.openpty()
    with os.fdopen(terminal, "w") as stdout:
        monkeypatch.setattr(sys, "stdout", stdout)
        assert cli("compare", runs, "--format", "csv")[0] == 0
    shown = b""
    with suppress(OSError):  # Linux ends a pseudo-terminal with an error
        while chunk := os.read(ours, 10_000):
            shown += chunk
    os.close(ours)
    assert SHOWN.encode() in shown
    assert b"\x1b" not in shown
