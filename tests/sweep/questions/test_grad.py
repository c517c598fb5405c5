"""Derivatives against central differences of many predictions."""

from typing import Any

import numpy as np
import pytest

import paradl
from paradl.grids.reading.errors import InputError

PLACE: dict[str, Any] = {"dataset": "imagenet", "system": "abci"}
STRATEGIES = ["data+filter:group=2", "data+filter:group=4"]  # of one program
NAMES = ["inter_bandwidth", "inter_latency", "efficiency_matmul", "layer_overhead"]
VALUES: dict[str, Any] = {
    "inter_bandwidth": np.array([1e9, 5e9]),  # an axis, the last one
    "inter_latency": 3e-6,
    "efficiency_matmul": 0.5,
    "layer_overhead": 1e-5,
}
# Parameters that may be 0, and steps from there; one program has the slopes of all.
ZEROS = {"inter_latency": 1e-7, "layout_passes": 1e-4, "jitter": 1e-4, "kernel_overlap": 1e-4}
STEP = 1e-4


def find_slopes(changes: dict[str, Any]) -> Any:
    """Slopes in all names, with other values of some, over the same dimensions."""
    options = {**dict.fromkeys(ZEROS, 0.0), **VALUES, **changes}
    return paradl.grad(
        "resnet50", STRATEGIES, [4, 16], [8, 32], [*options], parameters=options, **PLACE
    )


@pytest.fixture(scope="module")
def slopes() -> Any:
    return find_slopes({})


@pytest.mark.parametrize("name", NAMES)
def test_derivatives_are_differences(name: str, slopes: Any) -> None:
    more, less = (
        find_slopes({name: VALUES[name] * (1 + step)}).epoch_time.values for step in (STEP, -STEP)
    )
    expected = (more - less) / (2 * STEP * VALUES[name])
    exists = np.isfinite(slopes.epoch_time.values)
    assert exists.any()
    scale = (slopes.epoch_time.values / VALUES[name])[exists]
    derivative = slopes[f"d_epoch_time_d_{name}"].values
    assert np.abs(derivative - expected)[exists] / scale == pytest.approx(0, abs=1e-5)
    elasticity = derivative * VALUES[name] / slopes.epoch_time.values
    np.testing.assert_allclose(slopes[f"elasticity_epoch_time_{name}"].values, elasticity)
    assert np.abs(elasticity[exists]).max() > 1e-6


def test_times_are_those_of_predictions(slopes: Any) -> None:
    values = dict.fromkeys(ZEROS, 0.0) | VALUES
    many = paradl.predict("resnet50", STRATEGIES, [4, 16], [8, 32], parameters=values, **PLACE)
    np.testing.assert_allclose(many.paradl.epoch_time, slopes.epoch_time, rtol=1e-6)
    alone = {**values, "inter_bandwidth": 5e9}
    one = paradl.predict("resnet50", STRATEGIES[0], 16, 32, parameters=alone, **PLACE)
    cell = {"strategy": STRATEGIES[0], "pe": 16, "batch": 32, "inter_bandwidth": 5e9}
    assert slopes.epoch_time.sel(cell).item() == pytest.approx(one["epoch_time"], rel=1e-12)


def test_an_axis_is_differentiated_where_it_stands(slopes: Any) -> None:
    assert slopes.sizes["inter_bandwidth"] == 2
    product = slopes.d_epoch_time_d_inter_bandwidth * slopes.inter_bandwidth / slopes.epoch_time
    np.testing.assert_allclose(product, slopes.elasticity_epoch_time_inter_bandwidth)


def test_derivatives_at_zero_are_those_towards_more() -> None:
    """No share of 0 is a change: elasticities are 0, as those that a cube stores."""
    zeros = dict.fromkeys(ZEROS, 0.0)
    none = find_slopes(zeros)
    exists = np.isfinite(none.epoch_time.values)
    for name, step in ZEROS.items():
        once, twice = (find_slopes(zeros | {name: step * n}).epoch_time.values for n in (1, 2))
        expected = (4 * once - twice - 3 * none.epoch_time.values) / (2 * step)
        derivative = none[f"d_epoch_time_d_{name}"].values
        np.testing.assert_allclose(derivative[exists], expected[exists], rtol=1e-4)
        assert (none[f"elasticity_epoch_time_{name}"].values[exists] == 0).all()
        assert derivative[exists].any()
    stored = [f"elasticity_epoch_time_{name}" for name in ("inter_latency", "jitter")]
    cells = paradl.predict(
        *("resnet50", "data+filter:group=2", [4, 16], 32),
        **PLACE,
        parameters=zeros,
        settings={"outputs": ["comp_time", "comm_time", "memory", "limit", *stored]},
    )
    for name in stored:
        assert (cells[name].values == 0).all()


def test_a_derivative_along_an_axis_that_begins_with_zero() -> None:
    latencies: dict[str, Any] = {"inter_latency": [0.0, 2e-6]}
    both = paradl.grad("resnet50", "data", 16, 32, "inter_latency", parameters=latencies, **PLACE)
    zero, other = both.d_epoch_time_d_inter_latency.values.reshape(-1)
    assert zero == pytest.approx(other, rel=1e-3)  # start-ups count in proportion
    assert both.inter_latency.values.tolist() == [0.0, 2e-6]
    assert both.elasticity_epoch_time_inter_latency.values.reshape(-1)[0] == 0


def test_what_has_no_derivative() -> None:
    with pytest.raises(InputError, match=r"^wrt: .*'inter_bandwith'.*'inter_bandwidth'"):
        paradl.grad("resnet50", "data", 4, 32, "inter_bandwith", **PLACE)
    with pytest.raises(InputError, match=r"^strategy: .*data\+filter:group=best"):
        paradl.grad("resnet50", "data+filter:group=best", 4, 32, "peak_flops", **PLACE)
    text: Any = PLACE | {"dataset": "pile", "system": "dgx-h100"}
    with pytest.raises(InputError, match=r"^.*no elasticity in jitter .*fsdp|.*zero=3"):
        paradl.grad("llama2_7b", "fsdp:micro=1", 4, 32, "jitter", **text)
