"""Grouped, dilated and transposed convolutions, products and free layers, by hand."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paradl.grids.library import find
from paradl.grids.models.architecture import Architecture
from paradl.grids.models.layers import LayerTable
from paradl.grids.reading.errors import InputError, ShapeError


def table(*layers: object, shape: tuple[int, ...] = (8, 6, 6)) -> LayerTable:
    definition = {"name": "net", "rank": len(shape) - 1, "layers": list(layers)}
    return Architecture.from_definition(definition).layers_for(shape, 10)


def test_groups_read_their_own_channels() -> None:
    """4 groups of 2 channels and 3 filters, 3x3, onto 4x4."""
    layers = table({"conv": {"filters": 12, "kernel": 3, "groups": 4}})
    assert (layers.w[0], layers.bias[0]) == (12 * 2 * 9, 12)
    assert layers.flops[0] == 2 * 12 * 2 * 9 * 16
    assert (layers.groups[0], layers.channels[0], layers.filters[0]) == (4, 8, 12)


def test_a_depthwise_convolution_has_as_many_groups_as_channels() -> None:
    word = {"filters": 16, "kernel": 3, "padding": "same", "bias": False}
    layers = table({"conv": {**word, "groups": "channels"}}, {"conv": {**word, "groups": 8}})
    assert layers.groups.tolist() == [8, 8]
    assert layers.w.tolist() == [16 * 9, 16 * 2 * 9]


def test_shared_weights_are_counted_where_they_are_made() -> None:
    word = {"filters": 8, "kernel": 3, "padding": "same", "groups": 2}
    layers = table({"conv": word}, {"conv": {**word, "shared": True}})
    assert layers.flops[0] == layers.flops[1] == 2 * 8 * 4 * 9 * 36
    assert (layers.w.tolist(), layers.bias.tolist()) == ([8 * 4 * 9, 0], [8, 0])


def test_one_group_is_dense() -> None:
    word = {"filters": 16, "kernel": 3}
    dense, grouped = table({"conv": word}), table({"conv": {**word, "groups": 1, "dilation": 1}})
    for name in ("x", "y", "w", "bias", "flops", "groups", "kernel", "stride"):
        assert getattr(dense, name).tolist() == getattr(grouped, name).tolist()


def test_a_dilated_kernel_spans_its_gaps() -> None:
    """3 rows 2 apart span 5 of 6, and 3 adjacent columns span 3: 2 x 4 windows of 9 weights."""
    layers = table({"conv": {"filters": 1, "kernel": 3, "dilation": [2, 1]}})
    assert layers.extents_y.tolist() == [[1, 2, 4]]
    assert layers.kernel.tolist() == [[1, 5, 3]]
    assert (layers.w[0], layers.flops[0]) == (8 * 9, 2 * 8 * 9 * 8)


def test_same_keeps_the_extents_of_a_dilated_convolution() -> None:
    word = {"filters": 8, "kernel": 3, "padding": "same"}
    layers = table(*({"conv": {**word, "dilation": value}} for value in (1, 2, 5)))
    assert layers.extents_y.tolist() == [[1, 6, 6]] * 3


@pytest.mark.parametrize(
    ("word", "extent"),
    [
        ({"kernel": 2, "stride": 2}, 12),
        ({"kernel": 3, "stride": 2}, 13),
        ({"kernel": 3, "stride": 2, "padding": 1}, 11),
        ({"kernel": 3, "stride": 2, "padding": 1, "output_padding": 1}, 12),
        ({"kernel": 3, "dilation": 2}, 10),
    ],
)
def test_a_transposed_convolution(word: dict[str, int], extent: int) -> None:
    """Each of 6x6 inputs meets all weights, whatever the output."""
    layers = table({"transposed_conv": {"filters": 4, **word}})
    assert layers.extents_y.tolist() == [[1, extent, extent]]
    weights = 8 * 4 * word["kernel"] ** 2
    assert (layers.w[0], layers.bias[0], layers.flops[0]) == (weights, 4, 2 * weights * 36)
    stride = 1 / word.get("stride", 1)
    assert layers.stride.tolist() == [[1, stride, stride]]


windows = st.fixed_dictionaries(
    {
        "kernel": st.integers(1, 5),
        "stride": st.integers(1, 4),
        "dilation": st.integers(1, 3),
        "padding": st.integers(0, 2),
    }
)


@given(windows, st.integers(16, 24))
def test_a_transposed_convolution_undoes_a_convolution(word: dict[str, int], extent: int) -> None:
    """With the rows left over by the convolution as output padding, sizes are restored."""
    span = word["dilation"] * (word["kernel"] - 1) + 1
    left_over = (extent + 2 * word["padding"] - span) % word["stride"]
    back = {**word, "output_padding": left_over, "filters": 8, "groups": 2}
    layers = table(
        {"conv": {"filters": 4, **word}}, {"transposed_conv": back}, shape=(8, extent, extent)
    )
    assert layers.extents_y[1].tolist() == [1, extent, extent]
    # Both count each weight at each position of the smaller side.
    assert layers.flops[1] / layers.w[1] == layers.flops[0] / layers.w[0]


def test_a_gate_scales_what_came_in() -> None:
    """Channels by their means: 8 x 36 items and 8 are inputs, and both are kept."""
    gate = [{"adaptive_avgpool": 1}, {"conv": {"filters": 8, "kernel": 1}}, "sigmoid"]
    layers = table({"multiply": gate})
    assert layers.names[-1] == "multiply1.multiply"
    assert layers.inputs[-1] == (-1, 2)
    assert (layers.x[-1], layers.y[-1], layers.flops[-1]) == (8 * 36 + 8, 8 * 36, 8 * 36)
    assert layers.kept_items.tolist() == [288 + 8, 0, 8, 0]  # the sample with the first layer


def test_what_has_one_channel_counts_for_all() -> None:
    one = [{"conv": {"filters": 1, "kernel": 1}}]
    assert table({"multiply": {"gate": one}}).filters[-1] == 8
    column = [{"adaptive_avgpool": [6, 1]}]
    row = [{"conv": {"filters": 1, "kernel": [6, 1]}}]
    outer = table({"multiply": {"gate": row, "body": column}})
    assert outer.extents_y[-1].tolist() == [1, 6, 6]
    assert (outer.x[-1], outer.y[-1]) == (8 * 6 + 6, 8 * 36)


def test_a_curved_activation_keeps_its_input_too() -> None:
    conv = {"conv": {"filters": 8, "kernel": 1}}
    straight, curved = table(conv, "relu", conv), table(conv, "silu", conv)
    assert straight.kept_items.tolist() == [288, 288, 0]
    assert curved.kept_items.tolist() == [288 + 288, 288, 0]


def test_a_free_layer_counts_as_it_is_stated() -> None:
    word = {"flops": "2e6", "weights": 100, "biases": 4, "inputs": 500, "outputs": [3, 4, 2]}
    layers = table({"free": word}, {"fc": {"outputs": 2, "bias": False}})
    counts = (layers.x, layers.y, layers.w, layers.bias, layers.flops)
    assert [count[0] for count in counts] == [500, 24, 100, 4, 2e6]
    assert layers.w[1] == 24 * 2
    assert layers.extents_x[0].tolist() == layers.extents_y[0].tolist() == [1, 1, 1]
    assert (layers.divisible_filters[0], layers.divisible_channels[0]) == (1, 1)


@pytest.mark.parametrize(("outputs", "items"), [(None, 288), (7, 7), ("targets", 10)])
def test_what_a_free_layer_gives(outputs: object, items: int) -> None:
    word = {"flops": 0} if outputs is None else {"flops": 0, "outputs": outputs}
    assert table({"free": word}).y[0] == items


def test_a_free_layer_as_a_known_one() -> None:
    """A fully connected layer with its author's counts."""
    known = table({"fc": {"outputs": 5}})
    free = table({"free": {"flops": 2 * 288 * 5, "weights": 288 * 5, "biases": 5, "outputs": 5}})
    for name in ("x", "y", "w", "bias", "flops", "channels", "filters", "kept_items", "crossing"):
        assert getattr(free, name).tolist() == getattr(known, name).tolist()


CONV = {"filters": 12, "kernel": 3}
REFUSED = [
    ({"conv": {**CONV, "groups": 3}}, "net: layer conv1:"),
    ({"conv": {**CONV, "filters": 9, "groups": "channels"}}, "8 channels in and 9 filters, got 8"),
    ({"conv": {**CONV, "dilation": [1, 2, 3]}}, "expected 1 or 2 numbers as dilation, got 3"),
    ({"free": {"flops": 1, "outputs": [3, 4]}}, "outputs:"),
    (
        {"transposed_conv": {**CONV, "stride": 2, "output_padding": 3}},
        "layer transposed_conv1: output_padding:",
    ),
]


@pytest.mark.parametrize(("layer", "message"), REFUSED)
def test_what_does_not_fit_is_refused(layer: object, message: str) -> None:
    with pytest.raises(InputError) as error:
        table(layer)
    assert message in str(error.value)
    assert len(str(error.value)) < 300


@pytest.mark.parametrize(
    ("layer", "message"),
    [
        ({"multiply": [{"conv": {"filters": 3, "kernel": 1}}]}, "multiply1.multiply:"),
        ({"transposed_conv": {**CONV, "padding": 9}}, "transposed_conv1:"),
        ({"conv": {**CONV, "dilation": 3}}, "conv1:"),
    ],
)
def test_a_sample_that_does_not_fit(layer: object, message: str) -> None:
    with pytest.raises(ShapeError) as error:
        table(layer)
    assert message in str(error.value)


WRONG = [
    ("{conv: {filters: 8, kernel: 3, dilation: 0}}", "layers.0.conv.dilation.0:"),
    ("{conv: {filters: 8, kernel: 3, groups: 0}}", "layers.0.conv.groups:"),
    ("{conv: {filters: 8, kernel: 3, group: 2}}", "unknown key; did you mean 'groups'?"),
    ("{free: {flops: -1}}", "layers.0.free.flops:"),
    ("{free: {flops: 1, weights: -5}}", "layers.0.free.weights:"),
    ("{free: {flops: 1, outputs: [0, 1, 1]}}", "layers.0.free.outputs.0:"),
    ("{free: {flops: .nan}}", "layers.0.free.flops"),
    ("{free: {}}", "layers.0.free.flops:"),
    ("attend", "layers.0.attend:"),
    ("{conv: {filters: 8, kernel: 3, groups: chanels}}", "conv.groups:"),
    ("hardswsh", "layers.0.hardswsh:"),
    ("{transpose_conv: 8}", "unknown key; did you mean 'transposed_conv'?"),
]


@pytest.mark.parametrize(("layer", "message"), WRONG)
def test_a_wrong_word_or_number_is_one_message(tmp_path: Path, layer: str, message: str) -> None:
    file = tmp_path / "net.yaml"
    file.write_text(f"name: net\nrank: 2\nlayers:\n  - {layer}\n  - relu\n")
    with pytest.raises(InputError) as error:
        find("model", str(file), Path())
    assert f"{file}:4: " in str(error.value)
    assert message in str(error.value)
    assert len(str(error.value)) < 1000
    assert len(str(error.value).splitlines()) == 1
