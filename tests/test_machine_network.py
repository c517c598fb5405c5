"""Networks of the machine oracle, as users see them: sizes, software, oversubscription."""

from pathlib import Path
from typing import Any

import pytest
import xarray as xr
import yaml

import paradl
from paradl.grids.library import find
from paradl.grids.reading.errors import InputError

# 16 nodes of 4 PEs, 4 nodes a rack; one link a node.
LEVELS = [
    {"name": "node", "pes": 4, "latency": "4 us", "bandwidth": "100 GB/s"},
    {"name": "rack", "pes": 16, "latency": "10 us", "bandwidth": "10 GB/s"},
    {"name": "system", "pes": 64, "latency": "10 us", "bandwidth": "10 GB/s"},
]


def write_machine(folder: Path, **changes: Any) -> str:
    """A file of the machine of LEVELS, whose gradients leave as one message."""
    definition = find("system", "dgx1-v100", Path()).definition()
    definition |= {"name": "mine", "pes_per_node": 4, "links_per_node": 1, "software": "plain"}
    definition |= {"levels": LEVELS, "size": 48} | changes
    del definition["mesh"]  # of eight
    path = folder / "mine.yaml"
    path.write_text(yaml.safe_dump(definition))
    return str(path)


def ask(strategy: str, pe: int, batch: int = 32, **more: Any) -> dict[str, Any]:
    return paradl.predict("resnet50", strategy, pe, batch, dataset="imagenet", **more)


# How many PEs there are.


@pytest.mark.parametrize(("pe", "limit"), [(48, []), (49, ["machine_too_small"])])
def test_more_pes_than_there_are_are_refused(tmp_path: Path, pe, limit) -> None:
    system = write_machine(tmp_path)
    answer = ask("data", pe, system=system)
    assert answer["limit"] == limit
    assert answer["feasible"] == (not limit)
    assert answer["epoch_time"] > 0
    # Table III knows no size.
    paper = ask("data", pe, system=system, settings={"oracle": "paper"})
    assert "machine_too_small" not in paper["limit"]


@pytest.fixture(scope="module")
def cube(tmp_path_factory: pytest.TempPathFactory) -> xr.Dataset:
    """Groups that are looked for, of several passes, also beyond the machine's size."""
    folder = tmp_path_factory.mktemp("cube")
    axes: dict[str, Any] = {"model": "resnet50", "dataset": "imagenet", "batch": 32}
    axes |= {"system": write_machine(folder), "pe": [16, 32, 48, 64, 128]}
    axes |= {"strategy": "data+pipeline:group=best"}
    outputs = ["comp_time", "comm_time", "memory", "limit", "replicas"]
    spec = {"axes": axes, "parameters": {"accumulate": 3}, "outputs": outputs}
    return paradl.run(spec, folder / "cube.zarr")


def test_a_cube_its_best_and_its_limits_know_the_size(cube: xr.Dataset) -> None:
    line = cube.squeeze()
    reasons = [line.paradl.reasons(int(flag)) for flag in line.limit]
    assert ["machine_too_small" in reason for reason in reasons] == [False] * 3 + [True] * 2
    assert line.paradl.feasible.values.tolist() == [True] * 3 + [False] * 2
    rows = paradl.limits(cube).to_dict("records")
    assert {row["largest_pe"] for row in rows} == {48}
    assert {row["forbidden_by"] for row in rows} == {"machine_too_small"}
    assert max(row["pe"] for row in paradl.best(cube).to_dict("records")) == 48


def test_a_cube_counts_the_passes_that_all_of_its_cells_have(
    cube: xr.Dataset, tmp_path: Path
) -> None:
    """An axis of them is in tests/test_machine.py."""
    cell = cube.sel(pe=32).squeeze()
    system = write_machine(tmp_path)
    result, once = (
        ask("data+pipeline:group=best", 32, system=system, parameters={"accumulate": passes})
        for passes in (3, 1)
    )
    assert float(cell.paradl.global_batch) == result["global_batch"] == 3 * once["global_batch"]
    assert float(cell.paradl.iteration_time) == pytest.approx(result["iteration_time"], rel=1e-6)


def test_the_smallest_group_is_one_that_the_machine_has(tmp_path: Path) -> None:
    """Four PEs hold 512 samples: of two there are none that do."""
    assert ask("spatial", 1, 512, system=write_machine(tmp_path))["smallest_group"] == 4
    small = write_machine(tmp_path, size=2, levels=LEVELS)
    assert ask("spatial", 1, 512, system=small)["smallest_group"] == 0


def test_a_size_beyond_the_last_level_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="size: expected at most the 64 PEs of 'system'"):
        ask("data", 4, system=write_machine(tmp_path, size=65))


# Links between racks.


def count_bandwidth(folder: Path, strategy: str, oversubscription: float) -> float:
    """[B/s] that a ring across replicas has of 32 PEs in two racks."""
    levels = [dict(level) for level in LEVELS]
    levels[1]["oversubscription"] = oversubscription
    answer = ask(strategy, 32, system=write_machine(folder, levels=levels))
    return float(answer["parameters"]["replica_bandwidth"])


@pytest.mark.parametrize(
    ("strategy", "free", "narrow"),
    [
        ("data", 10e9, 10e9),  # one ring crosses each link between racks once
        ("data+filter:group=2", 5e9, 5e9),
        ("data+filter:group=4", 2.5e9, 2.5e9),  # four, of a node each
        ("data+filter:group=8", 2.5e9, 1.25e9),  # half of a rack's PEs send at once
        ("data+filter:group=16", 2.5e9, 0.625e9),  # all of them
        ("data+spatial:group=16", 10e9, 10e9),  # one ring of all PEs
    ],
)
def test_oversubscription_is_felt_by_rings_that_reach_across(
    tmp_path: Path, strategy, free, narrow
) -> None:
    assert count_bandwidth(tmp_path, strategy, 1) == pytest.approx(free)
    assert count_bandwidth(tmp_path, strategy, 4) == pytest.approx(narrow)


# Measured collectives.


# Software.


def test_ddp_hides_what_plain_does_not() -> None:
    plain, ddp = (ask("data", 64, system=f"abci:software={how}") for how in ("plain", "ddp"))
    assert (plain["system"], ddp["system"]) == ("abci", "abci:software=ddp")
    assert plain["terms"]["hidden_communication"] == 0 < ddp["terms"]["hidden_communication"]
    assert ddp["comm_time"] < plain["comm_time"]
    assert ddp["parameters"]["bucket"] == 25 * 2**20
    assert plain["parameters"]["bucket"] is None


def test_what_software_determines_can_be_stated_otherwise() -> None:
    stated = {"bucket": "25 MiB", "overlap": 0.7}
    plain = ask("data", 64, system="abci", parameters=stated)
    assert plain["parameters"]["overlap"] == 0.7
    assert plain["terms"]["hidden_communication"] > 0


def test_software_is_of_the_machine_oracle_alone() -> None:
    plain, ddp = (
        ask("data", 64, system=f"abci:software={how}", settings={"oracle": "paper"})
        for how in ("plain", "ddp")
    )
    assert plain["epoch_time"] == ddp["epoch_time"]
    assert ddp["terms"]["hidden_communication"] == 0
