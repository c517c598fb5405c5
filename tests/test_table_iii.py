"""Table III's rows for the catalogue's networks, with numbers worked out from the table's text.

`conventions: table` takes sums and bounds as they are written, `authors` the layers that the
authors' tool and experiments split and count (docs/oracle.md).
"""

from dataclasses import replace
from itertools import pairwise
from math import prod
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from paradl.grids.grid import Grid
from paradl.grids.inputs.case import build_case
from paradl.grids.library import find
from paradl.grids.models.layers import LayerTable
from paradl.grids.reading.errors import InputError
from paradl.grids.spec import Spec
from paradl.kernels.oracle.answer import answer_case
from paradl.sweep.questions.explain import explain
from paradl.sweep.questions.predict import predict


def table(model: str, dataset: str) -> LayerTable:
    return find("model", model, Path()).table(find("dataset", dataset, Path()))


VGG16 = table("vgg16", "imagenet-226")
B = 32


def ask(strategy: str, pe: int, model: str = "vgg16", **settings: Any) -> dict[str, Any]:
    """By Table III on ABCI, of 226 x 226 pixels and 32 samples a replica."""
    settings = {"oracle": "paper", **settings}
    return predict(model, strategy, pe, B, dataset="imagenet-226", system="abci", settings=settings)


def count_memory(part: np.ndarray) -> float:
    """Sum 4 (2b (x+y) part + 2w + bi) of VGG16, with part = s/p2 + 1-s of each layer."""
    return float(4 * (2 * B * (VGG16.x + VGG16.y) * part + 2 * VGG16.w + VGG16.bias).sum())


def test_spatial_memory_divides_every_layer_with_rows() -> None:
    """4.85 GB: the three fully connected layers and what follows them are single points."""
    rows = np.minimum(VGG16.extents_x, VGG16.extents_y).max(axis=1) > 1
    assert [VGG16.kinds[n] for n in np.flatnonzero(~rows)].count("fc") == 3
    result = ask("spatial", 4)
    assert result["memory"] == pytest.approx(count_memory(np.where(rows, 1 / 4, 1)))
    assert result["memory"] == pytest.approx(4.83e9, rel=0.005)
    assert result["feasible"]


def test_split_all_is_the_sum_without_s() -> None:
    """4.83 GB, and 2,639 s are D/p sum (FW+BW): what has no rows to divide forbids nothing."""
    result = ask("spatial:split=all", 4)
    assert result["memory"] == pytest.approx(count_memory(np.full(len(VGG16), 1 / 4)))
    assert result["memory"] == pytest.approx(4.83e9, rel=0.001)
    assert result["feasible"]
    serial = ask("serial", 1)["terms"]["forward_backward"]
    assert result["terms"]["forward_backward"] == pytest.approx(serial / 4)


def test_the_authors_masks_leave_relus_whole() -> None:
    """10.1 GB; to split all layers is then forbidden by those of one point."""
    assert ask("spatial", 4, conventions="authors")["memory"] == pytest.approx(10.116e9, rel=1e-4)
    assert ask("spatial:split=all", 4, conventions="authors")["limit"] == ["too_many_pes", "uneven"]


def test_poolings_whose_windows_are_apart_have_no_halo() -> None:
    """Five of 2 x 2 and stride 2: with K_l > 1 alone for a rule, exchanges took 34 % longer."""
    apart, all_windows = (ask("spatial", 4, conventions=value) for value in ("table", "authors"))
    ratio = all_windows["terms"]["halo_exchange"] / apart["terms"]["halo_exchange"]
    assert ratio == pytest.approx(1.34, abs=0.005)


def test_no_layer_of_a_sequence_is_divided_by_rows() -> None:
    """Of ViT the patches' convolution alone; to split all layers stays forbidden."""
    assert "too_many_pes" not in ask("spatial", 4, "vit_b_16")["limit"]
    assert "too_many_pes" in ask("spatial:split=all", 4, "vit_b_16")["limit"]


@pytest.mark.parametrize(("model", "least"), [("vgg16", (7, 7)), ("resnet50", (8, 8))])
def test_spatial_groups_are_at_most_the_least_extents(model: str, least: tuple[int, int]) -> None:
    """Behind the last pooling (VGG16), or in front of the global one (ResNet-50, 226 pixels)."""
    most = prod(least)
    assert "too_many_pes" not in ask("spatial", most, model)["limit"]
    assert "too_many_pes" in ask("spatial", 11, model)["limit"]  # a prime number: 1 x 11 parts
    beyond = ask("spatial", 2 * most, model)
    assert "too_many_pes" in beyond["limit"]
    assert beyond["epoch_time"] > 0
    # By the authors' masks layers that are too small run whole.
    assert "too_many_pes" not in ask("spatial", 2 * most, model, conventions="authors")["limit"]


@pytest.mark.parametrize(
    ("model", "conventions", "layers"),
    [
        ("resnet50", "table", 53 + 2 + 1),  # convolutions, poolings, the fully connected layer
        ("resnet50", "authors", 174),  # and 53 normalisations, 49 ReLUs, 16 sums
        ("vgg16", "table", 13 + 6 + 3),
        ("vgg16", "authors", 39),
    ],
)
def test_stages_are_at_most_g_layers(model: str, conventions: str, layers: int) -> None:
    assert "too_many_pes" not in ask("pipeline", layers, model, conventions=conventions)["limit"]
    assert ask("pipeline", layers + 1, model, conventions=conventions)["limit"] == ["too_many_pes"]


def test_a_stage_begins_with_a_layer_of_table_iii() -> None:
    place: dict[str, Any] = {"dataset": "imagenet", "system": "abci"}
    asked = explain("resnet50", "pipeline", 56, B, **place, settings={"oracle": "paper"})
    layers = asked["layers"]
    begins = [b["kind"] for a, b in pairwise(layers) if a["stage"] < b["stage"]]
    assert len(begins) == 55
    assert set(begins) == {"conv", "maxpool", "avgpool", "fc"}


def read(oracle: str, **more: Any) -> Grid:
    axes: dict[str, object] = {"model": ["vgg16"], "dataset": ["imagenet-226"], "system": ["abci"]}
    axes |= {"strategy": ["spatial", "pipeline"], "pe": [4, 64], "batch": B}
    return Grid.from_spec(Spec.model_validate({"oracle": oracle, "axes": axes, **more}))


def test_a_store_of_before_keeps_its_numbers() -> None:
    definition = read("paper").definition()
    assert Grid.from_definition(definition).spec.conventions == "table"
    del definition["conventions"]
    assert Grid.from_definition(definition).spec.conventions == "authors"


def test_the_machine_oracle_has_no_such_choice() -> None:
    with pytest.raises(InputError, match=r"conventions: authors.*oracle: paper"):
        ask("spatial", 4, oracle="machine", conventions="authors")
    assert "conventions" not in read("machine").definition()


@pytest.mark.parametrize("strategy", [0, 1])
def test_the_machine_oracle_is_the_same_to_the_last_bit(strategy: int) -> None:
    grid = read("machine")

    def answer(conventions: str) -> list[bytes]:
        def build(workload, chosen, axes, settings):
            options = replace(settings.options, conventions=conventions)
            return build_case(workload, chosen, axes, replace(settings, options=options))

        case = grid.build(build, (0, 0, 0, strategy), None, None)
        assert case is not None
        return [np.asarray(leaf).tobytes() for leaf in jax.tree.leaves(answer_case(case))]

    assert answer("table") == answer("authors")
