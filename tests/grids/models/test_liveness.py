"""What the backward pass reads, against layers by hand, published counts and measured memory."""

from pathlib import Path

import numpy as np
import pytest
from budgets import limit_examples
from hypothesis import given
from hypothesis import strategies as st

from grids.library import find
from grids.models.architecture import Architecture
from grids.models.kinds import KINDS
from grids.models.layers import LayerTable
from grids.models.netfile import parse_net

MIB = 2**20
FP32 = 4  # bytes an item

SHAPE, ITEMS = (4, 8, 8), 256
CONV = {"conv": {"filters": 4, "kernel": 3, "padding": "same"}}  # keeps the shape


def table(*layers: object, shape: tuple[int, ...] = SHAPE) -> LayerTable:
    definition = {"name": "net", "rank": 2, "layers": list(layers)}
    return Architecture.from_definition(definition).layers_for(shape, 1000)


def catalogued(name: str, extent: int) -> LayerTable:
    model = find("model", name, Path())
    assert isinstance(model, Architecture)
    return model.layers_for((3, extent, extent), 1000)


def kept(layers: LayerTable) -> dict[str, float]:
    """Items of each layer that is kept at all."""
    items = zip(layers.names, layers.kept_items.tolist(), strict=True)
    return {name: each for name, each in items if each}


def test_a_network_by_hand() -> None:
    """3x8x8 -> conv 4x8x8 -> norm -> relu -> maxpool 4x4x4 -> dropout -> fc 10 -> relu -> fc 2.

    Kept: the sample and conv's output (norm reads it), relu's, the pool's indices, dropout's mask
    and output (fc reads it), the second relu's. Not: norm's output, overwritten by relu; the
    pool's, read by dropout alone; the first fc's, overwritten; the last one's.
    """
    fc = {"fc": {"outputs": 10, "bias": False}}
    layers = table(
        CONV, "batchnorm", "relu", {"maxpool": 2}, "dropout", fc, "relu", {"fc": 2}, shape=(3, 8, 8)
    )
    assert layers.inputs == ((-1,), (0,), (1,), (2,), (3,), (4,), (5,), (6,))
    assert layers.kept_items.tolist() == [192 + 256, 0, 256, 0, 64, 0, 10, 0]
    assert layers.kept_bytes.tolist() == [0, 0, 0, 8 * 64, 64, 0, 0, 0]
    assert layers.kept_items.dtype == layers.kept_bytes.dtype == np.float64


def test_an_average_pool_remembers_nothing() -> None:
    layers = table({"avgpool": 2}, {"adaptive_avgpool": 1})
    assert not layers.kept_items.any()
    assert not layers.kept_bytes.any()


def test_a_residual_block() -> None:
    """The first relu's output is read by the body and by the addition, which keeps neither."""
    body = [CONV, "batchnorm", "relu", CONV]
    layers = table("relu", {"residual": {"body": body}}, "relu")
    assert layers.names[5] == "residual1.add"
    assert layers.inputs[5:] == ((4, 0), (5,))
    assert kept(layers) == {
        "relu1": ITEMS,
        "residual1.conv1": ITEMS,
        "residual1.relu1": ITEMS,
        "relu2": ITEMS,
    }


def test_a_projection_is_kept_for_its_normalisation() -> None:
    layers = table({"residual": {"body": [CONV], "shortcut": [CONV, "batchnorm"]}})
    assert layers.inputs == ((-1,), (-1,), (1,), (0, 2))
    # The sample, which both convolutions read, once.
    assert kept(layers) == {"residual1.conv1": ITEMS, "residual1.shortcut.conv1": ITEMS}


def test_the_sample_is_kept_once_and_with_the_first_layer() -> None:
    """Read by three convolutions; the first layer is an addition of the sample to itself."""
    layers = table({"concat": [[{"residual": []}], [CONV], [CONV], [CONV]]})
    assert layers.inputs == ((-1, -1), (-1,), (-1,), (-1,), (0, 1, 2, 3))
    assert layers.x[0] == 2 * ITEMS
    assert layers.kept_items.tolist() == [ITEMS, 0, 0, 0, 0]


def test_a_sample_that_nobody_needs_is_not_kept() -> None:
    layers = table({"concat": [[], []]}, "relu")
    assert layers.inputs == ((-1, -1), (0,))
    assert kept(layers) == {"relu1": 2 * ITEMS}


def test_a_concatenation_is_a_copy() -> None:
    """Each branch's relu is kept for itself, and their copy for the convolution behind it."""
    layers = table({"concat": [[CONV, "relu"], ["dropout"]]}, "flatten", {"fc": 2})
    assert layers.inputs == ((-1,), (0,), (-1,), (1, 2), (3,))
    assert layers.kept_items.tolist() == [ITEMS, ITEMS, 0, 2 * ITEMS, 0]
    assert layers.kept_bytes.tolist() == [0, 0, ITEMS, 0, 0]


def test_the_trunk_goes_on_beside_a_head() -> None:
    layers = table("batchnorm", {"side": [CONV, "relu"]}, {"fc": 2})
    assert layers.inputs == ((-1,), (0,), (1,), (0,))
    assert layers.kept_items.tolist() == [2 * ITEMS, 0, ITEMS, 0]


def test_a_relu_beside_another_reader_is_not_in_place() -> None:
    """conv1's output is needed by conv2 and must not be overwritten: both are kept."""
    layers = table(CONV, {"concat": [["relu"], [CONV]]})
    assert kept(layers) == {"conv1": 2 * ITEMS, "concat1.branch1.relu1": ITEMS}


def test_a_relu_does_not_overwrite_another_one_s_output() -> None:
    assert kept(table(CONV, "relu", "relu")) == {
        "conv1": ITEMS,  # the sample
        "relu1": ITEMS,
        "relu2": ITEMS,
    }


def test_a_file_s_chain_keeps_what_the_graph_does() -> None:
    """Of a block whose shortcut is its input: the addition, which the file shows without its second
    input, keeps neither. An addition whose x is twice its y reads the layer before it all the same.
    """
    rows = """\
Input|10x4x8x8
CONV1|4x8x8|4x4x3x3|4x8x8|0
RELU|4x8x8|4x4x0x0|4x8x8|0
CONV2|4x8x8|4x4x3x3|4x8x8|0
BNORM|4x8x8|4x4x0x0|4x8x8|0
ADD|4x8x8|4x4x0x0|4x8x8|0
RELU|4x8x8|4x4x0x0|4x8x8|0
MPOOL|4x8x8|0x0x2x2|4x4x4|0
APOOL|4x4x4|0x0x4x4|4x1x1|0
"""
    chain = parse_net(rows, "net", "net").layers
    doubled = parse_net(rows.replace("ADD|4x8x8", "ADD|8x8x8"), "net", "net").layers
    graph = table(
        CONV,
        "relu",
        {"residual": {"body": [CONV, "batchnorm"]}},
        "relu",
        {"maxpool": 2},
        {"avgpool": 4},
    )
    assert chain.inputs == doubled.inputs == tuple((n - 1,) for n in range(8))
    for layers in (chain, doubled):
        assert layers.kept_items.tolist() == graph.kept_items.tolist()
        assert layers.kept_bytes.tolist() == graph.kept_bytes.tolist()


# ---- Published: convnet-burden (Albanie), forward features of a sample [MiB], fp32, ReLU in place.


def count_features(layers: LayerTable) -> float:
    """MiB of all outputs but those of ReLU."""
    in_place = np.array([KINDS[kind].keeps_output for kind in layers.kinds])
    return float(layers.y[~in_place].sum()) * FP32 / MIB


def count_kept(layers: LayerTable) -> float:
    """MiB that the backward pass reads."""
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
    layers = table(
        {"conv": {"filters": 96, "kernel": 11, "stride": 4}},
        pool,
        {"conv": {"filters": 256, "kernel": 5, "padding": 2}},
        pool,
        *middle,
        pool,
        *({"fc": outputs} for outputs in (4096, 4096, 1000)),
        shape=(3, 227, 227),
    )
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
    each = layers.kept_items * FP32 + layers.kept_bytes
    gradients = (layers.x + layers.y) * FP32
    bound = b * (each.sum() + gradients.max())
    peak = b * (each.cumsum() + gradients).max()
    assert megabytes * 1e6 / bound == pytest.approx(share, abs=5e-4)
    assert megabytes * MIB / peak == pytest.approx(ratio, abs=5e-4)


# ---- Properties, of networks whose layers keep the shape.

PLAIN = st.sampled_from(
    [
        CONV,
        "batchnorm",
        "relu",
        "dropout",
        {"maxpool": {"kernel": 3, "stride": 1, "padding": 1}},
        {"avgpool": {"kernel": 3, "stride": 1, "padding": 1}},
    ]
)


def nest(steps: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    """Steps with such steps inside; a concatenation is brought back to the shape."""
    some = st.lists(steps, max_size=3)
    sides = st.fixed_dictionaries({"body": some, "shortcut": some})
    residual = sides.map(lambda settings: {"residual": settings})
    joined = st.builds(lambda *branches: {"concat": [*branches]}, some, some)
    back = joined.map(lambda concat: {"residual": {"body": [concat, CONV]}})
    return residual | back | some.map(lambda head: {"side": head})


STEPS = st.lists(st.recursive(PLAIN, nest, max_leaves=8), max_size=5)
TARGET = {"conv": {"name": "target", **CONV["conv"]}}


@limit_examples(200)
@given(STEPS)
def test_a_tensor_is_kept_once_where_it_is_needed(steps: list[object]) -> None:
    """Each tensor by itself; what is kept is no more than all that there is."""
    layers = table(*steps, CONV)
    readers = [
        {kind for kind, read in zip(layers.kinds, layers.inputs, strict=True) if made in read}
        for made in range(-1, len(layers))
    ]
    needed = [bool(each & {"conv", "norm", "fc"}) for each in readers]
    tensors = [ITEMS, *layers.y]
    needed[1:] = [
        need or kind == "relu" for need, kind in zip(needed[1:], layers.kinds, strict=True)
    ]
    assert layers.kept_items.sum() == sum(
        each for each, need in zip(tensors, needed, strict=True) if need
    )
    assert layers.kept_items.sum() <= sum(tensors)
    assert (layers.kept_items[1:] <= layers.y[1:]).all()
    assert (layers.kept_bytes <= 8 * layers.y).all()


@limit_examples(200)
@given(STEPS, STEPS)
def test_a_relu_behind_a_convolution(before: list[object], after: list[object]) -> None:
    """Takes the memory of convolution's output: nothing more, where that was kept.

    Where it was not (a pool, an addition, dropout or a relu read it, or nothing), a tensor is kept.
    """
    without, with_relu = table(*before, TARGET, *after), table(*before, TARGET, "relu", *after)
    row = without.names.index("target")
    was_kept = any(
        row in read and KINDS[kind].keeps_input
        for kind, read in zip(without.kinds, without.inputs, strict=True)
    )
    more = with_relu.kept_items.sum() - without.kept_items.sum()
    assert more == (0 if was_kept else ITEMS)
    assert with_relu.kept_bytes.sum() == without.kept_bytes.sum()
