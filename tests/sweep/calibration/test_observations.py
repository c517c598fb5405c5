"""Runs as arrays: the same answers as one by one, and what cannot be observed."""

import numpy as np
import pytest
from measured_runs import DATASETS, predict_rows, set_parameters

from paradl.grids.entries.calibration import list_priors
from paradl.grids.entries.names import CATALOGUE
from paradl.grids.reading.errors import InputError
from paradl.kernels.derivatives.density import apply_parameters, log_times
from paradl.sweep.calibration.observations import Observations, observe
from paradl.sweep.measured.runs import PARTS, read_runs

RUN = {"model": "resnet50", "dataset": "imagenet", "strategy": "data", "p": "8"}
RUN |= {"samples_per_replica": "32", "total_s": "0.2", "system": ""}

# With a profile on ABCI's device and without one; every group, of one stage and of several.
CONFIGURATIONS = [
    ("resnet50", "serial", 1, 32),
    ("resnet50", "data", 64, 32),
    ("resnet50", "data+filter:group=4", 16, 32),
    ("resnet50", "channel", 16, 64),
    ("resnet50", "pipeline:segments=4", 4, 64),
    ("vgg16", "data+pipeline:group=2,segments=8", 8, 32),
    ("cosmoflow", "data+spatial:group=4", 64, 2),
    ("inception_v3", "data+spatial:group=4", 16, 16),
    ("inception_v3", "pipeline:segments=8", 8, 32),
    ("inception_v3", "filter", 8, 16),
]
FACTORS = {"resnet50": 1.25, "vgg16": 0.5, "cosmoflow": 1.0, "inception_v3": 1.5}


def time_runs(observations: Observations, values: dict[str, float], factors) -> np.ndarray:
    """Seconds [part, run]."""
    moved = apply_parameters(observations.case, observations.layers, values, np.array(factors))
    return np.exp(np.asarray(log_times(moved)))


# Launches that take nothing, and some that decide which stage is the slowest.
@pytest.mark.parametrize("overhead", [1e-9, 1e-2])
def test_all_runs_at_once_are_as_one_by_one(observed, overhead) -> None:
    """By the command line's own way, which reduces the layers anew for each overhead."""
    values = {name: 1.3 * prior.median for name, prior in list_priors("fp32", "plain").items()}
    values |= {"rail": 0.7, "layer_overhead": overhead}
    serial = {model: {"factor": factor, "spread": 0.1} for model, factor in FACTORS.items()}
    expected = predict_rows(CONFIGURATIONS, "abci", [set_parameters(values, serial=serial)])
    observations = observed(expected)
    assert observations.profiled.tolist() == [
        configuration[0] != "inception_v3" for configuration in CONFIGURATIONS
    ]
    seconds = time_runs(
        observations, values, [FACTORS[configuration[0]] for configuration in CONFIGURATIONS]
    )
    result = np.isfinite(observations.seconds)
    np.testing.assert_allclose(seconds[result], observations.seconds[result], rtol=1e-7)


def test_hosts_that_are_too_slow_are_waited_for(measured, tmp_path) -> None:
    own = tmp_path / "own.yaml"
    text = (CATALOGUE / "systems" / "abci.yaml").read_text()
    own.write_text(text.replace("name: abci", "name: ours\ninput_rate: 500", 1))
    rows = predict_rows([("resnet50", "data", 8, 32), ("resnet50", "serial", 1, 32)], str(own))
    assert float(rows[0]["total_s"]) == pytest.approx(4 * 32 / 500)  # of the 4 PEs of a node
    observations = observe(read_runs(measured(rows)), str(own))
    values = {name: prior.median for name, prior in observations.priors.items()}
    seconds = time_runs(observations, values, [1.0, 1.0])
    np.testing.assert_allclose(seconds[0], observations.seconds[0], rtol=1e-7)


def test_what_was_not_measured_is_nan(observed, shipped) -> None:
    rows = [row for row in shipped if row["model"] == "alexnet"]
    seconds = observed(rows).seconds
    assert np.isfinite(seconds).tolist() == [[True] * 5, [False] * 5, [False] * 5]
    assert seconds[0, 0] == float(rows[0]["total_s"])


def test_one_pe_has_no_communication_to_learn_from(observed) -> None:
    observations = observed(
        [RUN | {"strategy": "serial", "p": "1", "comm_s": "0.01", "comp_s": "0.19"}]
    )
    assert np.isnan(observations.seconds[PARTS.index("comm")]).all()
    assert np.isfinite(observations.seconds[PARTS.index("comp")]).all()


@pytest.mark.parametrize(
    ("measured_parts", "counted"),
    [
        ({"comp_s": "0.15", "comm_s": "0.05"}, ["comp", "comm"]),  # the total is their sum
        ({"comp_s": "0.15"}, ["total", "comp"]),
        ({}, ["total"]),
    ],
)
def test_a_time_counts_once(observed, measured_parts, counted) -> None:
    observations = observed([RUN | {"comp_s": "", "comm_s": ""} | measured_parts])
    assert observations.counted[:, 0].tolist() == [part in counted for part in PARTS]


def test_runs_are_of_one_system(observed) -> None:
    assert observed([RUN | {"system": "dgx1-v100"}]).system.name == "dgx1-v100"
    with pytest.raises(InputError, match=r"csv:3: .*'abci'"):
        observed([RUN, RUN | {"system": "dgx1-v100"}])
    with pytest.raises(InputError, match=r"csv:3: .*'abci:precision=amp'"):
        observed([RUN, RUN | {"system": "abci:precision=amp"}])


def test_a_system_in_a_file_has_its_own_name(measured, tmp_path) -> None:
    own = tmp_path / "own.yaml"
    text = (CATALOGUE / "systems" / "abci.yaml").read_text()
    own.write_text(text.replace("name: abci", "name: ours", 1))
    assert observe(read_runs(measured([RUN])), str(own)).system.name == "ours"


def test_profiles_are_told_from_rooflines(observed) -> None:
    inception = {"model": "inception_v3", "dataset": DATASETS["inception_v3"]}
    observations = observed([RUN, RUN | inception])
    assert observations.profiled.tolist() == [True, False]
    assert observations.models == ("resnet50", "inception_v3")
    assert observations.of_model.tolist() == [[1, 0], [0, 1]]


def test_kinds_of_layers(observed) -> None:
    cosmoflow = {"model": "cosmoflow", "dataset": "cosmoflow-128"}
    observations = observed([RUN, RUN | cosmoflow | {"strategy": "data+spatial:group=4"}])
    assert observations.multipliers == (("conv2d", "matmul"), ("conv3d", "matmul"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"dataset": "cosmoflow-512"}, "csv:2: resnet50 "),
        ({"strategy": "data+filter:group=best"}, "csv:2: .*group"),
        ({"strategy": "pipeline:segments=best"}, "csv:2: .*segments"),
        ({"strategy": "data+filter:group=3"}, "csv:2: .*group=3"),
        ({"strategy": "serial"}, "csv:2: .*serial on 8 PEs"),
        ({"strategy": "dta"}, "csv:2: strategy: .*'data'"),
        ({"model": "resnet51"}, "csv:2: model: .*'resnet50'"),
    ],
)
def test_what_cannot_be(observed, change, message) -> None:
    with pytest.raises(InputError, match=message):
        observed([RUN | change])
