"""Runs as arrays: the same answers as one by one, and what cannot be observed."""

from dataclasses import replace

import numpy as np
import pytest

import sweep
from grids.entries.calibration import PRIORS
from grids.library import CATALOGUE
from grids.reading.errors import InputError
from kernels.calibration import Calibration
from sweep.calibration.fit import log_times
from sweep.calibration.observations import observe, slow_down
from sweep.measured.runs import PARTS, read_runs

NAMES = ("iteration_time", "iteration_comp_time", "iteration_comm_time")
ERROR = dict.fromkeys(("serial", "group", "reduce", "exchange", "unseen", "distance"), 0.1)
RUN = {"model": "resnet50", "dataset": "imagenet", "strategy": "data", "p": "8"}
RUN |= {"samples_per_replica": "32", "total_s": "0.2", "system": ""}


def test_all_runs_at_once_are_as_one_by_one(observed, dozen) -> None:
    """By the formulas' own command line, with parameters unlike any default."""
    serial = {"resnet50": 1.25, "vgg16": 0.5}
    values = {name: 1.5 * prior.median for name, prior in PRIORS.items()}
    calibration = {
        "name": "mine",
        "system": "abci",
        "error": ERROR,
        "parameters": {name: {"value": value, "spread": 0.1} for name, value in values.items()},
        "serial": {model: {"factor": each, "spread": 0.1} for model, each in serial.items()},
    }
    seen = observed(dozen)
    factors = np.array([serial[run.model] for run in seen.runs])
    slower = slow_down(seen.case, factors)
    found = np.exp(np.asarray(log_times(replace(slower, calibration=Calibration(**values)))))
    for position, run in enumerate(seen.runs):
        expected = sweep.predict(
            run.model,
            run.strategy,
            run.p,
            run.samples_per_replica,
            dataset=run.dataset,
            settings={"oracle": "paper", "calibration": calibration},
        )
        assert found[:, position] == pytest.approx([expected[name] for name in NAMES], rel=1e-6)


def test_what_was_not_measured_is_nan(observed, shipped) -> None:
    rows = [row for row in shipped if row["model"] == "alexnet"]
    seconds = observed(rows).seconds
    assert np.isfinite(seconds).tolist() == [[True] * 5, [False] * 5, [False] * 5]
    assert seconds[0, 0] == float(rows[0]["total_s"])


def test_one_pe_has_no_communication_to_learn_from(observed) -> None:
    seen = observed([RUN | {"strategy": "serial", "p": "1", "comm_s": "0.01", "comp_s": "0.19"}])
    assert np.isnan(seen.seconds[PARTS.index("comm")]).all()
    assert np.isfinite(seen.seconds[PARTS.index("comp")]).all()


def test_runs_are_of_one_system(observed) -> None:
    assert observed([RUN | {"system": "dgx1-v100"}]).system == "dgx1-v100"
    with pytest.raises(InputError, match=r"csv:3: expected a run on 'abci', as the first, got one"):
        observed([RUN, RUN | {"system": "dgx1-v100"}])


def test_a_system_in_a_file_has_its_own_name(measured, tmp_path) -> None:
    own = tmp_path / "own.yaml"
    text = (CATALOGUE / "systems" / "abci.yaml").read_text()
    own.write_text(text.replace("name: abci", "name: ours", 1))
    assert observe(read_runs(measured([RUN])), str(own)).system == "ours"


def test_profiles_are_told_from_rooflines(observed) -> None:
    seen = observed([RUN, RUN | {"model": "inception_v3", "dataset": "imagenet-299"}])
    assert seen.profiled.tolist() == [True, False]
    assert seen.models == ("resnet50", "inception_v3")
    assert seen.of_model.tolist() == [[1, 0], [0, 1]]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"dataset": "cosmoflow-512"}, r"csv:2: resnet50 takes samples of 2 spatial dimensions"),
        ({"strategy": "data+filter:group=best"}, r"csv:2: expected the group that ran, got 'data"),
        ({"strategy": "pipeline:segments=best"}, r"csv:2: expected the segments that ran, got 'pi"),
        ({"strategy": "data+filter:group=3"}, r"csv:2: no such run can be: data\+filter:group=3 o"),
        ({"strategy": "serial"}, r"csv:2: no such run can be: serial on 8 PEs; serial runs on 1 P"),
        ({"strategy": "dta"}, r"csv:2: strategy: unknown strategy 'dta'; did you mean 'data'"),
        ({"model": "resnet51"}, r"csv:2: model: unknown model 'resnet51'; did you mean 'resnet50'"),
    ],
)
def test_what_cannot_be(observed, change, message) -> None:
    with pytest.raises(InputError, match=message):
        observed([RUN | change])
