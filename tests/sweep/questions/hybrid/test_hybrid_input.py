"""What is asked about hybrids, and what makes no sense."""

from typing import Any

import pytest
from hybrids import CONSTANT, MACHINE, NAMES, ask

import paradl
from paradl.grids.convergence.entry import Convergence
from paradl.grids.reading.errors import InputError
from paradl.sweep.questions.hybrid.contenders import MOST_PES, list_contenders, list_counts


@pytest.mark.parametrize(
    ("pe", "counts"),
    [
        (1, (1,)),
        (8, (1, 2, 4, 8)),
        (12, (1, 2, 4, 8, 12)),
        ([96, 8, 96], (8, 96)),
        ([MOST_PES], (MOST_PES,)),
    ],
)
def test_counts(pe, counts):
    assert list_counts(pe, list_contenders((), {2: 1.1})[:1]) == counts


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"strategies": ["data+spatial"]}, "^strategies: .*'data\\+spatial'"),
        ({"strategies": ["data+filter:group=best"]}, "^strategies: .*data\\+filter:group=2"),
        ({"strategies": ["spatial"]}, "^strategies: .*'spatial'"),
        ({"strategies": ["data+spatal:group=2"]}, "'data\\+spatial'"),
        ({"strategies": ["data+filter:group=2"], "speedups": {3: 1.5}}, "^speedups: .*3"),
        ({"speedups": {1: 1.5}}, "^speedups: .*1"),
        ({"speedups": {2: float("nan")}}, "^speedups: .*nan"),
        ({"speedups": {2: 1.5}, "scaling_efficiency": 95}, "^scaling_efficiency: .*95"),
        ({"speedups": dict.fromkeys(range(2, 16), 1.5)}, "strategies: .*14"),
        ({"speedups": {512: 1.5}}, "^pe: .*512"),
        ({"speedups": {2: 1.5}, "batch": 0}, "^batch: .*0"),
        ({"speedups": {2: 1.5}, "pe": MOST_PES + 1}, "^pe: .*16,384"),
        ({"speedups": {2: 1.5}, "pe": []}, "^pe: "),
        ({"strategies": ["data:micro=2"]}, "^strategies: .*'data:micro=2'"),
        ({"strategies": ["data+tensor:tensor=best"]}, "^strategies: .*data\\+tensor:tensor=2"),
        ({"strategies": ["data+expert:expert=8"]}, "^strategies: .*'data\\+expert:expert=8'"),
    ],
)
def test_what_makes_no_sense_is_told(more, message):
    given: Any = {"batch": 64, "pe": 256, "convergence": CONSTANT, "scaling_efficiency": 1.0} | more
    with pytest.raises(InputError, match=message):
        paradl.hybrid("inception_v3", **given)


@pytest.mark.parametrize(
    ("model", "dataset", "strategy"),
    [
        ("llama3_8b", "pile", "data+filter:group=2"),
        ("vit_b_16", "imagenet", "data+channel:group=2"),
    ],
)
def test_times_by_different_rates_make_no_speed_up(model, dataset, strategy):
    case: Any = {"dataset": dataset, "system": "dgx-h100", "convergence": CONSTANT}
    with pytest.raises(InputError, match=r"^strategies: "):
        paradl.hybrid(model, 8, 4, strategies=[strategy], **case)
    # With the speed-up given, no time of one kind is divided by one of the other.
    answer = paradl.hybrid(model, 8, 4, strategies=[strategy], speedups={2: 1.5}, **case)
    assert answer["splits"][0]["speedup"] == 1.5


def test_a_batch_is_no_larger_than_what_converges_or_the_data_set():
    law = Convergence(**NAMES, epochs_min=7, converges_to=32)
    with pytest.raises(InputError, match=r"^batch: .*32"):
        ask(law, 8, {2: 1.2})
    given: Any = {"speedups": {2: 1.2}, "convergence": CONSTANT, **MACHINE}
    with pytest.raises(InputError, match=r"^batch: .*1,281,167"):
        paradl.hybrid("inception_v3", 2_000_000, 8, **given)
    with pytest.raises(InputError, match=r"^dataset: .*inception_v3"):
        paradl.hybrid("inception_v3", 1, 8, **{**given, "dataset": "cosmoflow-128"})
    passes = CONSTANT.model_copy(update={"converges_to": 32})
    with pytest.raises(InputError, match=r"^batch: .* got 64"):
        paradl.hybrid(
            "inception_v3", 16, 8, parameters={"accumulate": 4}, **given | {"convergence": passes}
        )
