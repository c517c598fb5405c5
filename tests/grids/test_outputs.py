"""Outputs of a sweep: names of elasticities, and messages about wrong names."""

from typing import Any

import pytest

from paradl.grids.entries.parameters import CONTINUOUS, PARAMETERS
from paradl.grids.outputs import ELASTICITIES, list_sloped
from paradl.grids.reading.errors import InputError
from paradl.grids.spec import Spec, validate_spec
from paradl.kernels.names.stored import ELASTIC

AXES = {"model": "alexnet", "dataset": "imagenet", "system": "abci", "pe": 4, "batch": 8}


def ask(*outputs: str, **spec: Any) -> Spec:
    return validate_spec({"axes": AXES, "outputs": list(outputs), **spec}, "spec")


def test_every_answer_has_one_in_every_parameter() -> None:
    assert len(ELASTICITIES) == len(ELASTIC) * len(CONTINUOUS)
    machine = [name for name, (target, _) in ELASTICITIES.items() if target != "train_time"]
    query = [part for part in machine if PARAMETERS[ELASTICITIES[part][1]].oracle != "paper"]
    assert ask(*query).outputs == tuple(query)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "elasticity_epoch_time_inter_bandwith",
            "did you mean 'elasticity_epoch_time_inter_bandwidth'",
        ),
        ("elasticity_epoch_time_delta", "in continuous parameters"),
        ("elasticity_memory_pe", "in continuous parameters"),
        ("elasticity_memory_inter_bandwith", "did you mean 'elasticity_memory_inter_bandwidth'?"),
        ("elasticity_epoch_time_pe", "unknown output 'elasticity_epoch_time_pe'"),
        ("elasticity_epoc_time_batch", "did you mean 'elasticity_epoch_time_batch'"),
        ("elasticity_limit_batch", "elasticities are of epoch_time, comp_time, comm_time, memory"),
        ("elasticity", "elasticities are of epoch_time"),
        ("elasticity_memory_gamma", "'gamma' is no parameter of 'oracle: machine'"),
        ("elasticity_train_time_batch", "needs epochs to a target; write 'convergence: auto'"),
    ],
)
def test_what_is_said_of_a_wrong_name(name: str, message: str) -> None:
    with pytest.raises(InputError, match="outputs") as error:
        ask("limit", name)
    assert message in str(error.value)
    assert len(str(error.value)) < 1000


def test_each_oracle_knows_its_own() -> None:
    assert ask("elasticity_memory_gamma", oracle="paper").outputs == ("elasticity_memory_gamma",)
    with pytest.raises(InputError, match="'flow' is no parameter of 'oracle: paper'"):
        ask("elasticity_epoch_time_flow", oracle="paper")


def test_parameters_that_slopes_are_in() -> None:
    names = ("limit", "elasticity_memory_batch", "elasticity_comp_time_peak_flops")
    assert list_sloped((*names, "elasticity_memory_peak_flops")) == ("batch", "peak_flops")
