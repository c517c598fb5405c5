"""Every entry of the catalogue against published facts."""

import re
from itertools import pairwise
from pathlib import Path
from typing import get_args

import pytest

from paradl.grids.entries.datasets import Dataset
from paradl.grids.entries.names import Kind, list_names
from paradl.grids.entries.precision import PRECISIONS
from paradl.grids.library import find
from paradl.grids.models.layers import LayerTable
from paradl.grids.reading.errors import InputError, ShapeError

ENTRIES = [(kind, name) for kind in get_args(Kind) for name in list_names(kind)]


def table(model: str, *shape: int, targets: int = 1000) -> LayerTable:
    samples = Dataset(name="any", samples=1, shape=shape, targets=targets)
    return find("model", model, Path()).table(samples)


@pytest.mark.parametrize(("kind", "name"), ENTRIES)
def test_an_entry_says_its_name_and_source(kind: Kind, name: str) -> None:
    entry = find(kind, name, Path()).definition()
    assert entry["name"] == name
    assert entry["source"]
    assert entry["title"]


# Parameters (exact) and giga multiply-accumulates as printed, from torchvision's table of models;
# of ResNeXt-101 (32x4d), which it has not, from timm's.
PUBLISHED = [
    ("alexnet", 224, 61_100_840, 0.71),
    ("vgg16", 224, 138_357_544, 15.47),
    ("resnet50", 224, 25_557_032, 4.09),
    ("resnet152", 224, 60_192_808, 11.51),
    ("inception_v3", 299, 27_161_264, 5.71),
    ("vit_b_16", 224, 86_567_656, 17.56),
    ("mobilenet_v2", 224, 3_504_872, 0.3),
    ("efficientnet_b0", 224, 5_288_548, 0.39),
    ("densenet121", 224, 7_978_856, 2.83),
    ("resnet18", 224, 11_689_512, 1.81),
    ("resnet34", 224, 21_797_672, 3.66),
    ("resnet101", 224, 44_549_160, 7.8),
    ("resnext50_32x4d", 224, 25_028_904, 4.23),
    ("resnext101_32x4d", 224, 44_177_704, 8.01),
]


@pytest.mark.parametrize(("model", "extent", "parameters", "gmacs"), PUBLISHED)
def test_published_counts(model: str, extent: int, parameters: int, gmacs: float) -> None:
    layers = table(model, 3, extent, extent)
    assert layers.parameters == parameters
    half_a_digit = 0.5e7  # of what is printed with two behind the point
    assert layers.macs == pytest.approx(gmacs * 1e9, rel=0.01, abs=half_a_digit)


def count(c: int, f: int, kernel: int = 3) -> int:
    """Weights and biases of a convolution."""
    return c * f * kernel * kernel + f


BACKBONE = 25_557_032 - 2_049_000 - 53_120  # ResNet-50 without classifier and normalisations


def test_retinanet() -> None:
    """torchvision's retinanet_resnet50_fpn: heads with the same weights on five levels."""
    pyramid = count(512 + 1024 + 2048, 256, 1) + 2 * 256 + 5 * count(256, 256)
    heads = 8 * count(256, 256) + count(256, 9 * 91) + count(256, 9 * 4)
    layers = table("retinanet_resnet50", 3, 800, 1088, targets=91)
    assert layers.parameters == BACKBONE + pyramid + heads == 34_014_999
    # As printed for an image of 800 x 800, by their areas.
    assert layers.macs == pytest.approx(151.54e9 * 1088 / 800, rel=0.01)


def test_mask_rcnn() -> None:
    """torchvision's maskrcnn_resnet50_fpn."""
    pyramid = count(256 + 512 + 1024 + 2048, 256, 1) + 3 * 256 + 4 * count(256, 256)
    proposing = count(256, 256) + count(256, 3, 1) + count(256, 12, 1)
    boxes = count(256, 1024, 7) + count(1024, 1024, 1) + count(1024, 5 * 91, 1)
    masks = 4 * count(256, 256) + count(256, 256, 2) + count(256, 91, 1)
    layers = table("mask_rcnn_resnet50", 3, 800, 1088, targets=91)
    assert layers.parameters == BACKBONE + pyramid + proposing + boxes + masks == 44_401_393
    # The last convolution sees 128 regions of 28 x 28 items.
    assert layers.flops[-1] == 2 * 256 * 91 * 128 * 28 * 28


def test_ssd300() -> None:
    """torchvision's ssd300_vgg16: VGG's convolutions, seven more pairs, a scale, and heads."""
    vgg = 138_357_544 - (25_088 * 4096 + 4096) - (4096 * 4096 + 4096) - (4096 * 1000 + 1000)
    extra = count(512, 1024) + count(1024, 1024, 1) + count(1024, 256, 1) + count(256, 512)
    extra += count(512, 128, 1) + count(128, 256) + 2 * (count(256, 128, 1) + count(128, 256))
    maps = ((512, 4), (1024, 6), (512, 6), (256, 6), (256, 4), (256, 4))
    heads = sum(count(channels, anchors * (91 + 4)) for channels, anchors in maps)
    layers = table("ssd300_vgg16", 3, 300, 300, targets=91)
    assert layers.parameters == vgg + 512 + extra + heads == 35_641_826
    assert layers.macs == pytest.approx(34.86e9, rel=0.01)
    assert layers.extents_y[-1].tolist() == [1, 1, 1]


def test_mlperfs_detectors() -> None:
    """ResNeXt-50 under RetinaNet's pyramid, of 264 classes; half of ResNet-34 under SSD, of 81."""
    retina = table("retinanet_resnext50", 3, 800, 800, targets=264)
    backbone = 25_028_904 - 2_049_000 - 68_224
    pyramid = count(512 + 1024 + 2048, 256, 1) + 2 * 256 + 5 * count(256, 256)
    heads = 8 * count(256, 256) + count(256, 9 * 264) + count(256, 9 * 4)
    assert retina.parameters == backbone + pyramid + heads
    ssd = table("ssd300_resnet34", 3, 300, 300, targets=81)
    assert 38 in ssd.extents_y
    maps = ((256, 4), (512, 6), (512, 6), (256, 6), (256, 4), (256, 4))
    heads = sum(count(channels, anchors * (81 + 4)) for channels, anchors in maps)
    # Convolutions without bias, with a normalisation each, in 3, 4 and 6 blocks of two.
    stem = 49 * 3 * 64 + 2 * 64
    blocks = 6 * (9 * 64 * 64 + 2 * 64)
    for c, times in ((128, 4), (256, 6)):
        blocks += (
            9 * c // 2 * c + (2 * times - 1) * 9 * c * c + c // 2 * c + (2 * times + 1) * 2 * c
        )
    extra = count(256, 256, 1) + count(512, 256, 1) + 2 * count(256, 512) + count(512, 128, 1)
    extra += 3 * count(128, 256) + 2 * count(256, 128, 1)
    assert ssd.parameters == stem + blocks + extra + heads
    assert ssd.extents_y[-1].tolist() == [1, 1, 1]


def test_unet3d() -> None:
    """MLPerf's, level by level, from its description; the source prints no parameter count."""
    filters = (32, 64, 128, 256, 320, 320)
    down = [27 * (1 * 32 + 32 * 32)]
    down += [27 * (above * n + n * n) for above, n in pairwise(filters)]
    raised = [8 * below * n + n for n, below in pairwise(filters)]
    up = [27 * (2 * n * n + n * n) for n in filters[:-1]]
    # Two normalisations per level and direction, each with a scale and a shift.
    norms = 2 * 2 * sum(filters) + 2 * 2 * sum(filters[:-1])
    layers = table("unet3d", 1, 128, 128, 128, targets=3)
    assert layers.parameters == sum(down) + sum(raised) + sum(up) + norms + 32 * 3 + 3 == 31_190_243
    assert layers.extents_y[-1].tolist() == [128, 128, 128]
    assert layers.extents_y.min() == 4  # 128 halved five times
    assert layers.filters[-1] == 3


@pytest.mark.parametrize("model", ["alexnet", "vgg16", "resnet50", "resnet152"])
def test_parameters_do_not_hang_on_the_extents(model: str) -> None:
    assert table(model, 3, 226, 226).parameters == table(model, 3, 224, 224).parameters


def test_cosmoflow_is_one_network_for_every_size() -> None:
    """Convolutions and fully connected layers as in the authors' file, and their biases."""
    weights = (
        27 * (4 * 16 + 16 * 32 + 32 * 64 + 64 * 128)
        + 8 * (128 * 256 + 256 * 256 + 256 * 128)
        + (128 * 2048 + 2048 * 256 + 256 * 4)
    )
    biases = 16 + 32 + 64 + 128 + 256 + 256 + 128 + 2048 + 256 + 4
    for extent in (512, 256, 128):
        layers = table("cosmoflow", 4, extent, extent, extent, targets=4)
        assert layers.parameters == weights + biases
        assert layers.channels[layers.names.index("fc1")] == 128


@pytest.mark.parametrize(
    ("model", "shape"),
    [
        ("resnet50", (4, 128, 128, 128)),  # another rank
        ("cosmoflow", (3, 224, 224)),
        ("alexnet", (3, 32, 32)),  # its third pooling has nothing left
        ("inception_v3", (3, 224, 224)),  # nor has its auxiliary head
        ("unet3d", (1, 100, 128, 128)),  # halved and doubled, 25 is no 25
    ],
)
def test_combinations_that_cannot_exist(model: str, shape: tuple[int, ...]) -> None:
    with pytest.raises(ShapeError):
        table(model, *shape)


# Dense peaks [TFLOP/s] of fp32, tf32, amp and bf16 (NVIDIA's data sheets), and the default.
PEAKS = [
    ("abci", (15.7, None, 125, None), "fp32"),
    ("dgx1-v100", (15.7, None, 125, None), "fp32"),
    ("dgx1-p100", (10.6, None, 21.2, None), "fp32"),
    ("dgx-a100", (19.5, 156, 312, 312), "amp"),
    ("dgx-a100-80gb", (19.5, 156, 312, 312), "amp"),
    ("dgx-h100", (67, 494.5, 989, 989), "amp"),
    ("xe8545", (19.5, 156, 312, 312), "amp"),
    ("dgx-h200", (67, 494.5, 989, 989), "amp"),
    ("grand-teton", (67, 494.5, 989, 989), "bf16"),
    ("dgx-b200", (80, 1100, 2250, 2250), "amp"),
    ("gb200-nvl72", (80, 1250, 2500, 2500), "amp"),
    ("frontier", (23.95, None, 191.5, 191.5), "amp"),
    ("mi300x", (163.4, 653.7, 1307.4, 1307.4), "amp"),
    ("tpu-v4", (275 / 6, None, None, 275), "bf16"),
    ("tpu-v5p", (459 / 6, None, None, 459), "bf16"),
    ("tpu-v5e", (197 / 6, None, None, 197), "bf16"),
    ("tpu-v6e", (918 / 6, None, None, 918), "bf16"),
    ("dgx1-v100-32gb", (15.7, None, 125, None), "fp32"),
    ("dgx2-v100", (15.7, None, 125, None), "amp"),
    ("h100-pcie", (51, 378, 756, 756), "amp"),
    ("h100-nvl", (60, 417.5, 835.5, 835.5), "amp"),
    ("h200-nvl", (60, 417.5, 835.5, 835.5), "amp"),
    ("gh200", (67, 494.5, 989, 989), "amp"),
    ("dgx-b300", (75, 1125, 2250, 2250), "amp"),
    ("gb300-nvl72", (80, 1250, 2500, 2500), "amp"),
    # With FP32 accumulation: GeForce cards have twice these peaks without.
    ("rtx3090", (35.6, 35.6, 71, 71), "amp"),
    ("rtx4090", (82.6, 82.6, 165.2, 165.2), "amp"),
    ("a10", (31.2, 62.5, 125, 125), "amp"),
    ("l40s", (91.6, 183, 362, 362), "amp"),
    ("mi350x", (144.2, None, 2306.9, 2306.9), "amp"),
    ("mi355x", (157.3, None, 2516.6, 2516.6), "amp"),
    ("gaudi2", (5.5, None, None, 432), "bf16"),
    ("gaudi3", (14.35, None, None, 1835), "bf16"),
]
# Peaks for transformers in fp8, mxfp8, nvfp4; machines not listed have none.
LOW_PEAKS = {
    **dict.fromkeys(("dgx-h100", "dgx-h200", "grand-teton", "gh200"), (1979, None, None)),
    "h100-pcie": (1513, None, None),
    **dict.fromkeys(("h100-nvl", "h200-nvl"), (1670.5, None, None)),
    "rtx4090": (330.3, None, None),
    "l40s": (733, None, None),
    "gaudi2": (865, None, None),
    "gaudi3": (1835, None, None),
    "mi300x": (2614.9, None, None),
    "mi350x": (4613.7, 4613.7, None),
    "mi355x": (5033.2, 5033.2, None),
    "dgx-b200": (4500, 4500, 9000),
    "dgx-b300": (4500, 4500, 13500),
    "gb200-nvl72": (5000, 5000, 10000),
    "gb300-nvl72": (5000, 5000, 15000),
}
# Memory as sold [10^9 B], and power [W; None: not published].
SOLD = {
    "abci": (16, 300),
    "dgx1-v100": (16, 300),
    "dgx1-v100-32gb": (32, 300),
    "dgx2-v100": (32, 350),
    "dgx1-p100": (16, 300),
    "a10": (24, 150),
    "l40s": (48, 350),
    "rtx3090": (24, 350),
    "rtx4090": (24, 450),
    **dict.fromkeys(("dgx-a100", "xe8545"), (40, 400)),
    "dgx-a100-80gb": (80, 400),
    **dict.fromkeys(("dgx-h100", "grand-teton"), (80, 700)),
    "h100-pcie": (80, 350),
    "h100-nvl": (94, 400),
    "gh200": (96, None),
    "dgx-h200": (141, 700),
    "h200-nvl": (141, 600),
    "dgx-b200": (180, 1000),
    "dgx-b300": (270, 1100),
    "gb200-nvl72": (186, 1200),
    "gb300-nvl72": (288, 1400),
    "frontier": (64, 280),
    "mi300x": (192, 750),
    "mi350x": (288, 1000),
    "mi355x": (288, 1400),
    "gaudi2": (96, 600),
    "gaudi3": (128, 900),
    "tpu-v4": (32, 192),
    "tpu-v5e": (16, None),
    "tpu-v5p": (95, None),
    "tpu-v6e": (32, None),
}


@pytest.mark.parametrize(("name", "teraflops", "default"), PEAKS)
def test_peaks_of_machines(name: str, teraflops: tuple[float | None, ...], default: str) -> None:
    system = find("system", name, Path())
    assert system.precision == default
    for precision, peak in zip([*PRECISIONS][:4], teraflops, strict=True):
        if peak is None:
            with pytest.raises(InputError, match=f"has no peak for {precision}"):
                find("system", f"{name}:precision={precision}", Path())
        else:
            chosen = find("system", f"{name}:precision={precision}", Path())
            assert chosen.peak == pytest.approx(peak * 1e12, rel=1e-4)


@pytest.mark.parametrize("name", list_names("system"))
def test_low_peaks_of_machines(name: str) -> None:
    peaks = find("system", name, Path()).pe.list_tensor_peaks()
    low = [peaks.get(precision) for precision in ("fp8", "mxfp8", "nvfp4")]
    stated = LOW_PEAKS.get(name, (None, None, None))
    assert low == [None if peak is None else pytest.approx(peak * 1e12) for peak in stated]


@pytest.mark.parametrize("name", list_names("system"))
def test_memory_and_power_of_machines(name: str) -> None:
    """Labels round what programs can use, and mean 2^30 bytes by GB, or 10^9."""
    pe = find("system", name, Path()).pe
    label, watts = SOLD[name]
    assert pe.watts == watts
    assert 0.92 * label * 2**30 < pe.memory_capacity < 1.01 * label * 2**30


def test_usable_memory_is_no_label() -> None:
    """As PyTorch counts it; the two with V100 of 16 GB keep the figure of earlier answers."""
    known = {"dgx-h100": 79.1, "dgx-a100": 39.6, "dgx1-v100-32gb": 31.75, "dgx-b200": 178.4}
    for name, gib in known.items():
        capacity = find("system", name, Path()).pe.memory_capacity
        assert capacity == pytest.approx(gib * 2**30, rel=1e-3)
    systems = [find("system", name, Path()) for name in list_names("system")]
    of_label = [system.name for system in systems if system.pe.memory_capacity % 1e9 == 0]
    assert of_label == ["abci", "dgx1-v100"]


@pytest.mark.parametrize("name", list_names("system"))
def test_links_are_those_of_known_networks(name: str) -> None:
    """In one direction, in a node those of a PE: NVLink 5 is the fastest, PCIe 3 the slowest."""
    node, *others = find("system", name, Path()).levels
    assert 3e-6 <= node.latency <= 1e-5
    assert 30e9 <= node.bandwidth <= 900e9
    for level in others:
        assert node.latency <= level.latency <= 5e-5
        assert 1e9 <= level.bandwidth <= 100e9


# Numbers that a source states.
NUMBERS = {
    "usable memory": "usable",
    "power": "power",
    "peaks and memory": r"peaks?\b.*memory|memory.*peaks?\b",
    "efficiency": "assumption: efficiency",
    "latencies": r"latencies.*NCCL|NCCL.*latencies",
    "network": r"adapters|Gbit/s|units|pods|cubes",
}
# The paper states the other numbers of ABCI.
OTHERS = [name for name in list_names("system") if name != "abci"]


@pytest.mark.parametrize("name", OTHERS)
def test_every_number_of_a_machine_has_a_source(name: str) -> None:
    source = "; ".join(find("system", name, Path()).source)
    missing = [number for number, words in NUMBERS.items() if not re.search(words, source)]
    assert not missing


def test_every_machine_has_its_peaks_tested() -> None:
    assert sorted(row[0] for row in PEAKS) == list(list_names("system"))


@pytest.mark.parametrize("name", list_names("system"))
def test_machines_are_of_whole_nodes(name: str) -> None:
    system = find("system", name, Path())
    assert system.size == system.levels[-1].pes
    assert all(level.pes % system.pes_per_node == 0 for level in system.levels)
