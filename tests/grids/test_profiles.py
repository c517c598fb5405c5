"""Measured profiles: the same shape first, else the nearest one."""

import pytest

from grids.library import names
from grids.profiles import measured


@pytest.mark.parametrize(
    ("model", "shape", "of_shape", "seconds"),
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
def test_measured(
    model: str, shape: tuple[int, ...], of_shape: tuple[int, ...], seconds: float
) -> None:
    profile = measured(model, "v100", shape)
    assert profile is not None
    assert profile.shape == of_shape
    assert profile.seconds == pytest.approx(seconds, rel=1e-4)
    assert profile.source


def test_not_measured() -> None:
    assert measured("resnet50", "h100", (3, 226, 226)) is None
    assert measured("inception_v3", "v100", (3, 299, 299)) is None
    assert "inception_v3" in names("model")
