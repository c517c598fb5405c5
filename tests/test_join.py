"""One run has one answer, whatever words say it (tests/helpers/joined_runs.py has the contract).

`python tests/helpers/joined_runs.py` prints each network's ratios.
"""

from collections.abc import Mapping
from typing import Any

import pytest
from joined_runs import Runs, find_ratios, list_differences
from joined_words import BUBBLES, NETWORKS, PAIRS, Network, Pair


def list_cases(pairs: Mapping[str, Pair]) -> list[Any]:
    """Parameters of each pair and network."""
    return [
        pytest.param(net, pair, id=f"{net.name}: {name}")
        for name, pair in pairs.items()
        for net in filter(pair.suits, NETWORKS)
    ]


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> Runs:
    return Runs(tmp_path_factory.mktemp("runs"))


@pytest.mark.parametrize(("net", "pair"), list_cases(PAIRS))
def test_one_run_has_one_answer(net: Network, pair: Pair, runs: Runs) -> None:
    assert not list_differences(*runs.compare(net, pair))


@pytest.mark.parametrize(("net", "pair"), list_cases(BUBBLES))
def test_each_flush_of_stages_has_a_bubble(net: Network, pair: Pair, runs: Runs) -> None:
    """Four segments in four stages take 7 / 4 of their work, eight in one flush 11 / 8."""
    apart, whole = runs.compare(net, pair)
    assert apart["batch"] == whole["batch"]
    assert 1 < 1 / find_ratios(apart, whole)[0] < 1.35
