"""Times of this device: what is timed, and that a profile is used. No figure is expected."""

import json

import numpy as np
import pytest

from paradl.grids.library import find
from paradl.grids.models.architecture import Architecture
from paradl.sweep.importing.machines import device_times
from paradl.sweep.importing.machines.device_times import probe_device

MODEL = """
name: small
rank: 2
layers:
  - conv: {filters: 8, kernel: 3, stride: 2, padding: 1, groups: 1}
  - relu
  - conv: {filters: 8, kernel: 3, padding: 2, dilation: 2, groups: channels}
  - transposed_conv: {filters: 4, kernel: 2, stride: 2}
  - maxpool: 2
  - fc: targets
"""


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(device_times, "PATIENCE", 0.0)
    monkeypatch.setattr(device_times, "SIZES", (32,))
    monkeypatch.setattr(device_times, "CHANNELS", (16,))


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "small.yaml"
    path.write_text(MODEL)
    return path


LAYERS = ["conv1", "relu1", "conv2", "transposed_conv1", "maxpool1", "fc1"]


def test_convolutions_make_the_rows_of_the_table(model, tmp_path):
    """The shapes that are timed are those of the network: what JAX makes of them, too."""
    network = find("model", str(model), tmp_path)
    assert isinstance(network, Architecture)
    table = network.layers_for((3, 16, 16), 10)
    for row, made in ((0, (2, 8, 8, 8)), (2, (2, 8, 8, 8)), (3, (2, 8, 8, 8))):
        function, shapes = device_times._make_convolution(table, row, 2)
        assert function(*(np.ones(shape, "float32") for shape in shapes)).shape == made
        assert np.prod(shapes[1]) == table.w[row]


def test_a_probe_measures_all():
    rows = probe_device("fp32", lambda text: None)
    names = [row["measured"].split()[0] for row in rows]
    assert names == ["product", "convolution", "copy", "launch"]
    assert all(row["seconds"] > 0 for row in rows)


def test_a_profile_is_used(model, tmp_path, cli):
    output = tmp_path / "timed.yaml"
    options = ("--dataset", "cifar10", "--device", "h100", "--batch", 2, "--precision", "fp32")
    code, out, err = cli("probe", "model", model, *options, "-o", output, "--format", "json")
    assert code == 0, err
    rows = json.loads(out)
    assert [row["layer"] for row in rows] == LAYERS
    assert all(row["seconds"] > 0 for row in rows)
    timed = find("model", str(output), tmp_path)
    assert isinstance(timed, Architecture)
    (profile,) = timed.profiles
    assert (profile.device, profile.batch, profile.precision) == ("h100", 2, "fp32")
    assert profile.shape == (3, 32, 32)


def test_a_bad_name_of_the_device_is_refused_at_once(model, tmp_path, cli, monkeypatch):
    monkeypatch.setattr(device_times, "time_calls", None)
    options = ("--dataset", "cifar10", "--device", "", "-o", tmp_path / "timed.yaml")
    code, _, err = cli("probe", "model", model, *options)
    assert code == 2
    assert "--device" in err
