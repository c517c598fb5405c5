"""Cubes of layouts by earlier formulas: their times are read, without today's intervals."""

import json

import pytest

import paradl


@pytest.mark.parametrize("question", ["best", "limits"])
def test_times_of_earlier_formulas_have_no_intervals(tmp_path, question) -> None:
    axes = {"model": ["llama2_7b"], "dataset": ["pile"], "system": ["dgx-h100"], "batch": [4]}
    spec = {"axes": {**axes, "pe": [8, 16], "strategy": ["data:zero=3,micro=1"]}}
    paradl.run(spec, tmp_path / "cube.zarr")
    cube = paradl.open_dataset(tmp_path / "cube.zarr")
    (now,) = getattr(paradl, question)(cube).to_dict("records")
    assert any(name.endswith("_p10") for name in now)

    versions = json.loads(cube.attrs["paradl_versions"])
    del versions["layouts"]  # cubes did not record it before formulas changed
    cube.attrs["paradl_versions"] = json.dumps(versions)
    (old,) = getattr(paradl, question)(cube).to_dict("records")
    assert not any(name.endswith("_p10") and old[name] for name in old)
    time = "epoch_time" if question == "best" else "fastest_time"
    assert old[time] == now[time] > 0
