"""Measured profiles: the same shape first, then the nearest, spread by FLOPs."""

from pathlib import Path

import pytest

from paradl.grids.entries.datasets import Dataset
from paradl.grids.library import find
from paradl.grids.models.architecture import find_nearest_profile


def model(name):
    return find("model", name, Path())


@pytest.mark.parametrize(
    ("name", "shape", "of_shape", "seconds"),
    [
        ("resnet50", (3, 226, 226), (3, 226, 226), 3.1195e-3),
        ("resnet50", (3, 224, 224), (3, 226, 226), 3.1195e-3),
        ("resnet152", (3, 226, 226), (3, 226, 226), 7.4e-3),
        ("vgg16", (3, 226, 226), (3, 226, 226), 8.245589e-3),
        ("alexnet", (3, 226, 226), (3, 226, 226), 6.109e-4),
        ("cosmoflow", (4, 512, 512, 512), (4, 512, 512, 512), 2.108143184),
        ("cosmoflow", (4, 256, 256, 256), (4, 256, 256, 256), 0.263517898),
        ("cosmoflow", (4, 128, 128, 128), (4, 256, 256, 256), 0.263517898),
    ],
)
def test_nearest_profile(name, shape, of_shape, seconds) -> None:
    profile = find_nearest_profile(model(name).profiles, "v100", shape)
    assert profile is not None
    assert profile.shape == of_shape
    assert profile.seconds == pytest.approx(seconds, rel=1e-4)
    assert profile.source


def test_not_measured() -> None:
    assert find_nearest_profile(model("resnet50").profiles, "h100", (3, 226, 226)) is None
    assert find_nearest_profile(model("inception_v3").profiles, "v100", (3, 299, 299)) is None


def test_the_total_is_spread_over_the_layers_by_flops() -> None:
    chosen, dataset = model("resnet50"), find("dataset", "imagenet-226", Path())
    table = chosen.table(dataset)
    seconds = chosen.seconds(dataset, "v100")
    assert seconds.sum() == pytest.approx(3.119502e-3, rel=1e-12)
    assert seconds[0] / seconds.sum() == pytest.approx(table.flops[0] / table.flops.sum())


def test_another_shape_scales_with_its_flops() -> None:
    chosen = model("vgg16")
    small, large = (
        Dataset(name=str(n), samples=1, shape=(3, n, n), targets=1000) for n in (112, 226)
    )
    ratio = chosen.seconds(small, "v100").sum() / chosen.seconds(large, "v100").sum()
    flops = chosen.table(small).flops.sum() / chosen.table(large).flops.sum()
    assert ratio == pytest.approx(flops)
