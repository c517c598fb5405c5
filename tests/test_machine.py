"""The machine oracle from end to end, against published facts of real machines.

Figures: NVIDIA's recipes of ResNet-50 (batches that fit a V100 of 16 GB), the authors' profiles,
docs/machine.md. Images per second of one PE: tests/benchmarks/test_priors.py.
"""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from jax import Array

import paradl
from paradl.grids.entries.names import list_names
from paradl.grids.grid import Grid
from paradl.grids.reading.errors import InputError
from paradl.grids.spec import Spec
from paradl.kernels.arrays import xp
from paradl.kernels.compiled import compiled
from paradl.kernels.configuration.case import Case
from paradl.kernels.oracle.answer import evaluate
from paradl.kernels.oracle.formulas import reduce_layers
from paradl.sweep.questions.predict import predict


def predict_cell(
    model: str = "resnet50",
    strategy: str = "serial",
    pe: int = 1,
    batch: int = 32,
    system: str = "abci",
    dataset: str = "imagenet",
    parameters: dict[str, object] | None = None,
    **settings: object,
) -> dict[str, Any]:
    chosen = {"oracle": "machine", **settings}
    return predict(
        model,
        strategy,
        pe,
        batch,
        system=system,
        dataset=dataset,
        parameters=parameters,
        settings=chosen,
    )


@pytest.mark.parametrize(
    ("system", "batch", "gigabytes"),
    [("abci", 128, 16), ("abci:precision=amp", 256, 16), ("abci", 32, 5)],
)
def test_batches_that_public_recipes_take_fit(system, batch, gigabytes) -> None:
    answer = predict_cell(batch=batch, system=system)
    assert answer["feasible"]
    assert answer["memory"] < gigabytes * 1e9
    parts = answer["memory_parts"]
    assert sum(parts.values()) == pytest.approx(answer["memory"])


def test_a_spatial_group_of_16_holds_a_sixteenth_of_cosmoflow() -> None:
    """About 2 GB and reserved memory, where Table III's bound is 12 to 48 GB."""
    answer = predict_cell("cosmoflow", "spatial", 16, 1, dataset="cosmoflow-512")
    assert 2e9 < answer["memory"] < 3.5e9
    assert not predict_cell("cosmoflow", dataset="cosmoflow-512", batch=1)["feasible"]


@pytest.mark.parametrize(
    ("model", "dataset", "batch", "measured"),
    [
        ("resnet50", "imagenet-226", 32, 320.6),
        ("vgg16", "imagenet-226", 32, 121.3),
        ("alexnet", "imagenet-226", 256, 1637),
        ("cosmoflow", "cosmoflow-256", 1, 3.795),
    ],
)
def test_a_profile_counts_with_the_batch_that_it_was_taken_with(
    model, dataset, batch, measured
) -> None:
    """The authors' profiles, which exclude the update."""
    answer = predict_cell(model, batch=batch, dataset=dataset, optimizer="none", calibration="none")
    assert answer["times"] == "measured"
    assert answer["global_batch"] / answer["iteration_time"] == pytest.approx(measured, rel=1e-3)
    # Other precisions were not measured.
    assert predict_cell(model, dataset=dataset, system="abci:precision=amp")["times"] == "roofline"


@pytest.mark.parametrize("system", list_names("system"))
def test_every_machine_answers(system) -> None:
    strategy = "data+spatial+pipeline:spatial=2,pipeline=2"
    answer = predict_cell(strategy=strategy, pe=4, system=system)
    assert answer["oracle"] == "machine"
    assert 0 < answer["comp_time"] < np.inf
    assert 0 <= answer["comm_time"] < np.inf


def read(strategy: str, pe: list[int], **more: object) -> Grid:
    axes = {"model": "vgg16", "dataset": "imagenet", "system": "abci", "strategy": strategy}
    spec = {"oracle": "machine", "axes": axes | {"pe": pe, "batch": 8, **more}}
    return Grid.from_spec(Spec.model_validate(spec))


@pytest.mark.parametrize("strategy", ["spatial", "filter", "channel"])
def test_memory_never_rises_along_divisors(strategy) -> None:
    needed = [predict_cell("vgg16", strategy, pe, 8)["memory"] for pe in (1, 2, 4, 8, 16, 32, 64)]
    assert all(later <= earlier for earlier, later in pairwise(needed))


def test_a_precision_sets_peak_and_bytes_together() -> None:
    single, mixed = (
        predict_cell(strategy="data", pe=8, system=f"dgx1-v100{how}") for how in ("", AMP)
    )
    assert (single["precision"], mixed["precision"]) == ("fp32", "amp")
    assert mixed["parameters"]["peak_flops"] == 125e12
    assert mixed["parameters"]["delta"] == 2
    assert mixed["comm_time"] < single["comm_time"]
    assert mixed["comp_time"] < single["comp_time"] / 2


AMP = ":precision=amp"


@pytest.mark.parametrize(
    ("settings", "parameters", "message"),
    [
        ({}, {"gamma": 0.25}, "'gamma'"),
        ({}, {"delta": 2}, "'delta'"),
        ({"oracle": "paper", "calibration": "abci"}, {}, "Table III takes no calibration"),
        ({"oracle": "machines"}, {}, "oracle"),
    ],
)
def test_settings_of_the_other_oracle_are_refused(settings, parameters, message) -> None:
    with pytest.raises(InputError, match=message):
        predict_cell(parameters=parameters, **settings)


def test_a_store_says_which_oracle_made_it(tmp_path: Path) -> None:
    spec = {
        "oracle": "machine",
        "axes": {
            "model": "resnet50",
            "dataset": "imagenet",
            "system": ["dgx-a100", "dgx-a100:precision=tf32,software=plain"],
            "strategy": "data",
            "pe": [1, 2, 8, 64],
            "batch": [32, 256],
            "accumulate": [1, 3],
        },
        "outputs": ["comp_time", "comm_time", "memory", "limit", "pass_overhead", "input_wait"],
    }
    paradl.run(spec, tmp_path / "cube.zarr")
    cube = paradl.open_dataset(tmp_path / "cube.zarr")
    assert '"oracle": "machine"' in cube.attrs["paradl_spec"]
    systems = cube.paradl.grid.systems
    assert [system.precision for system in systems] == ["amp", "tf32"]
    assert [system.software for system in systems] == ["ddp", "plain"]
    line = cube.sel(pe=8, batch=256, accumulate=3)
    mixed, tensor = line.comp_time.compute().values.ravel()
    assert mixed < tensor  # half the bytes, and twice the peak
    for system in cube.system.values:
        expected = predict_cell("resnet50", "data", 8, 256, system, parameters={"accumulate": 3})
        cell = line.sel(system=system).squeeze()
        for name in ("comp_time", "comm_time", "memory"):
            assert float(cell[name]) == pytest.approx(expected[name], rel=1e-6)
        assert float(cell.paradl.global_batch) == 3 * 8 * 256
        assert float(cell.paradl.iteration_time) == pytest.approx(
            expected["iteration_time"], rel=1e-6
        )


def test_definitions_that_name_no_oracle_are_the_papers() -> None:
    definition = read("data", [1, 2]).definition()
    assert definition["oracle"] == "machine"
    old = {key: value for key, value in definition.items() if key not in ("oracle", "calibration")}
    assert Grid.from_definition(old).spec.oracle == "paper"
    assert Grid.from_definition(definition).spec.oracle == "machine"


PE_FIELDS = (
    "memory_bandwidth",
    "peak_flops",
    "convolution_2d",
    "elementwise_passes",
    "half_channels",
    "winograd",
)


@pytest.mark.usefixtures("float64")
def test_gradients_are_central_differences() -> None:
    """Of an epoch's time and memory, by fields of a PE, launches, batch and bandwidth."""
    grid = read("data+spatial+pipeline:spatial=2,pipeline=4", [64])
    case, groups = grid.case((0, 0, 0, 0)), grid.groups((0, 0, 0, 0))
    assert isinstance(case, Case)
    assert groups is not None
    division = groups.divide(groups.place()[0])

    def answer(theta: Any) -> tuple[Array, Array]:
        factors = dict(zip(PE_FIELDS, theta[3:], strict=True))
        pe = replace(case.pe, **{name: getattr(case.pe, name) * factors[name] for name in factors})
        run = replace(case.run, spec_batch=case.run.spec_batch * theta[0])
        network = replace(case.network, bandwidth=case.network.bandwidth * theta[1])
        launching = case.software.layer_overhead * theta[2]
        software = replace(case.software, layer_overhead=launching)
        work = reduce_layers(replace(division, pe=pe))
        moved = replace(case, work=work, run=run, network=network, pe=pe, software=software)
        result = evaluate(moved)
        return xp.sum(result.compute + result.communication), xp.sum(result.memory)

    ones = np.ones(3 + len(PE_FIELDS))
    # Slopes are of a program, the differences of numpy.
    gradients = compiled()(jax.jacrev(answer))(ones)
    value = compiled(numpy=True)(answer)
    whole, steps = np.asarray(value(ones)), 1e-5 * np.eye(ones.size)
    differences = [
        (np.asarray(value(ones + s)) - np.asarray(value(ones - s))) / 2e-5 for s in steps
    ]
    for part, gradient in enumerate(gradients):
        expected = [difference[part] for difference in differences]
        np.testing.assert_allclose(gradient, expected, rtol=1e-5, atol=1e-9 * whole[part])
        assert np.count_nonzero(gradient) == (1 if part else ones.size)
