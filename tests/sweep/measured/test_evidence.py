"""Causes that the runs of a series agree with: made-up series, each with one known cause."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import paradl

HEAD = "model,dataset,strategy,p,samples_per_replica,total_s,comp_s,comm_s"
PES = (1, 4, 8, 16, 32, 64, 128, 256)  # nodes have four
Times = dict[str, float]  # comp, comm and rest, which is neither [s]
Change = Callable[[int, Times], None]


@pytest.fixture(scope="module")
def predicted() -> Callable[[str, int], Times]:
    """Predicted times of a network on so many PEs."""
    known: dict[tuple[str, int], Times] = {}

    def predict(model: str, p: int) -> Times:
        if (model, p) not in known:
            answer = paradl.predict(
                *(model, "data" if p > 1 else "serial", p, 64),
                dataset="imagenet",
                system="abci",
                settings={"calibration": "none"},
            )
            comp, comm = (answer[f"iteration_{part}_time"] for part in ("comp", "comm"))
            known[model, p] = {"comp": comp, "comm": comm, "rest": 0.0}
        return dict(known[model, p])

    return predict


@pytest.fixture
def series(tmp_path: Path, predicted) -> Callable[..., list[str]]:
    """Rows of a series whose times a cause changes."""

    def make(change: Change, pes=PES, model="resnet50", with_parts=True) -> list[str]:
        rows = []
        for p in pes:
            times = predicted(model, p)
            change(p, times)
            strategy = "data" if p > 1 else "serial"
            parts = f"{times['comp']},{times['comm']}" if with_parts else ","
            rows.append(f"{model},imagenet,{strategy},{p},64,{sum(times.values())},{parts}")
        return rows

    return make


@pytest.fixture
def find_causes(tmp_path: Path) -> Callable[[list[str]], dict[int, str]]:
    """Causes by number of PEs, of the runs of the first network that stand out."""

    def compare(rows: list[str]) -> dict[int, str]:
        path = tmp_path / "runs.csv"
        path.write_text("\n".join([HEAD, *rows]) + "\n")
        compared: list[dict[str, Any]] = paradl.compare(path, system="abci", calibration="none")[
            "rows"
        ]
        first = compared[0]["model"]
        odd = [row for row in compared if row["anomaly"] and row["model"] == first]
        return {row["p"]: row["anomaly"]["cause"] for row in odd}

    return compare


def as_predicted(p: int, times: Times) -> None:
    """Nothing is wrong."""


def slow_pes(p: int, times: Times) -> None:
    times["comp"] *= 1.7


def slow_network(p: int, times: Times) -> None:
    if p > 4:
        times["comm"] *= 5


def one_congested_run(p: int, times: Times) -> None:
    if p == 32:
        times["comm"] *= 6


def one_slow_pe_in_a_run(p: int, times: Times) -> None:
    if p == 64:  # all others wait
        times["comm"] += 0.6 * times["comp"]


def racks_of_64(p: int, times: Times) -> None:
    if p >= 64:
        times["comm"] *= 5


def straggling(p: int, times: Times) -> None:
    times["comm"] += 0.15 * times["comp"] * max(0, math.log2(p) - 2)


def shared_storage(p: int, times: Times) -> None:
    times["rest"] = max(0.0, 0.004 * p - times["comp"] - times["comm"])


ONE_PE, ALONE, EVERY = "the time of one PE", "this run alone", "in every run"


@pytest.mark.parametrize("with_parts", [True, False])
@pytest.mark.parametrize(
    ("change", "odd", "words"),
    [
        (slow_pes, set(PES), (ONE_PE,)),
        (slow_network, {16, 32, 64, 128, 256}, ("bandwidth or start-ups",)),
        (one_congested_run, {32}, (ALONE, "congestion")),
        (one_slow_pe_in_a_run, {64}, (ALONE, "slow PE")),
        (racks_of_64, {64, 128, 256}, (EVERY, "from 64 PEs on", "exchange")),
        (straggling, {64, 128, 256}, (EVERY, "the wait for the slowest PE")),
    ],
)
def test_the_cause_of_a_series_is_the_one_blamed(
    change, odd, words, with_parts, series, find_causes
) -> None:
    causes = find_causes(series(change, with_parts=with_parts))
    assert odd <= causes.keys()
    for cause in causes.values():
        assert all(word in cause for word in words)
        assert (ONE_PE in cause) == (ONE_PE in words)
        assert ("congestion" in cause) == (ALONE in words)


def test_time_outside_of_both_parts_is_blamed_on_neither(series, find_causes) -> None:
    causes = find_causes(series(shared_storage))
    assert causes.keys() == {128, 256}
    assert all("neither" in cause and "input" in cause for cause in causes.values())
    # Totals alone tell that it grows with PEs, and so is not the time of one.
    for cause in find_causes(series(shared_storage, with_parts=False)).values():
        assert "from 128 PEs on" in cause
        assert "input" in cause
        assert ONE_PE not in cause


def test_the_last_run_of_a_series_may_be_congested_or_the_first_of_many(series, find_causes):
    """As 0.215, 0.231 and 0.62 s on 8, 32 and 128 PEs, of which only totals were measured."""

    def slow_on_128(p: int, times: Times) -> None:
        times["comm"] += 0.4 * (p == 128)

    alone = series(slow_on_128, (8, 32, 128), with_parts=False)
    (cause,) = find_causes(alone).values()
    assert cause.startswith(ALONE)
    assert "congestion" in cause
    assert "grows with PEs" in cause


def test_a_band_of_numbers_of_pes_is_named(series, find_causes) -> None:
    """Runs on more PEs and on fewer are as predicted: neither congestion nor growth."""

    def slow_between(p: int, times: Times) -> None:
        times["comm"] *= 6 if 32 <= p <= 128 else 1

    causes = find_causes(series(slow_between))
    assert causes.keys() == {32, 64, 128}
    assert all("in every run on 32 to 128 PEs" in cause for cause in causes.values())


def test_a_repeated_run_counts_by_the_one_nearest_to_its_prediction(series, find_causes) -> None:
    """One of two runs on 16 PEs is congested; the other shows what the links do there."""
    both = [*series(one_congested_run, (32,)), *series(as_predicted, (32,))]
    last = series(racks_of_64, (64,))
    for rows in (both, both[::-1]):
        assert find_causes([*rows, *last])[64].startswith(ALONE)


def test_links_inside_a_node_say_nothing_about_those_between_nodes(series, find_causes) -> None:
    causes = find_causes(series(slow_network, (2, 4, 64)))
    assert causes[64].startswith("bandwidth or start-ups")


def test_a_serial_run_clears_the_time_of_one_pe(series, find_causes) -> None:
    def slow_on_64(p: int, times: Times) -> None:
        times["comm"] += 0.4 * (p == 64)

    (cause,) = find_causes(series(slow_on_64, (1, 64), with_parts=False)).values()
    assert cause.startswith(ALONE)


def test_a_run_that_is_too_fast_alone_is_questioned(series, find_causes) -> None:
    def fast_on_32(p: int, times: Times) -> None:
        times["comp"] *= 0.4 if p == 32 else 1

    for with_parts in (True, False):
        causes = find_causes(series(fast_on_32, with_parts=with_parts))
        assert causes.keys() == {32}
        assert causes[32].startswith(ALONE)
        assert "samples" in causes[32]
