"""ONNX files as exporters write them, hostile ones, and mutations: read right, or one message.

Skipped where the extra 'onnx' is missing.
"""

import itertools
import math
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest

onnx: Any = pytest.importorskip("onnx")

from broken_files import Case, fault, list_readers  # noqa: E402
from onnx_files import NETWORKS, make_onnx, mutate_onnx  # noqa: E402

from paradl.grids.library import find  # noqa: E402
from paradl.grids.models.architecture import Architecture  # noqa: E402
from paradl.grids.models.layers import LayerTable  # noqa: E402
from paradl.sweep.importing.networks.source import import_network  # noqa: E402

MUTATIONS = 150
SIZE = 8  # of a sample's 3 x 8 x 8 items


def read(path: Path, shape: str | None = None) -> LayerTable:
    return import_network(str(path), shape, "net", False).table


def write(
    path: Path,
    nodes: Sequence[Any],
    *,
    sizes: Sequence[int | str] = ("N", 3, SIZE, SIZE),
    weight: Sequence[int] | None = None,
    functions: Sequence[Any] = (),
) -> Path:
    """Write a graph from x, of these sizes, to y. weight: sizes of w."""
    helper, kind = onnx.helper, onnx.TensorProto.FLOAT
    weights = [] if weight is None else [onnx.TensorProto(name="w", data_type=kind, dims=weight)]
    ends = [helper.make_tensor_value_info(*end) for end in (("x", kind, sizes), ("y", kind, None))]
    graph = helper.make_graph(nodes, "net", ends[:1], ends[1:], weights)
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("mine", 1)]
    model = helper.make_model(graph, functions=functions, opset_imports=opsets, ir_version=9)
    path.write_bytes(model.SerializeToString())
    return path


def node(kind: str, inputs: str = "x", outputs: str = "y", **attributes: Any) -> Any:
    return onnx.helper.make_node(kind, inputs.split(), outputs.split(), **attributes)


# Parameters and multiply-accumulates, by hand.
EXPECTED = {
    "plain": (4 * 27 + 4 + 2 * 4 + 4 * 10 + 10, 4 * 27 * 64 + 40),
    "view": (8 * 27 + 8 * 10 + 10, 8 * 27 * 64 + 80),
    "constants": (4 * 3 + 4 * 9 + 6 * 4, 4 * 3 * 64 + 4 * 9 * 16 + 6 * 4 * 16),
    "up": (6 * 4 * 4, 6 * 4 * 4 * 10 * 6),
    "text": (50 * 16 + 32 * 16 + 3 * 16**2 + 5 * 16, 8 * (3 * 16**2 + 16 * 50 + 2 * 8 * 16)),
    "states": (
        50 * 16 + 2 * 48 * (16 + 12 + 2) + 24 * 50,
        8 * (2 * 48 * (16 + 12) + 24 * 50),
    ),
    "calls": (4 * 9, 4 * 9 * 64),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_what_exporters_write_is_read(name, tmp_path):
    """Sizes that are computed, weights in constants, calls of functions, padding on one side."""
    path = tmp_path / "net.onnx"
    path.write_bytes(make_onnx(name).SerializeToString())
    table = read(path)
    assert (table.parameters, table.macs) == EXPECTED[name]


@pytest.mark.parametrize(
    ("pads", "stride", "layers"),
    [
        ([0, 0, 1, 1], 2, 1),  # the same sizes as with a row on both sides
        ([1, 1, 0, 0], 2, 1),
        ([0, 0, 2, 2], 1, 1),  # 'same'
        ([0, 2, 3, 0], 3, 1),  # of each dimension another one
        ([0, 0, 1, 1], 1, 2),  # rows are added by a layer before it
    ],
)
def test_a_window_padded_on_one_side_has_the_sizes_of_its_source(pads, stride, layers, tmp_path):
    window = node("Conv", "x w", pads=pads, strides=[stride, stride])
    table = read(write(tmp_path / "net.onnx", [window], weight=[4, 3, 3, 3]))
    rows = [(SIZE + a + b - 3) // stride + 1 for a, b in zip(pads[:2], pads[2:], strict=True)]
    assert (table.y[-1], table.macs) == (4 * math.prod(rows), 4 * 27 * math.prod(rows))
    assert (len(table), table.parameters) == (layers, 4 * 27)


def test_sizes_that_a_file_leaves_open_are_given(tmp_path, cli):
    sizes: list[int | str] = ["N", 3, "H", "W"]
    path = write(tmp_path / "net.onnx", [node("Conv", "x w")], weight=[4, 3, 3, 3], sizes=sizes)
    assert read(path, "3,32,16").y.tolist() == [4 * 30 * 14]
    for options in ((), ("--shape", "4,32,16"), ("--shape", "3,32")):
        code, out, err = cli("import", "model", path, *options, "-o", tmp_path / "mine.yaml")
        assert (code, out, len(err.splitlines())) == (2, "", 1)


def write_tokens(path: Path, kind: int) -> Path:
    """Write a table's rows plus those of another input, a mask of its own on their products."""
    helper, float32 = onnx.helper, onnx.TensorProto.FLOAT
    ends = [("ids", onnx.TensorProto.INT64, ["N", "L"]), ("types", kind, ["N", "L"])]
    weights = [
        helper.make_tensor(name, float32, [rows, columns], range(rows * columns))
        for name, rows, columns in (("words", 50, 16), ("kinds", 2, 16))
    ]
    weights.append(helper.make_tensor("mask", float32, [20, 20], [0.0, -1e9] * 200))
    nodes = [
        node("Gather", "words ids", "e"),
        node("Cast", "types", "t", to=onnx.TensorProto.INT64),
        node("Gather", "kinds t", "k"),
        node("Add", "e k", "h"),
        node("Transpose", "h", "turned", perm=[0, 2, 1]),
        node("MatMul", "h turned", "scores"),
        node("Add", "scores mask", "y"),
    ]
    inputs = [helper.make_tensor_value_info(*end) for end in reversed(ends)]
    inputs[1].name = nodes[0].input[1] = "input_ids"
    outputs = [helper.make_tensor_value_info("y", float32, None)]
    graph = helper.make_graph(nodes, "net", inputs, outputs, weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    path.write_bytes(model.SerializeToString())
    return path


def test_inputs_beside_tokens_are_the_same_for_all_samples(tmp_path):
    """Types of tokens choose rows of a table; a mask in floats is no parameter."""
    path = write_tokens(tmp_path / "net.onnx", onnx.TensorProto.INT64)
    network = import_network(str(path), "20", "net", False)
    assert (network.table.parameters, network.table.macs) == (52 * 16, 20 * 20 * 16)
    assert any("types" in note for note in network.notes)


@pytest.mark.parametrize("past", ["past_sequence_length", "P"])
def test_training_has_no_earlier_tokens(past, tmp_path):
    """Keys of earlier tokens come before those of the sample; the mask is of both."""
    helper, kinds = onnx.helper, onnx.TensorProto
    ends = [
        ("past_key_values.0.key", kinds.FLOAT, ["N", 1, past, 16]),
        ("attention_mask", kinds.INT64, ["N", f"{past} + L" if "_" in past else "total_length"]),
        ("input_ids", kinds.INT64, ["N", "L"]),
    ]
    weights = [
        helper.make_tensor("words", kinds.FLOAT, [50, 16], range(800)),
        helper.make_tensor("one", kinds.INT64, [1], [1]),
        helper.make_tensor("both", kinds.INT64, [2], [1, 2]),
    ]
    nodes = [
        node("Gather", "words input_ids", "e"),
        node("Unsqueeze", "e one", "k"),
        node("Concat", "past_key_values.0.key k", "present.0.key", axis=2),
        node("Transpose", "present.0.key", "turned", perm=[0, 1, 3, 2]),
        node("MatMul", "k turned", "scores"),
        node("Cast", "attention_mask", "m", to=kinds.FLOAT),
        node("Unsqueeze", "m both", "mask"),
        node("Add", "scores mask", "y"),
    ]
    inputs = [helper.make_tensor_value_info(*end) for end in ends]
    outputs = [
        helper.make_tensor_value_info(name, kinds.FLOAT, None) for name in ("y", "present.0.key")
    ]
    graph = helper.make_graph(nodes, "net", inputs, outputs, weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    (tmp_path / "net.onnx").write_bytes(model.SerializeToString())
    table = read(tmp_path / "net.onnx", "20")
    assert (table.parameters, table.macs, table.y[-1]) == (50 * 16, 20 * 20 * 16, 20 * 20)


def test_operators_that_no_training_has_say_how_to_export(tmp_path, cli):
    part = onnx.helper.make_graph([node("Relu", "x", "z")], "part", [], [])
    fused = node("SkipLayerNormalization", domain="com.microsoft")
    branch = node("If", then_branch=part)
    for one, sizes, words in ((fused, 0, "fuses"), (fused, 4, "fuses"), (branch, 0, "branches")):
        path = write(tmp_path / "net.onnx", [one])
        model = onnx.load(path)
        if sizes:  # as the file states them
            model.graph.output[0].type.CopyFrom(model.graph.input[0].type)
        onnx.save(model, path)
        code, _, err = cli("import", "model", path, "-o", tmp_path / "mine.yaml")
        assert (code, err.count("\n")) == (2, 1)
        assert words in err


def test_states_and_lengths_that_are_missing_are_one_message(tmp_path, cli):
    for kind, options in ((onnx.TensorProto.FLOAT, ("--shape", 20)), (7, ()), (7, ("--shape", 0))):
        path = write_tokens(tmp_path / "net.onnx", kind)
        code, out, err = cli("import", "model", path, *options, "-o", tmp_path / "mine.yaml")
        assert (code, out, len(err.splitlines())) == (2, "", 1)


def test_any_name_of_a_node_is_a_name(tmp_path):
    names = ["$", "$(1 / 0)", "a", "a_2", "a", "a", "sample", "1e5", "\x1b[31m", "n" * 300, ""]
    ends = ["x", *(f"t{number}" for number in range(len(names) - 1)), "y"]
    pairs = zip(names, ends, ends[1:], strict=False)
    nodes = [node("Relu", before, behind, name=name) for name, before, behind in pairs]
    network = import_network(str(write(tmp_path / "net.onnx", nodes)), None, "$n", False)
    (tmp_path / "$n.yaml").write_text(network.text)
    again = find("model", str(tmp_path / "$n.yaml"), tmp_path)
    assert isinstance(again, Architecture)
    assert again.layers_for((3, 8, 8), None).names == network.table.names
    assert len({*network.table.names}) == len(names)


def chain(count: int) -> list[Any]:
    """Return concatenations of which each doubles the channels."""
    ends = ["x", *(f"t{number}" for number in range(count - 1)), "y"]
    return [node("Concat", f"{a} {a}", b, axis=1) for a, b in itertools.pairwise(ends)]


def nest(count: int, start: str) -> list[Any]:
    """Return functions of which each calls the one before it twice, the first one `start`."""
    opsets = [onnx.helper.make_opsetid("", 18), onnx.helper.make_opsetid("mine", 1)]
    functions = []
    for number in range(count):
        word = f"F{number - 1}" if number else start
        domain = "mine" if word.startswith("F") else ""
        calls = [node(word, *ends, domain=domain) for ends in (("x", "z"), ("z", "y"))]
        name = ("mine", f"F{number}")
        functions.append(onnx.helper.make_function(*name, ["x"], ["y"], calls, opsets))
    return functions


FILTERS = {"weight": [4, 3, 3, 3]}
# Nodes, and what else the graph has.
HOSTILE: dict[str, tuple[list[Any], dict[str, Any]]] = {
    "one input of two": ([node("Conv")], {}),
    "stride 0": ([node("Conv", "x w", strides=[0, 0])], FILTERS),
    "group 0": ([node("Conv", "x w", group=0)], FILTERS),
    "groups of 5": ([node("Conv", "x w", group=5)], FILTERS),
    "an attribute of another type": ([node("Conv", "x w", pads=1.5)], FILTERS),
    "padding of 2^62": ([node("Conv", "x w", pads=[2**62] * 4)], FILTERS),
    "other channels": ([node("Conv", "x w")], {"weight": [4, 5, 3, 3]}),
    "other dimensions": ([node("Conv", "x w")], {"weight": [4, 3, 3]}),
    "a weight of -4": ([node("Conv", "x w")], {"weight": [-4, 3, 3, 3]}),
    "a weight of 2^124": ([node("Add", "x w")], {"weight": [2**62, 2**62]}),
    "a size of -4": ([node("Relu")], {"sizes": ["N", -4, 8, 8]}),
    "sizes of 2^62": ([node("Relu")], {"sizes": ["N", 2**62, 2**62, 2**62]}),
    "300 sizes": ([node("Relu")], {"sizes": ["N", *[2**62] * 300]}),
    "a pool larger than the input": ([node("MaxPool", kernel_shape=[9, 9])], {}),
    "a pool of 2^62": ([node("MaxPool", kernel_shape=[2**62, 1])], {}),
    "a circle": ([node("Relu", "y", "y")], {}),
    "no nodes": ([], {}),
    "2^60 channels": (chain(60), {}),
    "10,001 nodes": ([node("Relu")] * 10_001, {}),
    "26 functions": ([node("F25", domain="mine")], {"functions": nest(26, "Relu")}),
    "functions in a circle": ([node("F3", domain="mine")], {"functions": nest(4, "F3")}),
    "3,000 functions": ([node("F2999", domain="mine")], {"functions": nest(3000, "Relu")}),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_graph_is_one_message(name, tmp_path, cli):
    nodes, graph = HOSTILE[name]
    path = write(tmp_path / "net.onnx", nodes, **graph)
    code, out, err = cli("import", "model", path, "-o", tmp_path / "mine.yaml")
    assert (code, out) == (2, "")
    assert len(err.splitlines()) == 1
    assert not (tmp_path / "mine.yaml").exists()


def write_number(number: int) -> bytes:
    return (
        bytes([number % 128 + 128]) + write_number(number // 128)
        if number > 127
        else bytes([number])
    )


def wrap(field: int, content: bytes) -> bytes:
    return bytes([field * 8 + 2]) + write_number(len(content)) + content


BYTES = {
    **{"empty": b"", "text": b"hello", "cut off": b"\x3a\x7f", "a long number": b"\xff" * 1000},
    # Two bytes each, which protobuf would make messages of a hundred.
    "2 million nodes": wrap(7, wrap(1, b"") * 2**21),
    "2 million attributes": wrap(7, wrap(1, wrap(5, b"") * 2**21)),
    "2 million sizes": wrap(7, wrap(5, b"\x08\x01" * 2**21)),
}


def nested(levels: int) -> bytes:
    """Return a graph in an attribute of a node of a graph, and so on."""
    content = b""
    for _ in range(levels):
        content = wrap(1, wrap(5, wrap(6, content)))
    return wrap(7, content)


@pytest.mark.parametrize("name", [*BYTES, "nested"])
def test_bytes_that_are_no_model_are_one_message(name, tmp_path, cli):
    path = tmp_path / "net.onnx"
    path.write_bytes(nested(2000) if name == "nested" else BYTES[name])
    code, out, err = cli("import", "model", path, "-o", tmp_path / "mine.yaml")
    assert (code, out) == (2, "")
    assert len(err.splitlines()) == 1


def test_mutated_files_are_read_or_refused(tmp_path):
    path, readers = Path("net.onnx"), list_readers()
    cases = [Case(path, seed, mutate_onnx(Random(seed))) for seed in range(MUTATIONS)]
    assert not [text for case in cases if (text := fault(case, readers, tmp_path))]
