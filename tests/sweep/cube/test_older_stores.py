"""What earlier code wrote is read: stores, and a calibration, from before paradl was one package.

tests/data/before_one_package.zip was written by the commit before, with `sweep.run` and `paradl
calibrate`; the numbers here are that commit's answers.
"""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import paradl

WRITTEN = Path(__file__).parents[2] / "data" / "before_one_package.zip"
TIMES = {
    "cube.zarr": ["0x1.4cb2b2p+10", "nan", "0x1.4cb2b2p+10", "0x1.1c5074p+9"],
    "layouts.zarr": ["0x1.d40f4cp+22", "0x1.e695f4p+21"],
}
BEST = {"cube.zarr": ("data", 8), "layouts.zarr": ("data+tensor:tensor=8", 16)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    unpacked = tmp_path_factory.mktemp("older")
    shutil.unpack_archive(WRITTEN, unpacked)
    return unpacked


@pytest.mark.parametrize("name", TIMES)
def test_a_store_is_read(name, folder):
    cube = paradl.open_dataset(folder / name)
    times = (cube.comp_time + cube.comm_time).values.ravel()
    expected = np.array([float.fromhex(time) for time in TIMES[name]])
    np.testing.assert_array_equal(times, expected)
    first = paradl.best(folder / name).iloc[0]
    assert (first["strategy"], first["pe"]) == BEST[name]
    assert np.float32(first["epoch_time"]) == np.nanmin(expected)
    last = paradl.limits(folder / name).iloc[-1]
    assert (last["strategy"], last["largest_pe"]) == BEST[name]


def test_a_calibration_is_read(folder):
    place: dict[str, Any] = {"dataset": "pile", "system": "dgx-h100"}
    mine, prior = (
        paradl.predict(
            "llama2_7b", "data+tensor:tensor=8", 32, 64, **place, settings={"calibration": name}
        )
        for name in (str(folder / "mine.yaml"), "none")
    )
    assert mine["iteration_time"] != prior["iteration_time"]
