"""Modules that people write: parameters exact, operations as PyTorch's own counter has them.

The modules are in data/networks.py.txt, imported by name from the folder that they stand in. They
need PyTorch alone, so that a build without CUDA is enough.
"""

import json
import shutil
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

DATA = Path(__file__).parent / "data"
pytestmark = pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    shutil.copy(DATA / "networks.py.txt", tmp_path / "networks.py")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "networks", raising=False)
    yield tmp_path
    sys.modules.pop("networks", None)


def count(folder, name, shape):
    """Parameters, and multiply-accumulates of one sample by PyTorch's counter."""
    torch = import_module("torch")
    counter = import_module("torch.utils.flop_counter").FlopCounterMode(display=False)
    names: dict[str, object] = {"__name__": "copy"}
    exec((folder / "networks.py").read_text(), names)
    factory = names[name]
    assert callable(factory)
    module = factory().eval()
    parameters = sum(value.numel() for value in module.parameters())  # ties break on "meta"
    module.to("meta")
    kind = torch.int64 if len(shape) == 1 else torch.float32
    with counter:
        module(torch.zeros(1, *shape, device="meta", dtype=kind))
    return parameters, counter.get_total_flops() / 2


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("gpt", (64,)),
        ("unet", (3, 32, 32)),
        ("lstm", (20,)),
        ("experts", (20,)),
        ("odd", (3, 16, 16)),
        ("folded", (3, 32, 32)),
        ("volumes", (1, 8, 8, 8)),
        ("sound", (4, 64)),
    ],
)
def test_parameters_and_operations(name, shape, folder, cli):
    parameters, macs = count(folder, name, shape)
    sizes = ",".join(map(str, shape))
    code, out, err = cli(
        *("import", "model", f"networks:{name}", "--shape", sizes),
        *("-o", "mine.yaml", "--format", "json"),
    )
    assert code == 0, err
    answer = json.loads(out)
    assert answer["parameters"] == parameters
    assert answer["macs"] == pytest.approx(macs, rel=0.01)


def test_a_recurrent_layer_without_a_word_counts_its_matrices(folder, cli):
    """PyTorch's counter has none of it."""
    code, out, err = cli(
        *("import", "model", "networks.py:gru", "--shape", 20, "-o", "mine.yaml"),
        *("--format", "json"),
    )
    assert code == 0, err
    matrices = 3 * 64 * (32 + 64) + 3 * 64 * (64 + 64)
    assert json.loads(out)["macs"] == 20 * (matrices + 64 * 500)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("ffts", "fft"),
        ("deciding", "forward pass"),
        ("number", "module"),
        ("leaving", "SystemExit"),
    ],
)
def test_what_is_not_known_is_named(name, reason, folder, cli):
    code, out, err = cli(
        "import", "model", f"networks:{name}", "--shape", "3,8,8", "-o", "mine.yaml"
    )
    assert (code, out) == (2, "")
    assert reason in err
    assert len(err.splitlines()) == 1
    assert not (folder / "mine.yaml").exists()
