"""Modules that people write: parameters exact, operations as PyTorch's own counter has them.

The modules are in data/networks.py.txt, imported by name from the folder that they stand in. They
need PyTorch alone, so that a build without CUDA is enough.
"""

import json
import shutil
import sys
import warnings
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


def build(folder, name):
    """A module of its own, that nothing imports."""
    names: dict[str, object] = {"__name__": "copy"}
    exec((folder / "networks.py").read_text(), names)
    factory = names[name]
    assert callable(factory)
    return factory().eval()


def count(folder, name, shape):
    """Parameters, and multiply-accumulates of one sample by PyTorch's counter."""
    torch = import_module("torch")
    counter = import_module("torch.utils.flop_counter").FlopCounterMode(display=False)
    module = build(folder, name)
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


@pytest.mark.skipif(find_spec("onnx") is None, reason="the extra 'onnx' is missing")
@pytest.mark.parametrize("name", ["gpt", "lstm", "gru"])
def test_a_text_network_by_onnx_is_the_traced_one(name, folder, cli):
    """As PyTorch's exporter writes it, of any batch and length, parameters drawn as in training."""
    torch = import_module("torch")
    module = build(folder, name)
    for value in module.parameters():
        torch.nn.init.normal_(value)
    tokens = torch.zeros(2, 24, dtype=torch.int64)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            *(module, (tokens,), "net.onnx"),
            input_names=["tokens"],
            dynamic_axes={"tokens": {0: "batch", 1: "length"}},
            dynamo=False,
        )
    answers = []
    for source in ("net.onnx", f"networks:{name}"):
        code, out, err = cli(
            *("import", "model", source, "--shape", 20, "-o", "mine.yaml", "--format", "json")
        )
        assert code == 0, err
        answers.append(json.loads(out))
    for key in ("parameters", "macs"):
        assert answers[0][key] == answers[1][key]


@pytest.mark.parametrize(
    ("name", "parameters", "macs"),
    [
        # Two experts' matrices for each token, of four that are held; PyTorch's counter has none.
        ("grouped", 3200 + 32 * 4 + 4 + 4 * 2 * 32 * 64, 20 * (32 * 4 + 2 * 2 * 32 * 64)),
        # Nine operations for each number of the state, whatever the loop's are.
        ("scanned", 3200 + 660 + 160 + 256 + 32, 20 * (32 * 20 + 4 * 32) + 20 * 32 * 8 * 9 / 2),
        ("written", 3200 + 32 * 32 + 32, 20 * 32 * 32 + 21 * 32 * 100),
    ],
)
def test_operators_of_networks_as_libraries_write_them(name, parameters, macs, folder, cli):
    code, out, err = cli(
        *("import", "model", f"networks:{name}", "--shape", 20, "-o", "mine.yaml"),
        *("--format", "json"),
    )
    assert code == 0, err
    answer = json.loads(out)
    assert (answer["parameters"], answer["macs"]) == (parameters, macs)
    assert answer["layers"] < 30  # and not some for each position


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
