"""Grids: labels and axes of a spec, and the same grid restored from its definition."""

import json
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from paradl.grids.grid import Grid, Index
from paradl.grids.reading.errors import InputError
from paradl.grids.spec import Spec
from paradl.kernels.configuration.answers import Answer
from paradl.kernels.configuration.run import Terms
from paradl.kernels.names.arrays import Floats
from paradl.kernels.options import Options
from paradl.kernels.oracle.answer import answer_case

TINY = """\
name: tiny
rank: 2
layers:
- conv: {filters: 8, kernel: 3, padding: same}
- relu
- flatten
- fc: {outputs: targets}
"""
SQUARES = "name: squares\nsamples: 1000\nshape: [3, 16, 16]\ntargets: 10\n"
PAIR = """\
name: pair
pe: {name: PE, device: none, peak_flops: 1 TFLOP/s, efficiency: 0.5, memory_capacity: 1 GB,
     memory_bandwidth: 100 GB/s}
pes_per_node: 2
links_per_node: 1
levels:
- {name: node, pes: 2, latency: 1 us, bandwidth: 10 GB/s}
- {name: all, pes: 64, latency: 5 us, bandwidth: 1 GB/s}
"""


USERS = {"model": "./tiny.yaml", "dataset": "./squares.yaml", "system": "./pair.yaml"}


def grid(base: Path = Path(), changes: Mapping[str, object] | None = None, **axes: Any) -> Grid:
    usual = {
        "model": ["resnet50", "cosmoflow"],
        "dataset": ["imagenet-226", "cosmoflow-128"],
        "system": "abci",
        "strategy": ["data", "data+filter:group=8", "pipeline:segments=8"],
        "pe": {"pow2": [1, 64]},
        "batch": [16, 32],
    }
    chosen = {name: value for name, value in (usual | axes).items() if value is not None}
    return Grid.from_spec(
        Spec.model_validate({"oracle": "paper", "axes": chosen, **(changes or {})}), base
    )


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A user's own model, data set and system."""
    for name, text in (("tiny", TINY), ("squares", SQUARES), ("pair", PAIR)):
        (tmp_path / f"{name}.yaml").write_text(text)
    return tmp_path


def same(one: Answer, other: Answer) -> None:
    for name in ("memory", "limit", "replicas", "group"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    for field in fields(Terms):
        np.testing.assert_array_equal(
            getattr(one.terms, field.name), getattr(other.terms, field.name)
        )


def answered(space: Grid, index: Index, axes: Mapping[str, Floats] | None = None) -> Answer:
    """Answer a case that must exist."""
    case = space.case(index, axes)
    assert case is not None
    return answer_case(case)


def seconds_of(space: Grid) -> Floats | None:
    """Return the first model's layer times; None for the roofline."""
    workload = space.workload(0, 0, 0)
    assert workload is not None
    return workload.seconds


def written_and_read(space: Grid) -> Grid:
    return Grid.from_definition(json.loads(json.dumps(space.definition())))


def test_labels_axes_and_shape() -> None:
    space = grid(gamma=[0.5, 1])
    assert space.dims == ("model", "dataset", "system", "strategy", "pe", "batch", "gamma")
    assert space.shape == (2, 2, 1, 3, 7, 2, 2)
    assert space.labels["strategy"] == ("data", "data+filter:group=8", "pipeline:segments=8")
    assert space.axes["pe"].tolist() == [1, 2, 4, 8, 16, 32, 64]


def test_options_are_the_specs() -> None:
    changes = {
        "collectives": "best",
        "allreduce": "hierarchical",
        "iterations": "ceil",
        "optimizer": "adam",
    }
    assert grid(changes=changes).options == Options("paper", "best", "hierarchical", "ceil", "adam")


def test_samples_that_do_not_fit_a_model_are_no_problem() -> None:
    space = grid()
    assert space.case((0, 0, 0, 0)) is not None
    assert space.case((0, 1, 0, 0)) is None  # a plane network, samples with a depth
    assert space.case((1, 0, 0, 0)) is None
    assert space.case((1, 1, 0, 0)) is not None


def test_a_block_is_a_part_of_the_whole() -> None:
    space = grid()
    whole = answered(space, (0, 0, 0, 1))
    axes = {"pe": space.axes["pe"][3:5], "batch": space.axes["batch"][1:]}
    block = answered(space, (0, 0, 0, 1), axes)
    np.testing.assert_array_equal(block.compute, np.asarray(whole.compute)[3:5, 1:])
    np.testing.assert_array_equal(block.limit, whole.limit[3:5, 1:])


def test_measured_times_or_the_roofline() -> None:
    measured = seconds_of(grid())
    assert measured is not None
    assert measured.sum() == pytest.approx(3.119502e-3)
    assert seconds_of(grid(changes={"times": "roofline"})) is None


@pytest.mark.parametrize("strategy", range(3))
def test_the_definition_gives_the_same_grid(strategy) -> None:
    space = grid(phi=[1, 2], changes={"parameters": {"gamma": 0.5}, "optimizer": "adam"})
    again = written_and_read(space)
    assert (again.labels, again.shape) == (space.labels, space.shape)
    assert (again.models, again.datasets, again.systems) == (
        space.models,
        space.datasets,
        space.systems,
    )
    assert again.definition() == space.definition()
    index = (0, 0, 0, strategy)
    same(answered(again, index), answered(space, index))


def test_a_users_files(files: Path) -> None:
    names: dict[str, Any] = {
        "model": "./tiny.yaml",
        "dataset": "./squares.yaml",
        "system": "./pair.yaml",
    }
    space = grid(files, **names, strategy=["filter"], pe=[1, 2], batch=4)
    assert [space.labels[dim][0] for dim in names] == ["tiny", "squares", "pair"]
    answer = answered(space, (0, 0, 0, 0))
    # AG + AR of the convolution's 8 x 16 x 16 items, for 250 iterations
    gathered = 3 * (1e-6 + 4 * 4 * 2048 / 2 / 10e9)
    assert np.ravel(answer.terms.layer_collectives) == pytest.approx([0, 250 * gathered])


def test_a_definition_needs_no_files(files: Path) -> None:
    names: dict[str, Any] = {
        "model": "./tiny.yaml",
        "dataset": "./squares.yaml",
        "system": "./pair.yaml",
    }
    space = grid(files, **names)
    for name in names.values():
        (files / name).unlink()
    again = written_and_read(space)
    same(answered(again, (0, 0, 0, 1)), answered(space, (0, 0, 0, 1)))


@pytest.mark.parametrize(
    ("axes", "message"),
    [
        ({"model": "resnet5"}, "unknown model 'resnet5'; did you mean 'resnet50'?"),
        ({"dataset": "imagnet"}, "unknown dataset 'imagnet'; did you mean 'imagenet'?"),
        ({"system": "abc"}, "unknown system 'abc'; did you mean 'abci'?"),
        ({"system": "./none.yaml"}, "none.yaml:"),
        ({"dataset": None}, "axes.dataset:"),
        ({"model": ["vgg16", "vgg16"]}, "axes.model: 'vgg16'"),
        (
            {"strategy": ["spatial:split=wh", "spatial:split=hw"]},
            "axes.strategy: 'spatial:split=hw'",
        ),
        ({"model": {"nmae": "mine"}}, "model without a name: name: this key is missing"),
    ],
)
def test_mistakes(axes, message) -> None:
    with pytest.raises(InputError) as error:
        grid(Path(), **axes)
    assert message in str(error.value)


def test_a_spec_in_yaml_is_the_same_grid(tmp_path: Path) -> None:
    """Specs and definitions share one language."""
    space = grid()
    path = tmp_path / "again.yaml"
    path.write_text(yaml.safe_dump(space.definition()))
    again = Grid.from_definition(yaml.safe_load(path.read_text()))
    assert again.definition() == space.definition()


def test_two_precisions_of_a_machine_in_one_grid() -> None:
    space = grid(system=["dgx-h100", "dgx-h100:precision=tf32"])
    again = written_and_read(space)
    for value in (space, again):
        assert value.labels["system"] == ("dgx-h100", "dgx-h100:precision=tf32")
        assert [system.precision for system in value.systems] == ["amp", "tf32"]
    assert again.definition() == space.definition()


def test_two_ways_of_sending_gradients_in_one_grid() -> None:
    labels = ("abci", "abci:software=ddp", "abci:precision=amp,software=ddp")
    space = grid(system=[*labels[:2], "abci:software=ddp,precision=amp"])
    again = written_and_read(space)
    for value in (space, again):
        assert value.labels["system"] == labels
        assert [system.software for system in value.systems] == ["plain", "ddp", "ddp"]
    assert again.definition() == space.definition()
    with pytest.raises(InputError, match=r"axes\.system: 'abci'"):
        grid(system=["abci", "abci:software=plain"])


def test_a_machines_own_precision_is_no_second_machine() -> None:
    with pytest.raises(InputError, match=r"axes\.system: 'dgx-h100'"):
        grid(system=["dgx-h100", "dgx-h100:precision=amp"])


def test_a_precision_that_is_none_has_its_place() -> None:
    with pytest.raises(
        InputError, match=r"^axes\.system\.1: abci:precision=am: precision: unknown"
    ):
        grid(system=["dgx-h100", "abci:precision=am"])
