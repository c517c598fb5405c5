"""Pages on machines and networks of one's own: their commands, from their files to answers.

What a page prints is what its commands print: the same words, and figures within a quarter,
since calibrations move them. docs/your-runs.md is compared to the letter (docs/console.py --check).
"""

import json
import re
import runpy
import shlex
import shutil
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

from paradl.sweep.importing.machines import device_times

DOCS = Path(__file__).parents[3] / "docs"
NUMBER = re.compile(r"(?<![\w.])-?\d[\d,]*\.?\d*(?:e[+-]?\d+)?")


@pytest.fixture
def folder(tmp_path, monkeypatch, request):
    shutil.copytree(DOCS / "files" / request.param, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setattr(device_times, "PATIENCE", 0.0)
    monkeypatch.setattr(device_times, "SIZES", (256,))
    monkeypatch.setattr(device_times, "CHANNELS", (16,))
    return tmp_path


def read_section(page, heading):
    """The text below a heading, to the next one."""
    text = (DOCS / f"{page}.md").read_text()
    assert heading in text
    return re.split(r"^#+ ", text.partition(f" {heading}\n")[2], maxsplit=1, flags=re.M)[0]


def list_commands(section):
    """Commands of a section, each with the lines that it prints on the page; what runs on a cluster
    is left out."""
    for kind, block in re.findall(r"```(console|sh)\n(.*?)```", section, re.S):
        entries = re.split(r"^\$ ", block, flags=re.M) if kind == "console" else block.splitlines()
        for entry in entries:
            command, _, printed = entry.strip("\n").partition("\n")
            if command.startswith(("paradl", "cat", "python")):
                yield command, [line for line in printed.splitlines() if line.strip()]


def run(command, cli):
    """What a command prints, but for the end of its pipe."""
    head, *rest = shlex.split(command.partition(" | ")[0])
    match head:
        case "cat":
            return Path(*rest).read_text()
        case "python":
            runpy.run_path(rest[0])
            return ""
        case "paradl":
            target = rest.index(">") if ">" in rest else len(rest)
            code, out, err = cli(*rest[:target])
            assert code == 0, err
            if target < len(rest):
                Path(rest[-1]).write_text(out)
            return out
    raise AssertionError(command)


def expect_printed(line, out):
    """A line of the page is one of those printed."""
    words = NUMBER.sub("#", line).split()
    for other in out.splitlines():
        pairs = zip(NUMBER.findall(line), NUMBER.findall(other), strict=False)
        if NUMBER.sub("#", other).split() == words and all(
            float(a.replace(",", "")) == pytest.approx(float(b.replace(",", "")), rel=0.25)
            for a, b in pairs
        ):
            return
    raise AssertionError(f"not printed: {line}\n{out}")


def write_onnx(folder):
    """A convolution, and the header of its checkpoint."""
    onnx = import_module("onnx")
    helper, kind = onnx.helper, onnx.TensorProto.FLOAT
    weight = helper.make_tensor("w", kind, [4, 3, 3, 3], [0.0] * 108)
    entered, left = (
        helper.make_tensor_value_info(name, kind, [1, channels, size, size])
        for name, channels, size in (("x", 3, 224), ("y", 4, 222))
    )
    nodes = [helper.make_node("Conv", ["x", "w"], ["y"], kernel_shape=[3, 3])]
    graph = helper.make_graph(nodes, "small", [entered], [left], [weight])
    onnx.save(helper.make_model(graph), folder / "network.onnx")
    header = json.dumps({"w": {"dtype": "F32", "shape": [4, 3, 3, 3]}}).encode()
    stored = len(header).to_bytes(8, "little") + header
    (folder / "model.safetensors").write_bytes(stored)


needs_torch = pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")


@pytest.mark.parametrize(
    ("folder", "headings"),
    [
        ("your-machine", ("From logs",)),
        ("your-machine", ("By hand",)),
        pytest.param("your-model", ("A PyTorch module", "Times from a device"), marks=needs_torch),
    ],
    indirect=["folder"],
)
def test_commands_print_what_the_page_shows(folder, headings, cli, request):
    page = request.node.callspec.params["folder"]
    for heading in headings:
        for command, printed in list_commands(read_section(page, heading)):
            out = run(command, cli)
            for line in printed:
                expect_printed(line, out)


@pytest.mark.skipif(find_spec("onnx") is None, reason="the extra 'onnx' is missing")
@pytest.mark.parametrize("folder", ["your-model"], indirect=True)
def test_files_of_other_programs(folder, cli):
    write_onnx(folder)
    commands = [*list_commands(read_section("your-model", "ONNX files, checkpoints"))]
    assert len(commands) == 2
    for command, _ in commands:
        run(command, cli)


def test_files_of_the_page_are_those_it_shows():
    """The mapping and the table of runs."""
    text = (DOCS / "your-runs.md").read_text()
    for kind, name in (("yaml", "runs/mapping.yaml"), ("text", "runs.csv")):
        (block,) = re.findall(rf"```{kind}\n(.*?)```", text, re.S)
        assert block == (DOCS / "files" / "your-runs" / name).read_text()
