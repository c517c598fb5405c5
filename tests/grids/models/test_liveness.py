"""Tensors kept for the backward pass: by hand, and for random networks."""

import numpy as np
from budgets import limit_examples
from hypothesis import given
from hypothesis import strategies as st

from paradl.grids.models.architecture import Architecture
from paradl.grids.models.kinds import KINDS
from paradl.grids.models.layers import LayerTable

SHAPE, ITEMS = (4, 8, 8), 256
CONV = {"conv": {"filters": 4, "kernel": 3, "padding": "same"}}  # keeps the shape


def table(*layers: object, shape: tuple[int, ...] = SHAPE) -> LayerTable:
    definition = {"name": "net", "rank": 2, "layers": list(layers)}
    return Architecture.from_definition(definition).layers_for(shape, 1000)


def kept(layers: LayerTable) -> dict[str, float]:
    """Return the items of each layer that keeps any."""
    items = zip(layers.names, layers.kept_items.tolist(), strict=True)
    return {name: item for name, item in items if item}


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
    # The sample, which both convolutions read, counts once.
    assert kept(layers) == {"residual1.conv1": ITEMS, "residual1.shortcut.conv1": ITEMS}


def test_the_sample_is_kept_once_and_with_the_first_layer() -> None:
    """Read by three convolutions; the first layer adds the sample to itself."""
    layers = table({"concat": [[{"residual": []}], [CONV], [CONV], [CONV]]})
    assert layers.inputs == ((-1, -1), (-1,), (-1,), (-1,), (0, 1, 2, 3))
    assert layers.x[0] == 2 * ITEMS
    assert layers.kept_items.tolist() == [ITEMS, 0, 0, 0, 0]


def test_a_sample_that_nobody_needs_is_not_kept() -> None:
    layers = table({"concat": [[], []]}, "relu")
    assert layers.inputs == ((-1, -1), (0,))
    assert kept(layers) == {"relu1": 2 * ITEMS}


def test_a_concatenation_is_a_copy() -> None:
    """Each branch's relu is kept for itself, and their copy for the convolution after it."""
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


# ---- Properties of networks whose layers keep the shape.

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
    """Nest steps inside steps; a concatenation is brought back to the shape."""
    some = st.lists(steps, max_size=3)
    sides = st.fixed_dictionaries({"body": some, "shortcut": some})
    residual = sides.map(lambda settings: {"residual": settings})
    joined = st.builds(lambda *branches: {"concat": [*branches]}, some, some)
    back = joined.map(lambda concat: {"residual": {"body": [concat, CONV]}})
    return residual | back | some.map(lambda head: {"side": head})


STEPS = st.lists(st.recursive(PLAIN, nest, max_leaves=8), max_size=5)
TARGET = {"conv": {"name": "target", **CONV["conv"]}}


@limit_examples(60)
@given(STEPS)
def test_a_tensor_is_kept_once_where_it_is_needed(steps: list[object]) -> None:
    """Count every tensor separately; no more is kept than exists."""
    layers = table(*steps, CONV)
    readers = [
        {kind for kind, read in zip(layers.kinds, layers.inputs, strict=True) if made in read}
        for made in range(-1, len(layers))
    ]
    needed = [bool(reader & {"conv", "norm", "fc"}) for reader in readers]
    tensors = [ITEMS, *layers.y]
    needed[1:] = [
        need or kind == "relu" for need, kind in zip(needed[1:], layers.kinds, strict=True)
    ]
    assert layers.kept_items.sum() == sum(
        tensor for tensor, need in zip(tensors, needed, strict=True) if need
    )
    assert layers.kept_items.sum() <= sum(tensors)
    assert (layers.kept_items[1:] <= layers.y[1:]).all()
    assert (layers.kept_bytes <= 8 * layers.y).all()


@limit_examples(30)
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


def test_cheap_layers_that_run_again_by_hand() -> None:
    """The network above, whose pool remembers 8 bytes of each of 64 outputs and whose dropout one.

    The second relu stays: it works in place on what the first fc made, which nobody else keeps. The
    first fc reads dropout's output: for its backward pass relu's, the pool's indices, dropout's
    mask and output are there once more. The pool reads relu's, and the relu its own.
    """
    fc = {"fc": {"outputs": 10, "bias": False}}
    layers = table(
        CONV, "batchnorm", "relu", {"maxpool": 2}, "dropout", fc, "relu", {"fc": 2}, shape=(3, 8, 8)
    )
    assert layers.rerun.tolist() == [False, True, True, True, True, False, False, False]
    assert layers.rerun_items.tolist() == [0, 0, 256, 0, 64, 0, 0, 0]
    items = layers.count_rerun(layers.rerun_items)
    assert items.tolist() == [0, 0, 256, 256, 320, 320, 0, 0]
    sizes = layers.count_rerun(layers.rerun * layers.kept_bytes)
    assert sizes.tolist() == [0, 0, 0, 512, 576, 576, 0, 0]


def test_what_nobody_reads_does_not_run_again() -> None:
    """A norm in front of an addition, which keeps nothing: its relu follows from nothing kept."""
    layers = table({"residual": [CONV, "batchnorm"]}, "relu", CONV)
    assert not layers.rerun.any()
