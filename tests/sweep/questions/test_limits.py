from typing import Any

import numpy as np
import pytest
import xarray as xr

import paradl
from paradl.grids.reading.errors import InputError
from paradl.kernels.names.flags import FORBIDS, Limit
from paradl.sweep.cube.variables import name_limits


def line(cube: xr.Dataset, row: dict) -> xr.Dataset:
    """The PE counts that a row speaks of."""
    keys = ("model", "dataset", "system", "strategy", "batch", "inter_bandwidth")
    return cube.sel({key: row[key] for key in keys})


@pytest.mark.parametrize("efficiency", [0.1, 0.5, 1.0])
def test_against_brute_force(mixed, efficiency):
    rows = paradl.limits(mixed, efficiency).to_dict("records")
    assert len(rows) == 2 * 6 * 2 * 2
    cube = mixed[["comp_time", "comm_time", "limit", "serial_time"]]
    for row in rows:
        cells = line(cube, row)
        allowed, reached, times = [], [], {}
        spans = cells.comp_time.values.astype(float) + cells.comm_time.values.astype(float)
        alone, flags = float(cells.serial_time), cells.limit.values
        for pe, time, limit in zip(cells.pe.values.tolist(), spans, flags, strict=True):
            if int(limit) & FORBIDS or np.isnan(time):
                continue
            allowed.append(pe)
            times[pe] = time
            if alone / time / pe >= efficiency:
                reached.append(pe)
        assert row["largest_pe"] == max(allowed, default=None)
        assert row["fastest_pe"] == min(times, key=times.__getitem__, default=None)
        expected = pytest.approx(min(times.values()), rel=1e-6) if times else None
        assert row["fastest_time"] == expected
        assert row["efficient_pe"] == max(reached, default=None)
        assert row["forbidden_by"] == forbidding(cells, max(allowed, default=0))


def forbidding(cells: xr.Dataset, largest: int) -> str:
    for pe in cells.pe.values.tolist():
        reasons = int(cells.limit.sel(pe=pe)) & FORBIDS & ~Limit.GROUP_DOES_NOT_DIVIDE
        if pe > largest and reasons:
            return ", ".join(name_limits(reasons))
    return "end of the axis"


def test_serial_goes_no_further_than_one_pe(mixed):
    rows = paradl.limits(mixed, selection={"strategy": "serial"})
    assert set(rows["largest_pe"]) <= {1, None}
    assert set(rows["forbidden_by"]) <= {"too_many_pes", "memory", "memory, too_many_pes"}


def test_numbers_stay_whole(mixed):
    rows = paradl.limits(mixed)
    assert all(isinstance(pe, int) or pe is None for pe in rows["largest_pe"])


def test_a_slice_that_cannot_exist_has_no_rows(mixed):
    limit = paradl.limits(mixed, selection={"model": "alexnet", "dataset": "cosmoflow-128"})
    assert len(limit) == 0


@pytest.mark.parametrize("efficiency", [0, -1, 1.01, float("nan"), "80", None])
def test_an_efficiency_that_cannot_be(mixed, efficiency):
    with pytest.raises(InputError, match=r"^efficiency: "):
        paradl.limits(mixed, efficiency)


@pytest.mark.parametrize("rounding", ["exact", "ceil"])
@pytest.mark.parametrize("strategy", ["data", "data+filter:group=best"])
def test_every_question_states_the_same_rates(strategy, rounding):
    """Of one configuration, also where the last iteration of an epoch is not full."""
    named: dict[str, Any] = {"dataset": "imagenet", "system": "dgx-h100"}
    named |= {"settings": {"iterations": rounding}}
    cube = paradl.compute_space("resnet50", strategy=strategy, pe=[8, 96], batch=100, **named)
    furthest = paradl.limits(cube).iloc[0]
    at = {"pe": int(furthest["fastest_pe"])}
    (taking,) = paradl.bottleneck(cube, at).to_dict("records")
    best = paradl.best(cube, at).iloc[0]
    predicted = paradl.predict("resnet50", strategy, at["pe"], 100, **named)
    for name in ("samples_per_second", "samples_per_pe_second", "mfu"):
        for row in (furthest, taking, best):
            assert row[name] == pytest.approx(predicted[name], rel=1e-6)
