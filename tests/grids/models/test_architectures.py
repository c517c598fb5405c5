"""The families, against blocks written out by hand."""

import pytest

from grids.models.architecture import Architecture
from grids.models.layers import LayerTable


def resnet(*stages: int) -> LayerTable:
    family = {"name": "resnet", "stages": list(stages)}
    network = Architecture.from_definition({"name": "net", "rank": 2, "family": family})
    return network.layers_for((3, 224, 224), 1000)


# He et al., table 1, for 224x224: (layer, filters, extent of the output).
BLOCKS = [
    ("conv1", 64, 112),
    ("maxpool", 64, 56),
    ("layer1.0.conv1", 64, 56),
    ("layer1.2.conv3", 256, 56),
    ("layer2.0.conv1", 128, 56),  # version 1.5: the stride is on the 3x3
    ("layer2.0.conv2", 128, 28),
    ("layer2.0.shortcut.conv", 512, 28),
    ("layer2.3.add", 512, 28),
    ("layer3.5.add", 1024, 14),
    ("layer4.2.relu3", 2048, 7),
    ("avgpool", 2048, 1),
    ("fc", 1000, 1),
]


@pytest.mark.parametrize(("name", "filters", "extent"), BLOCKS)
def test_resnet50_block(name: str, filters: int, extent: int) -> None:
    layers = resnet(3, 4, 6, 3)
    row = layers.names.index(name)
    assert layers.filters[row] == filters
    assert layers.extents_y[row].tolist() == [1, extent, extent]


def test_resnet50_has_53_convolutions_and_four_projections() -> None:
    layers = resnet(3, 4, 6, 3)
    assert layers.kinds.count("conv") == 53
    assert layers.kinds.count("norm") == 53
    assert layers.kinds.count("add") == 16
    assert sum(name.endswith("shortcut.conv") for name in layers.names) == 4
    assert all(layers.bias[row] == 0 for row, kind in enumerate(layers.kinds) if kind == "conv")


def test_a_resnet_of_one_block() -> None:
    assert resnet(1).kinds.count("conv") == 5


def inception(*, aux: bool) -> LayerTable:
    family = {"name": "inception", "aux": aux}
    network = Architecture.from_definition({"name": "net", "rank": 2, "family": family})
    return network.layers_for((3, 299, 299), 1000)


# Szegedy et al., table 1: (end of the block, channels, extent).
MIXED = [
    ("maxpool2", 192, 35),
    ("Mixed_5b.concat", 256, 35),
    ("Mixed_5d.concat", 288, 35),
    ("Mixed_6a.concat", 768, 17),
    ("Mixed_6e.concat", 768, 17),
    ("Mixed_7a.concat", 1280, 8),
    ("Mixed_7c.concat", 2048, 8),
]


@pytest.mark.parametrize(("name", "channels", "extent"), MIXED)
def test_inception_block(name: str, channels: int, extent: int) -> None:
    layers = inception(aux=True)
    row = layers.names.index(name)
    assert layers.filters[row] == channels
    assert layers.extents_y[row].tolist() == [1, extent, extent]


def test_inception_kernels_are_rows_and_columns() -> None:
    layers = inception(aux=True)
    kernels = {tuple(kernel) for kernel in layers.kernel.tolist()}
    assert {(1, 1, 7), (1, 7, 1), (1, 1, 3), (1, 3, 1)} <= kernels


def test_inception_without_its_auxiliary_head() -> None:
    """torchvision's 23,834,568 without it: 3,326,696 fewer."""
    assert inception(aux=False).parameters == 23_834_568
