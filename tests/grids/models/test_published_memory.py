"""Memory kept by catalogued networks, against published counts and measurements."""

from pathlib import Path

import numpy as np
import pytest

from paradl.grids.library import find
from paradl.grids.models.architecture import Architecture
from paradl.grids.models.kinds import KINDS
from paradl.grids.models.layers import LayerTable

MIB = 2**20
FP32 = 4  # bytes an item


def catalogued(name: str, extent: int) -> LayerTable:
    model = find("model", name, Path())
    assert isinstance(model, Architecture)
    return model.layers_for((3, extent, extent), 1000)


# ---- Published: convnet-burden (Albanie), forward features per sample [MiB], fp32, in-place ReLU.


def count_features(layers: LayerTable) -> float:
    """Return MiB of all outputs except those of ReLU."""
    in_place = np.array([KINDS[kind].keeps_output for kind in layers.kinds])
    return float(layers.y[~in_place].sum()) * FP32 / MIB


def count_kept(layers: LayerTable) -> float:
    """Return MiB that the backward pass reads."""
    return float(layers.kept_items.sum() * FP32 + layers.kept_bytes.sum()) / MIB


FEATURES = [  # published, counted here, what is kept of it
    ("resnet50", 103, 106.6, 0.768),
    ("resnet152", 219, 223.0, 0.759),
    ("vgg16", 58, 57.7, 1.211),  # with a pool's 8 bytes an index; 1.008 without
]


@pytest.mark.parametrize(("name", "published", "counted", "share"), FEATURES)
def test_published_features(name: str, published: float, counted: float, share: float) -> None:
    features = count_features(catalogued(name, 224))
    assert features == pytest.approx(published, rel=0.05)
    assert features == pytest.approx(counted, abs=0.05)
    assert count_kept(catalogued(name, 224)) / features == pytest.approx(share, abs=5e-4)


@pytest.mark.parametrize(("name", "published"), [("resnet50", 103), ("resnet152", 219)])
def test_published_features_are_of_version_1(name: str, published: int) -> None:
    """Which has a stage's stride on its first 1x1: a quarter of its and its normalisation's items.

    That makes ResNet-50's 106.6 MiB 102.6, ResNet-152's 223.0 MiB 219.0.
    """
    layers = catalogued(name, 224)
    early = {f"layer{stage}.0.{part}" for stage in (2, 3, 4) for part in ("conv1", "bn1")}
    larger = layers.y[[name in early for name in layers.names]].sum() * 0.75 * FP32 / MIB
    assert round(count_features(layers) - larger) == published


def test_published_features_of_alexnet_are_of_two_towers() -> None:
    """The network of 2012, without its local response normalisations: 2.98 MiB, published as 3.

    The catalogue's has one tower, of fewer filters, and 2.34 MiB.
    """
    pool = {"maxpool": {"kernel": 3, "stride": 2}}
    middle = [
        {"conv": {"filters": filters, "kernel": 3, "padding": 1}} for filters in (384, 384, 256)
    ]
    two_towers = [
        {"conv": {"filters": 96, "kernel": 11, "stride": 4}},
        pool,
        {"conv": {"filters": 256, "kernel": 5, "padding": 2}},
        pool,
        *middle,
        pool,
        *({"fc": outputs} for outputs in (4096, 4096, 1000)),
    ]
    definition = {"name": "net", "rank": 2, "layers": two_towers}
    layers = Architecture.from_definition(definition).layers_for((3, 227, 227), 1000)
    assert round(count_features(layers)) == 3
    assert count_features(catalogued("alexnet", 227)) == pytest.approx(2.34, abs=5e-3)


# ---- Measured: OptimalGradCheckpointing (Feng and Huang), README, training without checkpoints, in
# "MB": activations and gradients alone, without weights and the CUDA context; fp32 is inferred.

MEASURED = [
    # extent, b, "MB"; of 1e6 bytes: part of b (kept + max_l (x_l + y_l)); of MiB: times the peak.
    ("alexnet", 224, 1024, 4955, 0.928, 1.322),
    ("vgg16", 224, 64, 5136, 0.811, 1.142),
    ("resnet50", 224, 64, 5323, 0.871, 1.006),
    ("resnet152", 224, 16, 2767, 0.924, 1.017),
    ("inception_v3", 300, 32, 3074, 0.878, 1.014),
]


@pytest.mark.parametrize(("name", "extent", "b", "megabytes", "share", "ratio"), MEASURED)
def test_measured_memory(
    name: str, extent: int, b: int, megabytes: float, share: float, ratio: float
) -> None:
    """All kept tensors and the largest gradients bound it: it is 0.81 to 0.93 of them.

    They are not there together: the largest gradients are those of early layers, at which the
    tensors of all later ones are gone. What is there at layer l is what the layers up to it keep,
    x_l and y_l. Of that peak, the ResNets and Inception took 1.01 to 1.02 times, if MB are MiB; of
    1e6 bytes, they would have held less (0.97 to 0.98) than their backward pass reads. AlexNet and
    VGG16 took 1.3 and 0.7 GB more: gradients of weights are 0.2 and 0.6 GB of it; the rest is no
    tensor of a layer, but workspaces, perhaps.
    """
    layers = catalogued(name, extent)
    values = layers.kept_items * FP32 + layers.kept_bytes
    gradients = (layers.x + layers.y) * FP32
    bound = b * (values.sum() + gradients.max())
    peak = b * (values.cumsum() + gradients).max()
    assert megabytes * 1e6 / bound == pytest.approx(share, abs=5e-4)
    assert megabytes * MIB / peak == pytest.approx(ratio, abs=5e-4)
