"""Shape inference against layers written out by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paradl.grids.models.architecture import Architecture
from paradl.grids.models.layers import LayerTable
from paradl.grids.reading.errors import InputError, ShapeError


def table(*layers: object, shape: tuple[int, ...] = (3, 8, 8), targets: int = 10) -> LayerTable:
    definition = {"name": "net", "rank": len(shape) - 1, "layers": list(layers)}
    return Architecture.from_definition(definition).layers_for(shape, targets)


def test_convolution() -> None:
    """4 filters of 3x3x5 with stride 2: 8x8 padded by 1 and 2 gives 4x4."""
    conv = {"filters": 4, "kernel": [3, 5], "stride": 2, "padding": [1, 2]}
    layers = table({"conv": conv})
    assert (layers.names, layers.kinds) == (("conv1",), ("conv",))
    assert (layers.x[0], layers.y[0]) == (3 * 8 * 8, 4 * 4 * 4)
    assert (layers.w[0], layers.bias[0]) == (3 * 4 * 15, 4)
    assert layers.flops[0] == 2 * (3 * 15) * (4 * 4 * 4)
    assert (layers.channels[0], layers.filters[0]) == (3, 4)
    assert layers.extents_x.tolist() == [[1, 8, 8]]
    assert layers.extents_y.tolist() == [[1, 4, 4]]
    assert layers.kernel.tolist() == [[1, 3, 5]]


def test_three_dimensions() -> None:
    conv = {"filters": 2, "kernel": [1, 2, 3], "bias": False}
    layers = table({"conv": conv}, shape=(4, 6, 6, 6))
    assert layers.extents_y.tolist() == [[6, 5, 4]]
    assert layers.kernel.tolist() == [[1, 2, 3]]
    assert (layers.w[0], layers.bias[0]) == (4 * 2 * 6, 0)


def test_fully_connected() -> None:
    """All items in, extents 1, kernel 1; flatten before it changes nothing and adds no layer."""
    for layers in (table({"fc": "targets"}), table("flatten", {"fc": "targets"})):
        assert layers.kinds == ("fc",)
        assert (layers.channels[0], layers.filters[0]) == (192, 10)
        assert (layers.w[0], layers.bias[0], layers.flops[0]) == (1920, 10, 3840)
        assert layers.extents_x.tolist() == layers.kernel.tolist() == [[1, 1, 1]]


@pytest.mark.parametrize(
    ("word", "kind", "weights"),
    [("relu", "relu", 0), ("dropout", "dropout", 0), ("batchnorm", "norm", 3)],
)
def test_element_wise(word: str, kind: str, weights: int) -> None:
    layers = table(word)
    assert layers.kinds == (kind,)
    assert layers.x[0] == layers.y[0] == layers.flops[0] == 192
    assert layers.w[0] == layers.bias[0] == weights


def test_pool() -> None:
    layers = table({"maxpool": {"kernel": 3, "stride": 2}})
    assert layers.extents_y.tolist() == [[1, 3, 3]]
    assert layers.flops[0] == 3 * 3 * 3 * 9
    assert layers.w[0] == 0


@pytest.mark.parametrize(
    ("extent", "window", "expected"),
    [
        (8, {"kernel": 3, "stride": 2, "ceil": True}, 4),
        (7, {"kernel": 3, "stride": 2, "ceil": True}, 3),
        (8, {"kernel": 3}, 2),  # windows side by side
        (8, {"kernel": 3, "padding": "same"}, 3),
        (5, {"kernel": 1, "stride": 3, "ceil": True}, 2),  # a third would begin behind the edge
        (113, {"kernel": 2, "stride": 2, "ceil": True}, 57),  # VGG16 of ParaDL's authors, at 226
    ],
)
def test_pool_extent(extent: int, window: dict[str, object], expected: int) -> None:
    assert table({"avgpool": window}, shape=(1, extent, extent)).extents_y[0, 2] == expected


@given(st.integers(1, 40), st.integers(1, 7), st.integers(1, 4))
def test_same_padding_divides_by_the_stride_and_rounds_up(x: int, kernel: int, stride: int) -> None:
    conv = {"filters": 1, "kernel": kernel, "stride": stride, "padding": "same"}
    assert table({"conv": conv}, shape=(1, x, x)).extents_y[0, 2] == -(-x // stride)


@pytest.mark.parametrize(("extent", "kernel"), [(14, 2), (15, 3), (7, 1), (3, 1)])
def test_adaptive_pool(extent: int, kernel: int) -> None:
    """To 7x7 from any input, even a smaller one."""
    layers = table({"adaptive_avgpool": 7}, shape=(2, extent, extent))
    assert layers.extents_y.tolist() == [[1, 7, 7]]
    assert layers.kernel.tolist() == [[1, kernel, kernel]]
    assert layers.flops[0] == 2 * 49 * kernel**2


def test_residual() -> None:
    body = [{"conv": {"filters": 3, "kernel": 3, "padding": 1}}, "relu"]
    layers = table({"residual": {"body": body}}, "relu")
    assert layers.names == ("residual1.conv1", "residual1.relu1", "residual1.add", "relu1")
    assert (layers.x[2], layers.y[2], layers.flops[2]) == (2 * 192, 192, 192)


def test_concatenation_and_side_head() -> None:
    layers = table(
        {"concat": [[{"conv": {"filters": 5, "kernel": 1}}], []]},
        {"side": [{"fc": 7}]},
        {"fc": {"outputs": 2, "name": "head"}},
    )
    assert layers.names == ("concat1.branch1.conv1", "concat1.concat", "side1.fc1", "head")
    assert layers.x[1] == layers.y[1] == (5 + 3) * 64
    assert layers.channels[2] == layers.channels[3] == 8 * 64  # the trunk goes on from its input


@pytest.mark.parametrize(
    ("layers", "message"),
    [
        ([{"conv": {"filters": 1, "kernel": 9}}], "conv1:"),
        ([{"maxpool": 2}] * 4, "maxpool4:"),
        ([{"residual": [{"conv": {"filters": 4, "kernel": 1}}]}], "residual1.add:"),
        ([{"concat": [[{"maxpool": 2}], []]}], "concat1.concat:"),
    ],
)
def test_a_sample_that_does_not_fit(layers: list[object], message: str) -> None:
    with pytest.raises(ShapeError) as error:
        table(*layers)
    assert str(error.value).startswith(message)


def test_another_rank() -> None:
    architecture = Architecture.from_definition({"name": "net", "rank": 3, "layers": ["relu"]})
    with pytest.raises(ShapeError, match="net takes samples of 3 spatial dimensions, got 2"):
        architecture.layers_for((3, 8, 8), 10)


def test_mistakes_of_the_author_are_no_shape_errors() -> None:
    with pytest.raises(InputError, match=r"layer maxpool1: .* kernel, got 3"):
        table({"maxpool": [2, 2, 2]})
    with pytest.raises(InputError, match="net: two layers are called 'a'"):
        table({"relu": "a"}, {"dropout": "a"})
