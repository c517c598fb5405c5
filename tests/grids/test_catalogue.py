"""Every entry of the catalogue against published facts."""

import re
from itertools import pairwise
from pathlib import Path
from typing import get_args

import pytest

from grids.entries.datasets import Dataset
from grids.entries.names import Kind, list_names
from grids.entries.precision import PRECISIONS
from grids.library import find
from grids.models.layers import LayerTable
from grids.reading.errors import InputError, ShapeError

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
    ("resnext50_32x4d", 224, 25_028_904, 4.23),
    ("resnext101_32x4d", 224, 44_177_704, 8.01),
]


@pytest.mark.parametrize(("model", "extent", "parameters", "gmacs"), PUBLISHED)
def test_published_counts(model: str, extent: int, parameters: int, gmacs: float) -> None:
    layers = table(model, 3, extent, extent)
    assert layers.parameters == parameters
    half_a_digit = 0.5e7  # of what is printed with two behind the point
    assert layers.macs == pytest.approx(gmacs * 1e9, rel=0.01, abs=half_a_digit)


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


def test_names_are_unique() -> None:
    for model, extent, _, _ in PUBLISHED:
        layers = table(model, 3, extent, extent)
        assert len(set(layers.names)) == len(layers)


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
]
# Peaks for transformers in fp8, mxfp8, nvfp4; machines not listed have none.
LOW_PEAKS = {
    **dict.fromkeys(("dgx-h100", "dgx-h200", "grand-teton"), (1979, None, None)),
    "mi300x": (2614.9, None, None),
    "dgx-b200": (4500, 4500, 9000),
    "gb200-nvl72": (5000, 5000, 10000),
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


# Numbers that a source states.
NUMBERS = {
    "peaks and memory": r"peaks?\b.*memory|memory.*peaks?\b",
    "efficiency": "assumption: efficiency",
    "latencies": r"latencies.*NCCL|NCCL.*latencies",
    "network": r"adapters|Gbit/s|units|pods|cubes",
}
# The paper states all numbers of ABCI.
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
