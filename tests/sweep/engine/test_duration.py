from pathlib import Path

import pytest

from paradl.sweep.cube.plan import plan_cube
from paradl.sweep.engine.resources import START, estimate_duration
from paradl.sweep.engine.run import read_grid

EXAMPLES = Path(__file__).parents[3] / "examples"
SPEC = {
    "axes": {
        "model": "resnet50",
        "dataset": "imagenet",
        "system": "abci",
        "strategy": ["data", "data+filter:group=4"],
        "pe": {"range": [1, 1024]},
        "batch": {"range": [1, 128]},
    }
}


@pytest.mark.parametrize(
    ("name", "cold", "warm"),
    # CPU seconds of one run each, on two cores of an AMD EPYC (2026-11).
    [("small", 2.5, 2.6), ("hybrid", 8.2, 8.4), ("links", 2.3, 2.3), ("billion", 29.3, 14.0)],
)
def test_measured_runs_lie_within_the_range(name, cold, warm):
    grid = read_grid(EXAMPLES / f"{name}.yaml")
    if name == "billion":
        grid = grid.drop_outputs()
    least, most = estimate_duration(grid, plan_cube(grid), 2)
    assert least <= (START[0] + warm) / 2  # one core starts, two work
    assert max(cold, warm) <= most
    assert most <= 10 * least


@pytest.mark.parametrize(
    "more",
    [
        {"outputs": ["comp_time", "epoch_time_p90"]},
        {"outputs": ["comp_time", "elasticity_epoch_time_inter_bandwidth"]},
        {"axes": SPEC["axes"] | {"strategy": ["data", "data+filter:group=best"]}},
        {"axes": SPEC["axes"] | {"inter_latency": ["1 us", "2 us"]}},
    ],
)
def test_what_takes_longer_is_estimated_to(more):
    plain, longer = (
        estimate_duration(grid, plan_cube(grid), 2) for grid in map(read_grid, (SPEC, SPEC | more))
    )
    assert plain[0] < longer[0]
    assert plain[1] < longer[1]


def test_workers_share_the_work():
    grid = read_grid(SPEC)
    few, many = (estimate_duration(grid, plan_cube(grid), cores) for cores in (2, 16))
    assert many[0] < few[0]
    assert many[1] == few[1]


# Each leaves more open than the one before it.
LAYOUTS = [
    "data+tensor+pipeline:tensor=2,pipeline=2,micro=1",
    "data+tensor+pipeline:tensor=2,pipeline=2,micro=best",
    "data+tensor+pipeline:tensor=best,pipeline=best,micro=best",
    "data+tensor+pipeline:tensor=best,pipeline=best,micro=best,recompute=best,zero=best",
]


def estimate_layouts(strategy, **axes):
    given = {"dataset": "pile", "system": "dgx-h100:precision=bf16", "strategy": strategy}
    usual = {"model": "llama3_8b", "pe": [64, 512], "batch": [16, 32, 64]}
    grid = read_grid({"axes": given | usual | axes})
    return estimate_duration(grid, plan_cube(grid), 2)


def test_the_more_layouts_there_are_to_choose_from_the_longer_it_takes():
    least, most = zip(*map(estimate_layouts, LAYOUTS), strict=True)
    assert sorted({*least}) == [*least]
    assert sorted({*most}) == [*most]


@pytest.mark.parametrize("axes", [{"pe": [1024, 2048]}, {"batch": [1024, 2048, 4096]}])
def test_cells_with_more_layouts_take_longer(axes):
    few, many = estimate_layouts(LAYOUTS[-1]), estimate_layouts(LAYOUTS[-1], **axes)
    assert few[0] < many[0]
    assert few[1] < many[1]


@pytest.mark.parametrize(
    ("model", "cold", "warm"),
    # CPU seconds as above: degrees, micro-batch, recomputation, sequence and ZeRO are `best`.
    [("llama3_8b", 4.0, 3.8), ("deepseek_v3", 6.9, 7.0)],
)
def test_measured_searches_for_layouts_lie_within_the_range(model, cold, warm):
    names = ["tensor", "context", "pipeline", *(["expert"] if model == "deepseek_v3" else [])]
    settings = [*names, "micro", "recompute", "zero", *(["sequence"] if len(names) == 3 else [])]
    strategy = f"data+{'+'.join(names)}:{','.join(f'{name}=best' for name in settings)}"
    powers = {"pe": {"pow2": [8, 1024]}, "batch": {"pow2": [1, 128]}}
    least, most = estimate_layouts(strategy, model=model, **powers)
    assert least <= (START[0] + warm) / 2
    assert max(cold, warm) <= most
    assert most <= 10 * least
