"""docs/import.md, from an empty folder to an answer: its commands on small logs, its Python."""

import re
import shlex
import shutil
from importlib.util import find_spec
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[3] / "docs" / "import.md").read_text()
DATA = Path(__file__).parent / "data"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def list_commands(heading):
    """The page's own paradl commands below a heading."""
    section = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return re.findall(r"^paradl (.*)$", section, re.M)


def run(paradl, command):
    code, out, err = paradl(*shlex.split(command))
    assert code == 0, err
    return out


def test_a_machine_from_logs(folder, paradl):
    for log in DATA.glob("all_*.txt"):
        shutil.copy(log, folder)
    answers = [run(paradl, command) for command in list_commands("A machine from logs")]
    assert len(answers) == 2
    assert "all_reduce" in answers[0]
    assert "feasible" in answers[1]


def test_python_of_the_page(folder):
    (block,) = re.findall(r"```python\n(.*?)```", PAGE, re.S)
    names: dict[str, object] = {"__name__": "page"}
    exec(block, names)
    assert "linear" in (folder / "mine.yaml").read_text()


@pytest.mark.skipif(find_spec("torchvision") is None, reason="torchvision is not installed")
def test_a_network_from_code(folder, paradl):
    commands = list_commands("A network from code")
    run(paradl, commands[0])
    assert "11,689,512" in run(paradl, commands[-1])


def test_runs_from_logs(folder, paradl):
    (mapping,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.S)
    (folder / "runs").mkdir()
    (folder / "runs" / "mapping.yaml").write_text(mapping)
    line = "elapsed time per iteration (ms): 262.0 | global batch size: {} |\n"
    for name, batch in (("small.log", 256), ("large.log", 2048)):
        (folder / "runs" / name).write_text(6 * line.format(batch))
    out = run(paradl, list_commands("Runs from logs")[0])
    assert "resnet50" in out
