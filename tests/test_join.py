"""One run has one answer, whatever words say it (tests/helpers/joined_runs.py has the contract).

`TODAY` lists what does not hold yet, and by how much the second words differ from the first.
`python tests/helpers/joined_runs.py` prints each network's ratios.
"""

from collections.abc import Mapping
from typing import Any

import pytest
from joined_runs import Runs, find_ratios, list_differences
from joined_words import BUBBLES, NETWORKS, PAIRS, Network, Pair

from paradl.grids.reading.errors import InputError

NO_BLOCKS = {"layers": "refused: layers without blocks of attention take no settings of layouts"}
NO_AMP = {"llama3_8b": "fit takes precision=amp for bf16: 0.99 x in time, 0.93 x in memory"}
SPREAD = {"resnet50": "calibrated for data alone: p90 differs by 0.4 %, and nothing else"}
UNKNOWN = "refused: 'data+pipeline' has no setting 'pipeline' unless it names one of layouts"
# Why a pair does not hold, by kind of network or by name: ratios of time, and of memory.
TODAY: dict[str, Mapping[str, str]] = {
    "serial = data on 1 PE": SPREAD,
    "data = pipeline:segments=1 on 1 PE": {
        **SPREAD,
        "blocks": "Llama 2 7B 0.92 x and 1.70 x, others 0.74 to 1.28 x and 1.04 to 7.4 x",
        "experts": "0.32 to 0.58 x, 0.76 to 1.06 x",
    },
    "data = data+pipeline:group=1": {
        **SPREAD,
        "blocks": "Llama 2 7B 0.92 x and 1.70 x, others 0.71 to 1.29 x and 1.04 to 7.4 x",
        "experts": "0.31 to 0.52 x, 0.76 to 1.06 x",
    },
    "data = data:micro=b": {
        **NO_BLOCKS,
        "image": "3.36 x (3.46 x on 1 PE), 1.02 x",
        "blocks": "`data` has micro=1: 0.81 to 1.00 x, 1.17 to 3.19 x",
        "experts": "`data` has micro=1: 0.47 to 0.56 x, 1.04 to 1.19 x",
    },
    "data = tensor=1": {**NO_BLOCKS, "image": "6.88 x, 0.60 x"},
    "data = context=1": {"image": "6.88 x, 0.60 x"},
    "data:micro=b = tensor=1,micro=b": NO_BLOCKS,
    "data:micro=b = pipeline=1,micro=b": NO_BLOCKS,
    "data:micro=b = tp1 dp8 mbb": {**NO_BLOCKS, **NO_AMP},
    "tensor=2,micro=b = tp2 dp4 mbb": NO_AMP,
    "pipeline=4,micro=b/4 = pp4 mbb/4": NO_AMP,
    "pipeline = data+pipeline:pipeline=4": dict.fromkeys(
        ("layers", "image", "blocks", "experts"), UNKNOWN
    ),
    "gpipe = pipeline=4,micro=b/4": {
        **NO_BLOCKS,
        "image": "2.50 x, 1.01 x",
        "blocks": "0.89 to 1.33 x, 0.51 to 1.13 x",
        "experts": "1.24 to 1.62 x, 1.16 to 1.31 x",
    },
    "1f1b = pipeline=4,micro=b/4": {
        **NO_BLOCKS,
        "image": "2.50 x, 1.01 x",
        "blocks": "0.89 to 1.33 x (Llama 3 8B 1.17 x), 0.40 to 1.13 x",
        "experts": "1.24 to 1.62 x, 1.11 to 1.33 x",
    },
    "segments of the run = micro=b/4": {
        "image": "layouts ignore `segments`: 0.78 x, 1.29 x",
        "blocks": "layouts ignore `segments`: 1.13 to 1.26 x, 1.09 to 1.32 x",
        "experts": "layouts ignore `segments`: 0.79 to 0.98 x, 1.02 to 1.09 x",
    },
    "zero=1 = zero=1,micro=b": {
        **NO_BLOCKS,
        "image": "3.44 x, 0.95 x",
        "blocks": "0.83 to 1.00 x, 1.39 to 3.60 x",
        "experts": "0.30 to 0.58 x, 1.10 to 1.45 x",
    },
    "zero=2 = zero=2,micro=b": {
        **NO_BLOCKS,
        "image": "3.44 x, 0.90 x",
        "blocks": "0.83 to 1.00 x, 1.70 to 3.94 x",
        "experts": "0.30 to 0.58 x, 1.18 to 1.79 x",
    },
    "zero=3 = zero=3,micro=b": {
        **NO_BLOCKS,
        "image": "3.41 x, 0.90 x",
        "blocks": "0.75 to 1.00 x, 2.14 to 4.84 x",
        "experts": "0.13 to 0.34 x, 1.31 to 2.25 x",
    },
    "zero of the run = zero=1": {
        "layers": "the parameter is ignored: 0.91 to 1.00 x, 0.59 to 1.00 x",
        "image": "the parameter is ignored: 0.96 x, 0.86 x",
    },
    "recompute of the run = recompute=full": {
        **NO_BLOCKS,
        "image": "2.80 x, 1.17 x",
        "blocks": "0.83 to 1.00 x, 1.02 to 2.43 x",
        "experts": "0.41 to 0.58 x, 1.01 to 1.04 x",
    },
    "accumulate=2 = a flush of 2 b": {
        **NO_BLOCKS,
        "image": "2.22 x, 1.02 x",
        "blocks": "layouts ignore `accumulate`, and have half the batch: 1.57 to 1.96 x",
        "experts": "layouts ignore `accumulate`, and have half the batch: 0.66 to 1.04 x",
    },
    "row of a sample = data": {"llama2_7b": "refused: samples do not describe layouts"},
}
IGNORED = "layouts ignore `accumulate`, and have half the batch: 1.09 to 1.53 x"


def list_cases(pairs: Mapping[str, Pair], reasons: Mapping[str, Mapping[str, str]]) -> list[Any]:
    """Parameters of each pair and network, those that fail today marked as such."""
    cases = []
    for name, pair in pairs.items():
        for net in filter(pair.suits, NETWORKS):
            known = reasons.get(name, {})
            reason = known.get(net.name, known.get(net.kind))
            marks = pytest.mark.xfail(
                strict=True, raises=(AssertionError, InputError), reason=reason or ""
            )
            case = f"{net.name}: {name}"
            cases.append(pytest.param(net, pair, id=case, marks=(marks,) if reason else ()))
    return cases


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> Runs:
    return Runs(tmp_path_factory.mktemp("runs"))


@pytest.mark.parametrize(("net", "pair"), list_cases(PAIRS, TODAY))
def test_one_run_has_one_answer(net: Network, pair: Pair, runs: Runs) -> None:
    assert not list_differences(*runs.compare(net, pair))


@pytest.mark.parametrize(
    ("net", "pair"),
    list_cases(BUBBLES, {"micro": dict.fromkeys(("image", "blocks", "experts"), IGNORED)}),
)
def test_each_flush_of_stages_has_a_bubble(net: Network, pair: Pair, runs: Runs) -> None:
    """Four segments in four stages take 7 / 4 of their work, eight in one flush 11 / 8."""
    apart, whole = runs.compare(net, pair)
    assert apart["batch"] == whole["batch"]
    assert 1 < 1 / find_ratios(apart, whole)[0] < 1.35


def test_every_reason_is_of_a_case() -> None:
    """A mark of no case would turn nothing off."""
    for name, known in TODAY.items():
        suited = [net for net in NETWORKS if PAIRS[name].suits(net)]
        assert {*known} <= {net.name for net in suited} | {net.kind for net in suited}
