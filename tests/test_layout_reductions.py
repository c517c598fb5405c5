"""`serial` and `data` of transformers: one rank, cubes of both kinds of networks, what they lack.

That they are the layouts whose degrees are all 1: tests/test_join.py.
"""

from typing import Any

import numpy as np
import pytest

import paradl
from paradl.grids.design_space import make_product
from paradl.grids.reading.errors import InputError
from paradl.sweep.cells.memory_cube import compute_cells

NETWORKS = ("llama2_7b", "t5_11b", "mixtral_8x7b", "gpt3_175b")
# What an answer says of a strategy itself.
WORDS = ("strategy", "degrees")


def ask(strategy: str, network: str = "llama2_7b", pe: int = 8, batch: int = 4, **more: Any) -> Any:
    place: dict[str, Any] = {"dataset": "pile:length=1024", "system": "dgx-h100:precision=bf16"}
    answer = paradl.predict(network, strategy, pe, batch, **place, **more)
    return {name: value for name, value in answer.items() if name not in WORDS}


@pytest.mark.parametrize("network", NETWORKS)
def test_serial_stays_on_one_pe(network: str) -> None:
    beyond = ask("serial", network, 8)
    assert "too_many_pes" in beyond["limit"]
    assert beyond["epoch_time"] == ask("serial", network, 1)["epoch_time"]


@pytest.mark.parametrize("zero", [1, 2, 3])
@pytest.mark.parametrize("network", NETWORKS)
def test_one_rank_has_nobody_to_share_with(network: str, zero: int) -> None:
    alone, plain = (ask(label, network, 1) for label in (f"data:zero={zero}", "data"))
    assert {name for name in plain if plain[name] != alone[name]} == {"layout"}


@pytest.mark.parametrize("zero", [1, 2, 3])
def test_one_replica_of_another_network_has_nobody_to_share_with(zero: int) -> None:
    place: dict[str, Any] = {"dataset": "imagenet", "system": "abci"}
    alone, plain = (
        paradl.predict("resnet50", label, 1, 32, **place) for label in (f"data:zero={zero}", "data")
    )
    assert {name for name in plain if plain[name] != alone[name]} == {"strategy"}


def test_cubes_hold_networks_of_both_kinds() -> None:
    values = {
        "model": ["resnet50", "llama2_7b"],
        "dataset": ["imagenet", "pile"],
        "system": "dgx-h100:precision=bf16",
        "strategy": ["serial", "data"],
        "pe": [1, 8],
        "batch": 2,
    }
    cube = compute_cells(make_product(values, {}, {}))
    apart = {
        name: compute_cells(make_product(values | {"model": name, "dataset": data}, {}, {}))
        for name, data in (("resnet50", "imagenet"), ("llama2_7b", "pile"))
    }
    for (name, alone), data in zip(apart.items(), ("imagenet", "pile"), strict=True):
        part = cube.sel(model=[name], dataset=[data])
        for variable in ("comp_time", "comm_time", "memory", "limit"):
            np.testing.assert_array_equal(part[variable].values, alone[variable].values)
    answer = ask("data", pe=8, batch=2)
    cell = apart["llama2_7b"].sel(strategy="data", pe=8).squeeze()
    assert answer["limit"] == ["memory"]
    assert float(cell.memory) == pytest.approx(answer["memory"], rel=0.2)  # of shorter sequences
    assert (apart["llama2_7b"].paradl.efficiency <= 1).all()


@pytest.mark.parametrize(
    ("spec", "named"),
    [
        ({"outputs": ["comp_time", "elasticity_epoch_time_jitter"]}, "jitter"),
        ({"axes": {"system": "abci:precision=fp8"}}, "fp8"),
    ],
)
def test_data_lacks_what_layouts_lack(spec: dict[str, Any], named: str, tmp_path) -> None:
    axes = {"model": "llama2_7b", "dataset": "pile", "system": "abci", "strategy": "data"}
    whole = {"axes": axes | {"pe": 8, "batch": 2} | spec.pop("axes", {}), **spec}
    with pytest.raises(InputError, match=named):
        paradl.run(whole, tmp_path / "cube.zarr")
    assert not any(tmp_path.iterdir())
