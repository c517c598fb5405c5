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

NO_FIT = {"layers": "refused: fit divides blocks alone"}
# Why a pair does not hold, by kind of network or by name: ratios of time, and of memory.
TODAY: dict[str, Mapping[str, str]] = {
    "data:micro=b = tp1 dp8 mbb": NO_FIT,
}


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


@pytest.mark.parametrize(("net", "pair"), list_cases(BUBBLES, {}))
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
