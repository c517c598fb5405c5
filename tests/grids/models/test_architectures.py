"""Families against blocks written out by hand; their published counts: ../test_catalogue.py."""

import csv
from pathlib import Path

import pytest

from paradl.grids.models.architecture import Architecture
from paradl.grids.models.layers import LayerTable


def resnet(*stages: int) -> LayerTable:
    family = {"name": "resnet", "stages": list(stages)}
    network = Architecture.from_definition({"name": "net", "rank": 2, "family": family})
    return network.layers_for((3, 224, 224), 1000)


def test_resnet50_has_53_convolutions_and_four_projections() -> None:
    layers = resnet(3, 4, 6, 3)
    assert layers.kinds.count("conv") == 53
    assert layers.kinds.count("norm") == 53
    assert layers.kinds.count("add") == 16
    assert sum(name.endswith("shortcut.conv") for name in layers.names) == 4
    assert all(layers.bias[row] == 0 for row, kind in enumerate(layers.kinds) if kind == "conv")


def test_a_resnet_of_one_block() -> None:
    assert resnet(1).kinds.count("conv") == 5


def family(**settings: object) -> LayerTable:
    network = Architecture.from_definition({"name": "net", "rank": 2, "family": settings})
    return network.layers_for((3, 224, 224), 1000)


def test_resnext_widens_its_3x3_convolutions_and_groups_them() -> None:
    """32 groups of 4 channels at first, of 32 at last; block outputs are a ResNet's."""
    layers = family(name="resnet", stages=[3, 4, 6, 3], groups=32, group_width=4)
    grouped = layers.groups == 32
    assert grouped.sum() == 16
    assert layers.filters[grouped].tolist() == [128] * 3 + [256] * 4 + [512] * 6 + [1024] * 3
    plain = resnet(3, 4, 6, 3)
    assert layers.names == plain.names
    ends = [row for row, name in enumerate(layers.names) if name.endswith("add")]
    assert layers.filters[ends].tolist() == plain.filters[ends].tolist()


def test_inverted_residuals() -> None:
    """Two blocks: the first halves the extents, the second adds its input; both have gates."""
    stage = {"filters": 24, "blocks": 2, "stride": 2, "kernel": 5}
    layers = family(name="inverted_residuals", stem=16, head=64, stages=[stage], squeeze=4)
    convolutions = [n for n, kind in zip(layers.names, layers.kinds, strict=True) if kind == "conv"]
    assert convolutions == [
        "stem",
        *(
            f"stage1.0.{name}"
            for name in ("expand", "depthwise", "gate.fc1", "gate.fc2", "project")
        ),
        *(
            f"stage1.1.{name}"
            for name in ("expand", "depthwise", "gate.fc1", "gate.fc2", "project")
        ),
        "head",
    ]
    assert layers.kinds.count("add") == 1
    assert layers.kinds.count("multiply") == 2
    depthwise = layers.names.index("stage1.1.depthwise")
    assert layers.groups[depthwise] == layers.filters[depthwise] == 6 * 24
    assert layers.w[depthwise] == 6 * 24 * 25
    assert layers.filters[layers.names.index("stage1.0.gate.fc1")] == 16 // 4
    assert layers.extents_y[depthwise].tolist() == [1, 56, 56]


def test_what_is_not_widened_is_not_convolved() -> None:
    stage = {"filters": 16, "expansion": 1}
    layers = family(name="inverted_residuals", stem=16, head=64, stages=[stage])
    assert "stage1.0.expand" not in layers.names
    assert "multiply" not in layers.kinds


def test_a_u_net_concatenates_what_was_there() -> None:
    network = Architecture.from_definition(
        {"name": "net", "rank": 2, "family": {"name": "unet", "filters": [4, 8, 16]}}
    )
    layers = network.layers_for((1, 16, 16), 2)
    ends = [row for row, name in enumerate(layers.names) if name.endswith("concat")]
    assert layers.filters[ends].tolist() == [16, 8]
    assert layers.extents_y[ends].tolist() == [[1, 8, 8], [1, 16, 16]]
    # Each level's shortcut crosses every cut until it is read: at the bottom, both do.
    bottom = layers.names.index("level1.branch2.level2.branch2.down1")
    assert layers.crossing[bottom] == 16 * 4 * 4 + 8 * 8 * 8 + 4 * 16 * 16


def inception(*, aux: bool) -> LayerTable:
    family = {"name": "inception", "aux": aux}
    network = Architecture.from_definition({"name": "net", "rank": 2, "family": family})
    return network.layers_for((3, 299, 299), 1000)


def test_inception_kernels_are_rows_and_columns() -> None:
    layers = inception(aux=True)
    kernels = {tuple(kernel) for kernel in layers.kernel.tolist()}
    assert {(1, 1, 7), (1, 7, 1), (1, 1, 3), (1, 3, 1)} <= kernels


def test_inception_without_its_auxiliary_head() -> None:
    """torchvision's 23,834,568 without it: 3,326,696 fewer."""
    assert inception(aux=False).parameters == 23_834_568


FACTS = Path(__file__).parents[2] / "data" / "facts" / "recurrent_models.csv"


def read_counts(model: str, kind: str) -> dict[str, int]:
    with FACTS.open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if (row["model"], row["kind"]) == (model, kind)]
    return {row["item"]: int(row["value"]) for row in rows}


def count_parameters(table: LayerTable, *prefixes: str) -> int:
    rows = [row for row, name in enumerate(table.names) if name.startswith(prefixes)]
    return int((table.w + table.bias)[rows].sum())


def gnmt(layers: int, *, shared: bool = True) -> LayerTable:
    family = {"name": "gnmt", "layers": layers, "hidden": 1024, "shared_embedding": shared}
    network = Architecture.from_definition({"name": "net", "rank": 1, "family": family})
    return network.layers_for((2, 22), 32_320)


GNMT_ROWS = {  # as the published code calls a layer, as it is called here
    "embedding (shared by encoder and decoder)": ("encoder.embedding", "decoder.embedding"),
    "encoder.lstm0 bidirectional": ("encoder.lstm0",),
    "encoder.lstm1": ("encoder.layer1",),
    "encoder.lstm2": ("encoder.layer2",),
    "encoder.lstm3": ("encoder.layer3",),
    "decoder.lstm0 (attention RNN)": ("decoder.lstm0",),
    "attention.linear_q": ("attention.query",),
    "attention.linear_k": ("attention.key",),
    "attention.linear_att + scalar + bias": ("attention.sum", "attention.scores"),
    "decoder.lstm1": ("decoder.layer1",),
    "decoder.lstm2": ("decoder.layer2",),
    "decoder.lstm3": ("decoder.layer3",),
    "classifier": ("classifier",),
}


def test_gnmt_layer_by_layer() -> None:
    table, published = gnmt(4), read_counts("gnmt_v2_4layer", "layer")
    counted = {item: count_parameters(table, *names) for item, names in GNMT_ROWS.items()}
    assert counted == published
    assert table.parameters == read_counts("gnmt_v2_4layer", "params")["total"] == 160_671_297


def test_gnmt_of_eight_layers() -> None:
    assert gnmt(8).parameters == read_counts("gnmt_v2_8layer", "params")["total"]
    # With two tables; published in millions, with 32,000 words.
    paper = gnmt(8, shared=False)
    assert paper.parameters == pytest.approx(
        read_counts("gnmt_wu2016", "params")["total"], rel=0.002
    )
    # A step of both sentences; the published 212 and 214 million are for another setting.
    operations = read_counts("gnmt_wu2016", "ops")["multiply-adds per timestep"]
    assert paper.macs / 22 == pytest.approx(operations, rel=0.02)


def test_gnmt_of_two_layers_has_no_shortcuts() -> None:
    table = gnmt(2)
    assert table.kinds.count("add") == 1  # of queries and keys
    query = table.names.index("encoder.layer1.lstm.gates")
    assert query in table.inputs[table.names.index("attention.key")]


def test_what_gnmt_s_decoder_reads() -> None:
    """The attention's result is an input of every layer but the first, beside the layer before."""
    table = gnmt(4)
    at = {name: row for row, name in enumerate(table.names)}
    answer = at["attention.context"]
    readers = [name for name, read in zip(table.names, table.inputs, strict=True) if answer in read]
    assert readers == [f"decoder.layer{number}.input.concat" for number in (1, 2, 3)]
    assert table.inputs[at["decoder.embedding"]] == table.inputs[at["encoder.embedding"]] == (-1,)
    assert table.inputs[at["attention.query"]] == (at["decoder.lstm0.gates"],)
    assert table.inputs[at["attention.key"]] == (at["encoder.layer3.add"],)
