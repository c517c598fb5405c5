"""Graphs of networks: makers and takers in a residual block."""

from pathlib import Path

import numpy as np

from paradl.grids.entries.datasets import Dataset
from paradl.grids.graphs.graph import GraphTensor, Operator, make_graph
from paradl.grids.library import find

NET = {
    "name": "block",
    "rank": 2,
    "layers": [
        {"conv": {"filters": 4, "kernel": 1, "name": "stem"}},
        {"residual": {"body": [{"conv": {"filters": 4, "kernel": 1}}, "relu"]}},
        "flatten",
        {"fc": "targets"},
    ],
}

SMALL = Dataset(name="small", samples=1, shape=(3, 2, 2), targets=10)


def test_a_shortcut_is_the_tensor_of_the_body():
    table = find("model", NET, Path()).table(SMALL)
    forward = np.arange(1.0, 6.0)
    graph = make_graph("block", table, forward, 2 * forward, batch=8, item_bytes=2.0)
    assert [operator.name for operator in graph.operators] == list(table.names)
    # y has 4 x 2 x 2 items, for 8 samples and 2 bytes.
    assert graph.tensors == (
        GraphTensor(0, (1, 3), 256.0),
        GraphTensor(1, (2,), 256.0),
        GraphTensor(2, (3,), 256.0),
        GraphTensor(3, (4,), 256.0),
    )
    # The first layer keeps the sample, of 12 items, and its output, which the body's layer reads.
    assert graph.operators[0] == Operator("stem", 1.0, 2.0, weights=32.0, kept=8 * 2 * (12 + 16))


def test_the_last_bit_of_a_time_decides_nothing():
    table = find("model", NET, Path()).table(SMALL)
    times = np.array([1 / 3, 2e-5 / 7, 1e-9, 12345.678, 0.0])
    graphs = [
        make_graph("block", table, value, value, batch=1, item_bytes=4.0)
        for value in (times, np.nextafter(times, np.inf) * (times > 0))
    ]
    assert graphs[0] == graphs[1]
    result = [operator.forward for operator in graphs[0].operators]
    np.testing.assert_allclose(result, times, rtol=5e-6)


def test_inception_has_its_towers():
    table = find("model", "inception_v3", Path()).table(find("dataset", "imagenet-299", Path()))
    times = np.ones(len(table))
    graph = make_graph("inception_v3", table, times, times, batch=1, item_bytes=4.0)
    assert len(graph) == len(table)
    assert max(len(tensor.takers) for tensor in graph.tensors) >= 4
