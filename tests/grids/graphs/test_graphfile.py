"""Graphs in files: users' own, and the catalogue's."""

import json
from pathlib import Path

import pytest
import yaml

from paradl.grids.graphs.graph import GraphTensor, Operator
from paradl.grids.graphs.graphfile import find_graph, list_graphs
from paradl.grids.reading.errors import InputError

DIAMOND = """name: diamond
batch: 32
operators:
  join: {forward: 1 ms, backward: 2 ms}
  stem: {forward: 1 ms, backward: 2 ms, weights: 4 MB, kept: 8 MB}
  left: {forward: 3 ms, backward: 6 ms}
  right: {forward: 0.003, backward: 0.006}
tensors:
  - {maker: stem, takers: [left, right], bytes: 8 MB}
  - {maker: left, takers: join, bytes: 4 MB}
  - {maker: right, takers: join, bytes: 4}
"""


def read(folder: Path, text: str, name: str = "graph.yaml"):
    (folder / name).write_text(text)
    return find_graph(name, folder)


def test_diamond(tmp_path):
    graph = read(tmp_path, DIAMOND)
    assert graph is not None
    assert (graph.name, graph.batch) == ("diamond", 32)
    assert graph.operators == (
        Operator("stem", 1e-3, 2e-3, 4e6, 8e6),
        Operator("left", 3e-3, 6e-3),
        Operator("right", 3e-3, 6e-3),
        Operator("join", 1e-3, 2e-3),
    )
    assert graph.tensors == (
        GraphTensor(0, (1, 2), 8e6),
        GraphTensor(1, (3,), 4e6),
        GraphTensor(2, (3,), 4.0),
    )


def test_json_is_read_as_yaml_is(tmp_path):
    document = yaml.safe_load(DIAMOND)
    for indent in (None, "\t"):
        graph = read(tmp_path, json.dumps(document, indent=indent), "graph.json")
        assert graph == read(tmp_path, DIAMOND)


def test_a_yaml_file_without_operators_is_no_graph(tmp_path):
    assert read(tmp_path, "name: net\nlayers: [relu]\n") is None
    assert find_graph("resnet50", tmp_path) is None
    assert read(tmp_path, '{"model_type": "llama", "hidden_size": 64}', "config.json") is None


def test_inception_is_the_network_of_the_paper():
    assert list_graphs() == ("inception_v3-pipedream",)
    graph = find_graph("inception_v3-pipedream", Path())
    assert graph is not None
    # 325 operators besides the input; times are sums over them; 27.2 M parameters.
    assert (len(graph), graph.batch) == (325, 128)
    assert graph.forward == pytest.approx(0.289269)
    assert graph.backward == pytest.approx(0.399769)
    parameters = sum(operator.weights for operator in graph.operators) / 4
    assert parameters == 27_161_264
    assert any("MIT" in node for node in graph.source)


REFUSED = [
    ("join: {forward: 1 ms", "join: {forwrd: 1 ms", "graph.yaml:4: operators.join.forward:"),
    ("8 MB}", "-8 MB}", "graph.yaml:5: operators.stem.kept:"),
    ("forward: 1 ms", "forward: 3", ": operators.stem.forward:"),
    ("takers: join", "takers: []", "graph.yaml:10: tensors.1.takers: "),
    ("left, right]", "left, rigt]", "graph.yaml:9:"),
    ("left: {f", "stem: {f", "graph.yaml:"),
    ("maker: right, takers: join", "maker: join, takers: stem", "graph.yaml: operators wait"),
    ("batch: 32", "batch: 0", "graph.yaml:2: batch"),
]


@pytest.mark.parametrize(("old", "new", "message"), REFUSED)
def test_what_is_no_graph_is_refused(tmp_path, old, new, message):
    with pytest.raises(InputError) as error:
        read(tmp_path, DIAMOND.replace(old, new))
    assert message in str(error.value)
    assert len(str(error.value)) < 1000
