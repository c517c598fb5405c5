"""The flow of samples through networks: by hand, by definition, and through known ones."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paradl.grids.library import find
from paradl.grids.models.architecture import Architecture
from paradl.grids.models.layers import LayerTable, count_crossing, find_depth


def conv(filters: int) -> dict[str, object]:
    """Return a convolution that keeps the extents."""
    return {"conv": {"filters": filters, "kernel": 3, "padding": "same"}}


def table(*layers: object) -> LayerTable:
    """For samples of 3x8x8, 192 items; a channel of any layer has 64."""
    definition = {"name": "net", "rank": 2, "layers": list(layers)}
    return Architecture.from_definition(definition).layers_for((3, 8, 8), 10)


def network(model: str, dataset: str = "imagenet") -> LayerTable:
    architecture, data = find("model", model, Path()), find("dataset", dataset, Path())
    layers: LayerTable = architecture.table(data)
    return layers


def test_a_shortcut_crosses_every_cut_inside_its_block() -> None:
    """After conv1 its 8 channels, which both paths read; inside, they and the body's one."""
    body = [conv(1), "relu", conv(8)]
    layers = table(conv(8), {"residual": body}, "relu", conv(2))
    assert layers.names[4] == "residual1.add"
    expected = [8, 8 + 1, 8 + 1, 8 + 8, 8, 8, 0]
    assert (layers.crossing / 64).tolist() == expected


def test_a_projection_is_carried_in_the_place_of_what_it_projects() -> None:
    shortcut = {"residual": {"body": [conv(1), conv(4)], "shortcut": [conv(4)]}}
    layers = table(conv(2), shortcut)
    # The body's 1 and 4 channels with the block's input of 2, then both outputs of 4, the sum.
    assert (layers.crossing / 64).tolist() == [2, 2 + 1, 2 + 4, 4 + 4, 0]


def test_the_sample_crosses_where_a_later_layer_reads_it() -> None:
    layers = table({"concat": [[conv(1)], [conv(2)]]}, conv(1))
    assert (layers.crossing / 64).tolist() == [3 + 1, 1 + 2, 3, 0]


def test_what_nobody_reads_goes_nowhere() -> None:
    """A head beside the trunk: its output of 10 items ends in its own loss."""
    layers = table(conv(1), {"side": [{"fc": "targets"}]}, "relu")
    assert layers.crossing.tolist() == [64, 64, 0]


def test_cuts_of_resnet50_at_the_end_of_a_block_and_inside() -> None:
    """Its first blocks have 256 channels of 56x56 outside, 64 inside: five times as many items."""
    layers = network("resnet50")
    crossing = dict(zip(layers.names, (layers.crossing / 56**2).tolist(), strict=True))
    assert crossing["layer1.0.relu3"] == 256
    assert crossing["layer1.1.conv1"] == crossing["layer1.1.relu2"] == 256 + 64
    assert crossing["layer1.1.conv3"] == 256 + 256
    assert crossing["layer1.1.add"] == 256


@pytest.mark.parametrize("model", ["alexnet", "vgg16"])
def test_a_chain_carries_the_output_of_the_layer_before_the_cut(model: str) -> None:
    layers = network(model)
    assert layers.crossing.tolist() == [*layers.y[:-1], 0]


items = st.integers(0, 1000)


@st.composite
def networks(draw: st.DrawFn) -> list[tuple[int, ...]]:
    """Draw the inputs of up to eight layers: any earlier layers, or the sample."""
    count = draw(st.integers(1, 8))
    before = [st.lists(st.integers(-1, n - 1), min_size=1, max_size=3) for n in range(count)]
    return [tuple(draw(value)) for value in before]


@given(inputs=networks(), data=st.data())
def test_each_tensor_that_is_read_behind_a_cut_crosses_it_once(inputs, data) -> None:
    sizes = data.draw(st.lists(items, min_size=len(inputs) + 1, max_size=len(inputs) + 1))
    of_maker = {maker: sizes[maker + 1] for maker in range(-1, len(inputs))}
    expected = [
        sum(
            of_maker[maker]
            for maker in {row for reader in inputs[cut + 1 :] for row in reader}
            if maker <= cut
        )
        for cut in range(len(inputs))
    ]
    crossing = count_crossing(inputs, float(sizes[0]), np.array(sizes[1:], float))
    assert crossing.tolist() == expected


@given(inputs=networks(), data=st.data())
def test_the_depth_is_that_of_the_longest_way(inputs, data) -> None:
    multiplying = data.draw(st.lists(st.booleans(), min_size=len(inputs), max_size=len(inputs)))

    def list_ways(layer: int) -> list[list[int]]:
        if layer == -1:
            return [[]]
        return [[*way, layer] for source in inputs[layer] for way in list_ways(source)]

    ways = [way for layer in range(len(inputs)) for way in list_ways(layer)]
    assert all(first < second for way in ways for first, second in pairwise(way))
    longest = max(sum(multiplying[layer] for layer in way) for way in ways)
    assert find_depth(inputs, np.array(multiplying)) == longest


@pytest.mark.parametrize(
    ("model", "dataset", "layers"),
    [
        ("alexnet", "imagenet", 8),
        ("vgg16", "imagenet", 16),
        ("resnet50", "imagenet", 50),  # of 53 convolutions four are projections
        ("resnet152", "imagenet", 152),
        ("inception_v3", "imagenet-299", 48),  # of 98, most of them beside each other
        ("cosmoflow", "cosmoflow-256", 10),
    ],
)
def test_networks_are_as_deep_as_their_names_say(model: str, dataset: str, layers: int) -> None:
    assert network(model, dataset).depth == layers
