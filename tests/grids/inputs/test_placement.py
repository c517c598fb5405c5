"""Placement in networks that no scalar reference has: groups of channels, free layers, shortcuts.

Plain layers in groups of any size: tests/test_oracle_agreement.py.
"""

from pathlib import Path
from typing import get_args

import numpy as np
import pytest

from paradl.grids.entries.strategies import parse_strategy
from paradl.grids.inputs.layers import kernel_layers
from paradl.grids.inputs.placement import Rules, place
from paradl.grids.library import find
from paradl.grids.models.architecture import Architecture
from paradl.grids.models.layers import LayerTable
from paradl.kernels.names.parallelisms import KINDS
from paradl.kernels.options import Cuts, Options
from paradl.kernels.work.division import Placement
from paradl.kernels.work.group import Bounds

CUTS: tuple[Cuts, ...] = get_args(Cuts)
WHOLE = Options(conventions="authors")  # cuts carry outputs, and layers are not those of Table III


def table(model: str, dataset: str) -> LayerTable:
    return find("model", model, Path()).table(find("dataset", dataset, Path()))


VGG16 = table("vgg16", "imagenet-226")
RESNET50 = table("resnet50", "imagenet-226")


def placed(strategy, layers, p2, **rules) -> tuple[Placement, Bounds]:
    """Place groups of p2 PEs, with as many PEs in all; costs are 1 unless given."""
    degree, read = np.array(p2, float, ndmin=1), parse_strategy(strategy)
    costs = np.ones((len(layers), 1))
    usual = {"dims": read.dims, "layers": read.layers, "options": WHOLE, "costs": costs}
    divided = KINDS[read.parts[0]].divides if read.parts else None
    return place(divided, degree, Rules(layers, **usual | rules))


def kinds(layers, split) -> list[str]:
    return [kind for kind, s in zip(layers.kinds, split, strict=True) if s]


def fits(strategy, layers, p2, **kept) -> list[bool]:
    return placed(strategy, layers, p2, **kept)[1].fits.tolist()


def test_kernels_take_the_spatial_dimensions_first() -> None:
    layers = kernel_layers(VGG16)
    assert layers.kernel.shape == (3, len(VGG16))
    assert layers.extents_x[:, 0].tolist() == [1, 226, 226]


def test_split_all_counts_every_layer_but_the_first_ones_channels() -> None:
    assert fits("filter:split=all", VGG16, [64, 65]) == [True, False]
    split = placed("channel:split=all", VGG16, 64)[0].split
    assert split.all()
    assert fits("channel:split=all", VGG16, [64, 65]) == [True, False]


MOBILENET = table("mobilenet_v2", "imagenet")
RESNEXT = table("resnext50_32x4d", "imagenet")


def test_a_depthwise_convolution_is_whole_by_channel_and_divided_by_filter() -> None:
    """Its filters have one channel. MobileNetV2: 17 of 52; the narrowest layer has 16."""
    depthwise = MOBILENET.groups > 1
    assert depthwise.sum() == 17
    by_channel = placed("channel", MOBILENET, 2)[0].split[:, 0]
    assert not by_channel[depthwise].any()
    assert by_channel.sum() == 52 - 17 - 1
    assert placed("filter", MOBILENET, 2)[0].split[:, 0].sum() == 52
    assert fits("channel", MOBILENET, [16, 17]) == [True, False]
    assert fits("filter", MOBILENET, [16, 17]) == [True, False]
    # Splitting all of them is impossible.
    assert fits("channel:split=all", MOBILENET, [1, 2]) == [True, False]


def test_a_filter_s_own_channels_are_the_limit() -> None:
    """At first 32 groups of 4 channels; at least 64 filters."""
    assert fits("channel", RESNEXT, [1, 2, 4, 8]) == [True, True, True, False]
    assert fits("filter", RESNEXT, [64, 65]) == [True, False]
    split = placed("channel", RESNEXT, 4)[0].split[:, 0]
    assert kinds(RESNEXT, split) == ["conv"] * 52


def make_layers(*steps: object) -> LayerTable:
    net = Architecture.from_definition({"name": "net", "rank": 2, "layers": list(steps)})
    return net.layers_for((16, 32, 32), 10)


def test_nobody_splits_what_nobody_knows_the_inside_of() -> None:
    conv = {"conv": {"filters": 16, "kernel": 3, "padding": 1}}
    layers = make_layers(conv, {"free": {"flops": 1e6}}, conv)
    for strategy in ("filter", "channel", "spatial"):
        assert not placed(strategy, layers, 2)[0].split[1, 0]
        assert fits(strategy, layers, [2]) == [True]
    for strategy in ("filter:split=all", "channel:split=all"):
        assert fits(strategy, layers, [1, 2]) == [True, False]


def test_a_spatial_group_divides_transposed_and_dilated_convolutions() -> None:
    wide = {"conv": {"filters": 16, "kernel": 3, "padding": 4, "dilation": 4}}
    layers = make_layers(wide, {"transposed_conv": {"filters": 8, "kernel": 2, "stride": 2}})
    placement, bounds = placed("spatial", layers, 4)
    assert placement.split[:, 0].tolist() == [1, 1]
    assert bounds.fits.all()


def test_split_all_is_limited_by_its_smallest_layer() -> None:
    """Fully connected layers have extents of 1: times are defined, but p2 does not fit."""
    _, bounds = placed("spatial:split=all", VGG16, [1, 2])
    assert bounds.fits.tolist() == [True, False]
    assert bounds.defined.tolist() == [True, True]


@pytest.mark.parametrize(("layers", "most"), [(VGG16, 16), (RESNET50, 50)])
def test_where_all_that_crosses_counts_stages_are_as_many_as_products_in_a_row(
    layers: LayerTable, most: int
) -> None:
    """More stages than that are forbidden; more than layers are undefined."""
    stages = [1, most, most + 1, len(layers) + 1]
    _, bounds = placed("pipeline", layers, stages, options=Options(oracle="machine"))
    assert bounds.fits.tolist() == [True, True, False, False]
    assert bounds.defined.tolist() == [True, True, True, False]


def test_a_network_without_products_has_one_stage() -> None:
    definition = {"name": "net", "rank": 2, "layers": ["relu", "relu"]}
    layers = Architecture.from_definition(definition).layers_for((3, 8, 8), 10)
    _, bounds = placed("pipeline", layers, [1, 2], options=Options(oracle="machine"))
    assert bounds.fits.tolist() == [True, False]


def test_stages_are_cut_where_shortcuts_do_not_cross() -> None:
    """With equal layers: in the middle, between a body and its shortcut, or two layers later."""
    names, crossing = np.array(RESNET50.names), RESNET50.crossing
    of = {options.cuts: options for options in (WHOLE, Options(oracle="machine"))}
    ends = {cuts: placed("pipeline", RESNET50, 2, options=of[cuts])[0].ends[0, 0] for cuts in CUTS}
    assert names[ends["output"] - 1] == "layer3.0.shortcut.conv"
    assert names[ends["crossing"] - 1] == "layer3.0.add"
    assert crossing[ends["crossing"] - 1] == crossing[ends["output"] - 1] / 2


def test_stages_follow_the_costs_of_each_cell() -> None:
    """Costs along the second axis: equal ones are halved, a heavy first layer is alone."""
    equal = np.ones(len(VGG16))
    heavy = np.where(np.arange(len(VGG16)) == 0, 1e3, 1.0)
    costs = np.stack([equal, heavy], axis=1)[:, None]
    placement, _ = placed("pipeline", VGG16, [[2]], costs=costs)
    assert placement.ends[0, 0].tolist() == [-(-len(VGG16) // 2), 1]
