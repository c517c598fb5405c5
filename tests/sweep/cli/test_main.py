"""The command line: answers on stdout, one message on stderr, and what an exit code says."""

import csv
import errno
import io
import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from cubes import COMMAND, SMALL, unmark

import paradl
from paradl.sweep.cube.store import open_cube

PREDICT = ("predict", "--model", "alexnet", "--dataset", "imagenet", "--system", "abci")
ONE = (*PREDICT, "--strategy", "data", "--pe", "8", "--batch", "32")


def refused(ended: tuple[int, str, str], *parts: str) -> None:
    """Exit code 2 and one message with all of `parts` in it."""
    code, out, err = ended
    assert code == 2, err
    assert out == ""
    assert err.startswith("paradl: ")
    assert "Traceback" not in err
    assert err.count("\n") == 1, err
    for part in parts:
        assert part in err


# Of each kind one; others: tests/grids/test_spec.py, test_grid.py, test_axes.py.
BAD_SPECS = [
    ("model", ["./nowhere.yaml"], "nowhere.yaml"),
    ("dataset", None, "'alexnet'"),  # which brings none of its own
    ("strategy", ["data+filter:group=0"], "at least 1"),
    ("pe", None, "axes.pe"),
    ("batch", [float("nan")], "nan"),
    ("bandwidth", [1e9], "axes.bandwidth"),
]


@pytest.mark.parametrize(("key", "value", "name"), BAD_SPECS)
def test_a_bad_axis(key, value, name, spec_file, tmp_path, cli):
    axes = SMALL["axes"] | {key: value}
    path, store = spec_file({"oracle": "paper", "axes": axes}), tmp_path / "cube.zarr"
    refused(cli("sweep", path, store), name, str(tmp_path))
    assert not store.exists()
    assert list(tmp_path.iterdir()) == [Path(path)]


@pytest.mark.parametrize(
    ("more", "name"),
    [
        ({"outputs": ["limit", "limit"]}, "outputs"),
        ({"parameters": {"gama": 1}}, "'gamma'"),
        ({"models": ["alexnet"]}, "'model'"),
        ({"oracle": "paper", "axes": [1]}, "axes"),
    ],
)
def test_a_bad_spec(more, name, spec_file, tmp_path, cli):
    refused(cli("sweep", spec_file(SMALL | more), tmp_path / "cube.zarr"), name, "spec.yaml:")


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("axes:\n  pe: [1, 2\n", "spec.yaml:3: "),
        ("axes: {}\naxes: {}\n", "spec.yaml:2: "),
        ("", "spec.yaml"),
        ("- 1\n", "spec.yaml"),
    ],
)
def test_bad_yaml(text, where, spec_file, tmp_path, cli):
    refused(cli("sweep", spec_file(text), tmp_path / "cube.zarr"), where)


def test_a_line_is_named(spec_file, tmp_path, cli):
    text = yaml.safe_dump(SMALL).replace("- 8", "- 8x")
    line = text.splitlines().index("  pe:") + 1
    ended = cli("sweep", spec_file(text), tmp_path / "cube.zarr")
    refused(ended, f"spec.yaml:{line}", "8x")


def test_no_spec(tmp_path, cli):
    refused(cli("sweep", tmp_path / "no.yaml", tmp_path / "c"), "no.yaml")
    refused(cli("sweep", tmp_path, tmp_path / "c"), str(tmp_path))
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00\x01")
    refused(cli("sweep", tmp_path / "binary", tmp_path / "c"), "binary")


@pytest.mark.parametrize("command", ["status", "best"])
def test_no_cube(command, tmp_path, cli):
    refused(cli(command, tmp_path / "no.zarr"), "paradl sweep")
    assert not (tmp_path / "no.zarr").exists()
    (tmp_path / "notes.txt").write_text("mine")
    refused(cli(command, tmp_path), str(tmp_path))
    refused(cli(command, tmp_path / "notes.txt"), "notes.txt")


@pytest.mark.parametrize(
    ("sel", "message"),
    [
        ("modl=alexnet", "'model'"),
        ("model=alexnt", "'alexnet'"),
        ("pe=5", "nearest is 4"),
        ("pe=48", "ends at 12"),
        ("pe=x", "'x'"),
        ("pe", "--sel: "),
        ("=4", "--sel: "),
    ],
)
def test_a_bad_slice(sel, message, mixed_url, cli):
    refused(cli("limits", mixed_url, "--sel", sel), message)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--pe", "0"), "--pe: "),
        (("--model", "alexnt"), "'alexnet'"),
        (("--dataset", "mnist"), "'mnist'"),
        (("--system", "abcd"), "'abci'"),
        (("--strategy", "dat"), "--strategy: "),
        (("--set", "gamma"), "--set: "),
        (("--set", "gamma=2"), "--set: gamma: "),
        (("--set", "memory_capacity=32"), "--set: memory_capacity: 32 B"),
        (("--set", f"gamma={'9' * 9000}"), "--set: gamma: "),
        (("--model", "/dev/zero"), "--model: /dev/zero: "),
        (("--set", "gamma=1", "--set", "gamma=0.5"), "--set: "),
    ],
)
def test_a_bad_configuration(options, message, cli):
    refused(cli(*ONE, *options), message)


def test_a_model_without_a_dataset(cli):
    options = ("--model", "vgg16", "--system", "abci", "--strategy", "data")
    ended = cli("predict", *options, "--pe", 1, "--batch", 1)
    refused(ended, "dataset")


def test_usage(cli):
    for arguments in (
        ("sweep",),
        ("sweep", "a", "b", "--workers", "-1"),
        ("sweep", "a", "b", "--workers", "x"),
        (*ONE, "--format", "xml"),
        (*ONE, "--scaling", "strong"),
        ("predct",),
    ):
        code, out, err = cli(*arguments)
        assert (code, out) == (2, "")
        assert "Error: " in err or "No such command" in err


def test_too_many_workers(spec_file, tmp_path, cli):
    ended = cli("sweep", spec_file(SMALL), tmp_path / "cube.zarr", "--workers", 1_000_000)
    refused(ended, "GB of memory")
    assert not (tmp_path / "cube.zarr").exists()


def test_no_scheduler(spec_file, tmp_path, cli):
    ended = cli("sweep", spec_file(SMALL), tmp_path / "c", "--scheduler", "nonsense")
    refused(ended, "--scheduler nonsense: ")
    both = ("--scheduler", "tcp://127.0.0.1:9", "--workers", 2)
    refused(cli("sweep", spec_file(SMALL), tmp_path / "c", *both, "--dry-run"), "got both")
    assert not (tmp_path / "c").exists()


@pytest.mark.parametrize("flag", ["--quiet", "--overwrite"])
def test_a_dry_run_refuses_what_the_sweep_refuses(flag, spec_file, tmp_path, cli):
    path, full = spec_file(SMALL), tmp_path / "full"
    full.mkdir()
    for taken in (tmp_path / "a.zip", tmp_path / "file", full):
        (taken / "mine" if taken.is_dir() else taken).touch()
        assert cli("sweep", path, taken, flag)[0] == 2
        refused(cli("sweep", path, taken, flag, "--dry-run"), str(taken))
    refused(cli("sweep", path, tmp_path / "new.zip", flag, "--dry-run"), "new.zip")


def test_sweep_resume_refuse_overwrite(spec_file, tmp_path, cli):
    store = tmp_path / "cube.zarr"
    few = {"model": "alexnet", "dataset": "imagenet", "strategy": "serial"}
    axes = SMALL["axes"] | few
    path = spec_file({"oracle": "paper", "axes": axes})
    code, out, err = cli("sweep", path, store)
    assert (code, out) == (0, "")
    assert err.endswith(f"done: 8 cells in {store}\n")
    assert cli("sweep", path, store, "--quiet") == (0, "", "")
    other = spec_file({"oracle": "paper", "axes": axes | {"pe": [1, 2, 4, 16]}})
    message = "axes.pe: [1, 2, 4, 8]"
    refused(cli("sweep", other, store), message)
    refused(cli("sweep", other, store, "--dry-run"), message)
    assert cli("sweep", other, store, "--dry-run", "--overwrite")[0] == 0
    assert cli("sweep", other, store, "--quiet", "--overwrite") == (0, "", "")
    assert open_cube(str(store)).grid.axes["pe"].tolist() == [1, 2, 4, 16]


def test_limits_and_best_as_json_and_csv(small_url, cli):
    for command, key in (("limits", "largest_pe"), ("best", "rank")):
        code, out, err = cli(command, small_url, "--sel", "model=alexnet", "--format", "json")
        rows = json.loads(out, parse_constant=pytest.fail)
        assert (code, err) == (0, "")
        assert all(row["model"] == "alexnet" and key in row for row in rows)
        code, out, _ = cli(command, small_url, "--sel", "model=alexnet", "--format", "csv")
        assert len(list(csv.DictReader(io.StringIO(out)))) == len(rows)
        assert cli(command, small_url)[0] == 0


def test_a_slice_of_several_values(mixed_url, cli):
    _, out, _ = cli("limits", mixed_url, "--sel", "pe=8,4", "--sel", "pe=1", "--format", "json")
    assert {row["largest_pe"] for row in json.loads(out)} <= {1, 4, 8, None}


def test_nothing_feasible(mixed_url, cli):
    code, out, err = cli("best", mixed_url, "--sel", "strategy=serial", "--sel", "pe=12")
    assert code == 4
    assert "too_many_pes" in out
    assert "too_many_pes" in err


def test_nothing_that_can_exist(mixed_url, cli):
    slice_ = ("--sel", "model=alexnet", "--sel", "dataset=cosmoflow-128")
    code, _, err = cli("limits", mixed_url, *slice_)
    assert code == 4
    assert "alexnet" in err
    assert cli("best", mixed_url, *slice_)[0] == 4


def test_an_unfinished_cube_says_so(small_url, tmp_path, cli):
    url = tmp_path / "cube.zarr"
    shutil.copytree(small_url, url)
    unmark(url, 2)
    code, out, err = cli("limits", url, "--format", "json")
    assert code == 0
    assert json.loads(out)
    assert "3 of 4 blocks" in err


@pytest.mark.parametrize("command", ["predict", "explain"])
@pytest.mark.parametrize(
    ("options", "limit"),
    [
        (("--strategy", "serial"), "too_many_pes"),
        (("--batch", "100000", "--strategy", "data"), "memory; .* [0-9,]+ samples"),
        (("--dataset", "cosmoflow-128"), "incompatible"),
        # It is marked uneven, too, which forbids nothing.
        (("--strategy", "filter", "--pe", "7", "--batch", "100000"), "memory; .* [0-9,]+ samples"),
    ],
)
def test_a_configuration_that_is_not_feasible(command, options, limit, cli):
    for form in ("table", "json"):
        code, out, err = cli(command, *ONE[1:], *options, "--format", form)
        assert code == 4
        assert out
        assert re.search(f"not feasible: {limit}", err)
        assert "uneven" not in err
    assert json.loads(out)["feasible"] is False


def test_marks_forbid_nothing(cli):
    code, out, err = cli(*ONE, "--strategy", "filter", "--pe", "7", "--format", "json")
    assert (code, err) == (0, "")
    assert json.loads(out)["limit"] == ["uneven"]


@pytest.mark.parametrize("command", ["sweep", "status", "limits", "best"])
def test_a_store_without_a_name(command, spec_file, tmp_path, monkeypatch, cli):
    """As an unset variable of a shell gives it."""
    spec = [spec_file(SMALL)] if command == "sweep" else []
    empty = tmp_path / "empty"
    empty.mkdir()
    monkeypatch.chdir(empty)
    refused(cli(command, *spec, ""), "store: ")
    assert list(empty.iterdir()) == []


LONG = "a" * 300


@pytest.mark.parametrize(
    "command",
    [
        ("compare", LONG),
        ("calibrate", LONG, "--system", "abci", "-o", "mine.yaml"),
        ("surrogate", "check", LONG),
        ("import", "machine", LONG, "-o", "mine.yaml"),
        ("import", "model", f"{LONG}.onnx", "-o", "mine.yaml"),
        ("report", "--model", "alexnet", "--dataset", "imagenet", "-o", f"{LONG}.html"),
    ],
    ids=lambda command: command[0],
)
def test_a_path_that_no_file_can_have(command, cli):
    """As of a file in a folder that is closed to the user, the file system does not say whether it
    is there."""
    refused(cli(*command), f"{LONG[:200]}", "name too long")


def test_a_log_that_is_closed(tmp_path, monkeypatch, cli):
    (tmp_path / "mapping.yaml").write_text("files: '*.log'\n")
    log = tmp_path / "run.log"
    log.write_text("")
    opened = Path.open

    def refuse(path, *arguments, **settings):
        if path == log:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return opened(path, *arguments, **settings)

    monkeypatch.setattr(Path, "open", refuse)
    refused(cli("compare", tmp_path), f"{log}: Permission denied")


def test_a_name_that_a_terminal_cannot_print(tmp_path, monkeypatch, cli):
    model = tmp_path / "mine.yaml"
    lines = "name: größe\nrank: 2\ncustomary: cifar10\nlayers: [{fc: targets}]\n"
    model.write_text(lines, encoding="utf-8")
    shown = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(shown, "ascii"))
    assert cli("list", "models", model, "--format", "csv")[0] == 0
    assert shown.getvalue().splitlines()[1].startswith(rb"gr\xf6\xdfe,")


def test_a_reader_that_has_seen_enough(monkeypatch):
    """Output that fits the buffer fails when it is flushed, at the end."""
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)
    arguments = [*COMMAND, "--version"]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as run:
        assert run.stdout is not None
        assert run.stderr is not None
        run.stdout.close()
        assert run.stderr.read() == b""


@pytest.mark.parametrize("redirection", [">/dev/full", ">&-", "2>&-"])
def test_an_output_that_takes_nothing(redirection):
    """As a full disk, and as a service that gives its processes none."""
    command = f"{shlex.join([*COMMAND, 'list', 'strategies', '--json'])} {redirection}"
    ended = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    full = redirection == ">/dev/full"
    assert ended.returncode == full
    assert ended.stderr.count("\n") == full
    assert bool(ended.stdout) == (redirection == "2>&-")


INTERRUPTED = """
import os, runpy, signal, sys

imported = sys.argv.pop(1)

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == imported:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Finder())
runpy.run_module("paradl", run_name="__main__")
"""


@pytest.mark.parametrize("imported", ["typer", "zarr"])
def test_ctrl_c_while_importing(imported, small_url):
    """Of the command line itself, and of what a question takes."""
    command = [sys.executable, "-c", INTERRUPTED, imported, "best", small_url]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "")


def test_little_address_space():
    """JAX's libraries cannot be mapped then, and Python raises an ImportError."""
    limited = f"ulimit -v 380000; exec {sys.executable} -m paradl {shlex.join(ONE)}"
    ended = subprocess.run(["bash", "-c", limited], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr.count("\n")) == (1, "", 1)
    assert ended.stderr.startswith("paradl: too little memory")


def test_a_slice_that_is_not_computed_is_no_slice_without_an_answer(tmp_path, cli):
    """A page of the rest says that it is not all; what is asked of the missing block fails."""
    url = str(tmp_path / "cube.zarr")
    axes = {**SMALL["axes"], "dataset": "imagenet", "model": ["alexnet", "vgg16"]}
    axes["strategy"] = "data"
    paradl.run({"oracle": "paper", "axes": axes}, url)
    unmark(url, 1)
    code, out, err = cli("pareto", url, "--sel", "model=vgg16")
    assert (code, out) == (1, "")
    assert "1 of 2 blocks" in err
    code, _, err = cli("report", url, "-o", tmp_path / "page.html")
    assert (code, "1 of 2 blocks" in err) == (0, True)
    assert "1 of 2 blocks" in (tmp_path / "page.html").read_text()
