"""Parameters of the machine oracle reach transformers: settings, axes, slopes, draws."""

from functools import cache
from typing import Any

import numpy as np
import pytest

import paradl
from paradl.grids.entries.parameters import KNOWN, PARAMETERS, SLOPED
from paradl.grids.entries.transformer_rates import REST
from paradl.grids.inputs.draws import DRAWS, draw_normals
from paradl.kernels.names.stored import PERCENTILES

# Software without grouped products, whose attention is dated: all rates have an effect.
PLACE: dict[str, Any] = {
    "dataset": "pile:length=2048",
    "system": "dgx-h100:precision=bf16,software=deepspeed",
}
NETWORK, STRATEGY, PE, BATCH = (
    "llama2_7b",
    "data+tensor+pipeline:tensor=4,pipeline=2,micro=2",
    32,
    8,
)
STEP = 1e-3
# Of unfused attention, of experts, of exchanges that this software does not hide, of flows that
# rings never limit, and of what hosts keep.
IDLE = {"score_passes", "expert_wait", "overlap", "flow", "reserved", "offload_rate"}


@cache
def ask(**values: float) -> Any:
    return paradl.predict(NETWORK, STRATEGY, PE, BATCH, parameters=values, **PLACE)


USUAL = ask()["parameters"]


@pytest.mark.parametrize("name", KNOWN)
def test_a_setting_is_an_axis(name: str) -> None:
    values = [USUAL[name], min(2 * USUAL[name], PARAMETERS[name].high)]
    cube = paradl.compute_space(
        NETWORK, strategy=STRATEGY, pe=PE, batch=BATCH, parameters={name: values}, **PLACE
    )
    for value, answer in zip(values, (ask(), ask(**{name: values[1]})), strict=True):
        cell = cube.sel({name: value}).squeeze()
        assert float(cell.paradl.epoch_time) == pytest.approx(answer["epoch_time"], rel=1e-6)
        assert answer["parameters"][name] == value


def test_slopes_are_differences() -> None:
    slopes = paradl.grad(NETWORK, STRATEGY, PE, BATCH, list(SLOPED), **PLACE).squeeze()
    for name in SLOPED:
        more, less = (
            ask(**{name: USUAL[name] * (1 + step)})["epoch_time"] for step in (STEP, -STEP)
        )
        expected = (more - less) / (2 * STEP) / float(slopes.epoch_time)
        elasticity = float(slopes[f"elasticity_epoch_time_{name}"])
        assert elasticity == pytest.approx(expected, abs=2e-5)
        assert (abs(elasticity) > 1e-7) == (name not in {*IDLE, "memory_capacity"})
        derivative = float(slopes[f"d_epoch_time_d_{name}"])
        assert derivative * USUAL[name] == pytest.approx(elasticity * float(slopes.epoch_time))


def test_sensitivity_lists_what_moves_the_time() -> None:
    cube = paradl.compute_space(NETWORK, strategy=STRATEGY, pe=PE, batch=BATCH, **PLACE)
    listed = {*paradl.sensitivity(cube)["parameter"]}
    assert listed == {*KNOWN} - IDLE


def find_spread(**values: float) -> float:
    """Spread of the logarithm of an iteration's time, from its interval."""
    interval = ask(**values)["intervals"]["iteration_time"]
    return float(np.log(interval["p90"] / interval["p50"])) / PERCENTILES[90]


def test_intervals_are_of_draws() -> None:
    """Of 32 predictions with some parameters at their draws, and what errs beside them."""
    drawn = ("product_moves", "block_passes", "startup", "layer_overhead", "host_pause")
    known = {name: USUAL[name] for name in KNOWN if name not in drawn}
    priors = {name: PARAMETERS[name].prior for name in drawn}
    factors = {
        name: np.exp(prior.spread["bf16"] * draw_normals((name,))[:, 0])
        for name, prior in priors.items()
        if prior
    }
    times = [
        ask(**{name: USUAL[name] * by[n] for name, by in factors.items()})["iteration_time"]
        for n in range(DRAWS)
    ]
    expected = np.hypot(np.log(times).std(), REST)
    assert expected > 1.02 * REST
    assert find_spread(**known) == pytest.approx(expected)


def test_what_is_known_is_not_drawn() -> None:
    known = {name: USUAL[name] for name in KNOWN}
    assert find_spread(checkpoint_wait=known["checkpoint_wait"]) < find_spread()
    assert find_spread(**known) == pytest.approx(REST)
