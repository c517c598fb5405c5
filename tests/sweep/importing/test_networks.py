"""Networks from PyTorch and ONNX: parameters exact, operations as an independent counter has them.

Skipped where the extras are not installed; docs/your-model.md has the table of networks.
"""

import json
import math
import os
import warnings
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from paradl.grids.library import find
from paradl.grids.models.architecture import Architecture
from paradl.grids.reading.errors import InputError
from paradl.sweep.importing.machines.device_times import write_model
from paradl.sweep.importing.networks.graph import TracedGraph, finish
from paradl.sweep.importing.networks.source import import_network

needs_torch = pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")
needs_torchvision = pytest.mark.skipif(
    find_spec("torchvision") is None, reason="torch and torchvision are not installed"
)
needs_onnx = pytest.mark.skipif(find_spec("onnx") is None, reason="the extra 'onnx' is missing")


def import_torchvision(name):
    return import_network(f"torchvision.models:{name}", "3,224,224", name, False)


def test_a_graph_becomes_the_steps_of_a_file(tmp_path):
    """A residual block by hand, whose branches read what stands further up."""
    graph = TracedGraph((3, 8, 8))
    x = graph.enter((2, 3, 8, 8))
    settings = {"filters": 4, "kernel": 3, "padding": 1}
    y = graph.add("conv", settings, "first", [x], (2, 4, 8, 8), (4, 8, 8))
    z = graph.add("relu", {}, "act", [y], y.shape, y.sizes)
    total = graph.join("residual", "sum", [z, y], y.shape)
    gate = graph.add("adaptive_avgpool", {"extent": 1}, "pool", [total], (2, 4, 1, 1), (4, 1, 1))
    graph.join("multiply", "scale", [total, gate], total.shape)
    network = finish(graph, "mine", "", "", 3 * 4 * 9 + 4, allow=False)
    assert network.table.macs == 3 * 4 * 9 * 64
    assert network.table.kinds == ("conv", "relu", "add", "avgpool", "multiply")
    assert network.table.inputs == ((-1,), (0,), (1, 0), (2,), (2, 3))
    (tmp_path / "mine.yaml").write_text(network.text)
    again = find("model", str(tmp_path / "mine.yaml"), tmp_path)
    assert isinstance(again, Architecture)
    assert again.layers_for((3, 8, 8), None).parameters == 112


@pytest.mark.parametrize("name", ["1e5", "12e34", "010", "1:30"])
def test_a_name_like_a_number(name, tmp_path):
    """It is the name of the file that is written, and of one that is timed."""
    graph = TracedGraph((3, 8, 8))
    graph.add("relu", {}, name, [graph.enter((2, 3, 8, 8))], (2, 3, 8, 8), (3, 8, 8))
    path = tmp_path / "mine.yaml"
    path.write_text(finish(graph, name, "", "", None, allow=False).text)
    model = find("model", str(path), tmp_path)
    assert isinstance(model, Architecture)
    write_model(model, path)
    assert find("model", str(path), tmp_path).name == name


def test_an_unknown_operator_is_refused_with_its_share():
    graph = TracedGraph((3, 8, 8))
    x = graph.enter((2, 3, 8, 8))
    y = graph.count("odd", [x], x.shape, x.sizes)
    graph.unknown["odd"] += y.items
    with pytest.raises(InputError, match=r"odd \(1e\+02 % of the bytes\)"):
        finish(graph, "mine", "", "", None, allow=False)
    assert len(finish(graph, "mine", "", "", None, allow=True).table) == 1


def test_other_parameters_than_the_source_has_are_refused():
    graph = TracedGraph((3, 8, 8))
    x = graph.enter((2, 3, 8, 8))
    graph.add("relu", {}, "act", [x], x.shape, x.sizes)
    with pytest.raises(InputError, match="5 parameters"):
        finish(graph, "mine", "", "", 5, allow=False)


@pytest.mark.parametrize(
    ("source", "shape"),
    [
        ("nothing", None),
        ("there.is.none:here", "3,8,8"),
        ("math:pi", "3,8,8"),
        ("torchvision.models:resnet18", None),
        ("math:floor", "3,wide"),
        ("no.onnx", None),
    ],
)
def test_a_wrong_source_is_one_message(source, shape, cli, tmp_path):
    options = () if shape is None else ("--shape", shape)
    output = tmp_path / "mine.yaml"
    code, out, err = cli("import", "model", source, *options, "-o", output)
    assert (code, out) == (2, "")
    assert len(err.splitlines()) == 1
    assert not output.exists()


def count_macs(name):
    """Multiply-accumulates of a torchvision network by PyTorch's own counter, and parameters."""
    torch = import_module("torch")
    counter = import_module("torch.utils.flop_counter").FlopCounterMode(display=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = getattr(import_module("torchvision.models"), name)().eval().to("meta")
    with counter:
        module(torch.empty(1, 3, 224, 224, device="meta"))
    return counter.get_total_flops() / 2, sum(value.numel() for value in module.parameters())


@needs_torchvision
@pytest.mark.parametrize("name", ["resnet18", "squeezenet1_1", "mobilenet_v2", "vit_b_16"])
def test_parameters_and_operations_are_those_of_the_module(name):
    network = import_torchvision(name)
    macs, parameters = count_macs(name)
    assert network.table.parameters == parameters
    assert network.table.macs == pytest.approx(macs, rel=0.01)


@needs_torchvision
@pytest.mark.parametrize("name", ["mobilenet_v2", "vit_b_16"])
def test_layers_are_those_of_the_catalogue(name):
    imported = import_torchvision(name).table
    model = find("model", name, Path())
    assert isinstance(model, Architecture)
    ours = model.layers_for((3, 224, 224), 1000)
    assert (imported.parameters, imported.macs) == (ours.parameters, ours.macs)
    assert imported.kept_items.sum() == pytest.approx(ours.kept_items.sum(), rel=0.02)


@needs_torch
def test_branches_and_groups_and_gates_cross(tmp_path):
    nn = import_module("torch.nn")

    def forward(block, x):
        y = block.norm(block.wide(x)).relu() + x
        joined = import_module("torch").cat([y, y * y.mean((2, 3), keepdim=True).sigmoid()], 1)
        return block.up(joined)

    block = type("Block", (nn.Module,), {"forward": forward})()
    block.wide = nn.Conv2d(8, 8, 3, padding=2, dilation=2, groups=8, bias=False)
    block.up = nn.ConvTranspose2d(16, 4, 2, stride=2)
    block.norm = nn.BatchNorm2d(8)
    from paradl.sweep.importing.networks.torch_module import trace_torch

    network = trace_torch(block, (8, 16, 16))
    assert network.table.parameters == 8 * 9 + 16 + 16 * 4 * 4 + 4
    assert network.table.macs == 8 * 9 * 256 + 16 * 4 * 4 * 256
    kinds = ("conv", "norm", "relu", "add", "avgpool", "sigmoid", "multiply", "concat")
    assert network.table.kinds == (*kinds, "transposed_conv")
    assert network.table.kernel[0].tolist() == [1, 5, 5]  # with the gaps of its dilation
    assert network.table.inputs[3] == (2, -1)


@needs_torch
def test_tied_weights_of_a_language_model_count_once():
    nn: Any = import_module("torch.nn")

    def forward(model, tokens):
        return model.out(model.encoder(model.table(tokens)))

    model = type("Model", (nn.Module,), {"forward": forward})()
    model.table, model.out = nn.Embedding(100, 16), nn.Linear(16, 100, bias=False)
    layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
    model.encoder = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
    model.out.weight = model.table.weight

    from paradl.sweep.importing.networks.torch_module import trace_torch

    table = trace_torch(model, (8,)).table
    block = 4 * (16 + 1) * 16 + 2 * 2 * 16 + 16 * 32 + 32 + 32 * 16 + 16
    assert table.parameters == 100 * 16 + block
    assert table.macs == 8 * (4 * 16**2 + 2 * 16 * 32) + 2 * 8**2 * 16 + 8 * 16 * 100
    assert table.kinds.count("matmul") == 2


def make_weight(name, *dims):
    onnx = import_module("onnx")
    return onnx.helper.make_tensor(name, onnx.TensorProto.FLOAT, dims, [0.0] * math.prod(dims))


@needs_onnx
@pytest.mark.parametrize(
    ("settings", "extent"),
    [
        ({"pads": [1, 1, 1, 1], "output_padding": [1, 1]}, 32),
        ({"output_shape": [31, 31]}, 31),
        ({"auto_pad": "SAME_UPPER"}, 32),
        ({"pads": [0, 0, 1, 1]}, 32),
    ],
)
def test_a_transposed_convolution_gives_the_sizes_of_its_source(settings, extent, tmp_path):
    """Of stride 2, 16 rows become 31, and 32 with a row more."""
    onnx = import_module("onnx")
    helper, kind = onnx.helper, onnx.TensorProto.FLOAT
    window = {"kernel_shape": [3, 3], "strides": [2, 2], **settings}
    graph = helper.make_graph(
        [helper.make_node("ConvTranspose", ["x", "w"], ["y"], **window)],
        "up",
        [helper.make_tensor_value_info("x", kind, [1, 3, 16, 16])],
        [helper.make_tensor_value_info("y", kind, None)],
        [make_weight("w", 3, 4, 3, 3)],
    )
    path = tmp_path / "up.onnx"
    onnx.save(helper.make_model(graph), path)
    assert import_network(str(path), None, "up", False).table.y.tolist() == [4 * extent**2]


@needs_onnx
def test_an_onnx_file(tmp_path, cli):
    onnx = import_module("onnx")
    helper, kind = onnx.helper, onnx.TensorProto.FLOAT
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["c"], pads=[1, 1, 1, 1], kernel_shape=[3, 3]),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("Add", ["r", "c"], ["s"]),
        helper.make_node("MaxPool", ["s"], ["m"], kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("GlobalAveragePool", ["m"], ["g"]),
        helper.make_node("Flatten", ["g"], ["f"]),
        helper.make_node("Gemm", ["f", "v", "d"], ["y"], transB=1),
    ]
    graph = helper.make_graph(
        nodes,
        "small",
        [helper.make_tensor_value_info("x", kind, ["batch", 3, 8, 8])],
        [helper.make_tensor_value_info("y", kind, ["batch", 10])],
        [make_weight(*row) for row in (("w", 4, 3, 3, 3), ("b", 4), ("v", 10, 4), ("d", 10))],
    )
    path = tmp_path / "small.onnx"
    onnx.save(helper.make_model(graph), path)
    network = import_network(str(path), None, "small", False)
    assert network.table.parameters == 4 * 27 + 4 + 40 + 10
    assert network.table.macs == 4 * 27 * 64 + 40
    assert network.table.kinds == ("conv", "relu", "add", "maxpool", "avgpool", "fc")
    path.write_bytes(path.read_bytes()[:100])
    code, out, _ = cli("import", "model", path, "-o", tmp_path / "mine.yaml")
    assert (code, out) == (2, "")
    assert not (tmp_path / "mine.yaml").exists()


def write_header(path, header):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text)
    return path


def test_a_checkpoint_is_counted_by_its_header(tmp_path, cli):
    shapes = {"features.weight": [25_557_032 - 10], "bias": [2, 5], "norm.running_mean": [7]}
    header: dict[str, object] = {name: {"shape": shape} for name, shape in shapes.items()}
    path = write_header(tmp_path / "model.safetensors", header | {"__metadata__": {"a": "b"}})
    code, out, err = cli("import", "check", "resnet50", path)
    assert code == 0, err
    assert "25,557,032" in out
    more = write_header(tmp_path / "more.safetensors", {"head": {"shape": [3]}})
    assert cli("import", "check", "resnet50", path, more)[0] == 3
    assert cli("import", "check", "resnet50", path, path)[0] == 2


HEADERS = {
    **{"nested": b"[" * 10_000, "a list": b"[]", "no mapping": {"a": 1}, "cut off": b"{"},
    **{"negative": {"a": {"shape": [-1]}}, "a flag": {"a": {"shape": [True]}}},
    "300 sizes of 2^62": {"a": {"shape": [2**62] * 300}},
    "too many items": {f"a{number}": {"shape": [10**18]} for number in range(20)},
    "30,000 sizes of 400 digits": b'{"a": {"shape": [' + (b"9" * 400 + b",") * 30_000 + b"1]}}",
    "17 MB": b'{"a": [' + b"[]," * (17 * 2**20 // 3) + b"[]]}",
}


@pytest.mark.parametrize("header", HEADERS.values(), ids=HEADERS)
def test_a_damaged_header_is_one_message(header, tmp_path, cli):
    path = write_header(tmp_path / "model.safetensors", header)
    code, out, err = cli("import", "check", "resnet50", path)
    assert (code, out) == (2, "")
    assert len(err.splitlines()) == 1


def test_a_header_that_is_cut_off(tmp_path, cli):
    path = write_header(tmp_path / "model.safetensors", {"a": {"shape": [3]}})
    path.write_bytes((100).to_bytes(8, "little") + path.read_bytes()[8:])
    code, _, err = cli("import", "check", "resnet50", path)
    assert (code, "cut off" in err) == (2, True)


@pytest.mark.parametrize(
    "command",
    [
        ("import", "check", "resnet50", "FILE"),
        ("import", "check", "./FILE", "x.safetensors"),
        ("import", "model", "FILE.onnx", "-o", "mine.yaml"),
        ("import", "machine", "FILE", "-o", "mine.yaml"),
        ("compare", "FILE"),
        ("sweep", "FILE", "cube.zarr"),
    ],
)
@pytest.mark.parametrize("kind", ["pipe", "device", "folder"])
def test_what_is_no_regular_file_is_refused(command, kind, tmp_path, monkeypatch, cli):
    """A pipe would be waited for, and a device may be endless."""
    monkeypatch.chdir(tmp_path)
    for name in ("FILE", "FILE.onnx"):
        path = tmp_path / name
        if kind == "pipe":
            os.mkfifo(path)
        elif kind == "folder":
            path.mkdir()
        else:
            path.symlink_to("/dev/zero")
    code, out, err = cli(*command)
    assert (code, out) == (2, "")
    assert len(err.splitlines()) == 1
    assert not (tmp_path / "mine.yaml").exists()
