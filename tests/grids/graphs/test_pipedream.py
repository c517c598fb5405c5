"""PipeDream's profiles: a toy by hand, and the real one of the catalogue."""

from pathlib import Path

import pytest

from paradl.grids.graphs.graphfile import find_graph, list_graphs
from paradl.grids.graphs.pipedream import read_profile
from paradl.grids.reading.errors import InputError

FIELDS = "forward_compute_time=1.5, backward_compute_time=3.0, activation_size={}, parameter_size=8"
TOY = f"""# batch: 4
# source: nobody
node1 -- Input -- {FIELDS.format(64.0)}
node3 -- ReLU(inplace) -- {FIELDS.format(32.0)}
node2 -- Conv2d(3, 64, kernel_size=(3, 3)) -- {FIELDS.format("[16.0; 16.0]")}
node4 -- View(-1) -- {FIELDS.format(32.0)}
\tnode1 -- node2
\tnode2 -- node3
\tnode2 -- node4
"""


def read(tmp_path: Path, text: str):
    path = tmp_path / "toy.txt"
    path.write_text(text)
    return read_profile(path)


def test_toy(tmp_path):
    graph = read(tmp_path, TOY)
    assert (graph.name, graph.batch, graph.source) == ("toy", 4, ("nobody",))
    assert [operator.name for operator in graph.operators] == [
        "node2 Conv2d",
        "node3 ReLU",
        "node4 View",
    ]
    conv, relu, view = graph.operators
    assert (conv.forward, conv.backward, conv.weights, conv.kept) == (1.5e-3, 3e-3, 8.0, 32.0)
    assert relu.kept == view.kept == 0.0
    (tensor,) = graph.tensors
    assert (tensor.maker, tensor.takers, tensor.bytes) == (0, (1, 2), 32.0)


def test_inception_is_the_network_of_the_paper():
    assert list_graphs() == ("inception_v3-pipedream",)
    graph = find_graph("inception_v3-pipedream", Path())
    assert graph is not None
    # 325 operators besides the input; times are the sums of the file's columns; 27.2 M parameters.
    assert (len(graph), graph.batch) == (325, 128)
    assert graph.forward == pytest.approx(0.289269)
    assert graph.backward == pytest.approx(0.399769)
    parameters = sum(operator.weights for operator in graph.operators) / 4
    assert parameters == 27_161_264
    assert any("MIT" in node for node in graph.source)


REFUSED = [
    ("node1 - no operator", "toy.txt:1:"),
    (TOY + TOY, "toy.txt:12:"),
    (TOY + "\tnode2 -- node9\n", "toy.txt:10:"),
    (TOY + "\tnode2 -- node3\n", "toy.txt:8:"),
    (TOY + "\tnode3 -- node2\n", "toy.txt: operators wait for each other: 'node3 ReLU' -> 'node"),
    (TOY.replace("1.5", "-1", 2), "toy.txt:4: forward_compute_time:"),
    (TOY.replace("1.5", "nan"), "toy.txt:4: forward_compute_time:"),
    (TOY.replace(", parameter_size=8", "", 2), "toy.txt:4:"),
    (TOY.replace("batch: 4", "batch: 0"), "toy.txt: batch:"),
    (TOY.replace("batch: 4", f"batch: {'9' * 5000}"), "toy.txt: batch:"),
    ("", "toy.txt:"),
]


@pytest.mark.parametrize(("text", "message"), REFUSED)
def test_what_is_no_profile_is_refused(tmp_path, text, message):
    with pytest.raises(InputError) as error:
        read(tmp_path, text)
    assert message in str(error.value)
    assert len(str(error.value)) < 1000
