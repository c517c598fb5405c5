"""Limits and growth of each term of the machine oracle: the tables of docs/machine.md."""

import math
import re
from dataclasses import replace
from pathlib import Path
from statistics import NormalDist

import numpy as np
import pytest
from machine_forms import FORMS, LIMITS, Form, list_lines, list_times, time_form

import paradl
from paradl.kernels.names.terms import TERMS

PAGE = (Path(__file__).parents[1] / "docs" / "machine.md").read_text()
# What one PE pays, too.
ALONE = {"forward_backward", "pass_overhead", "launch_wait", "weight_update", "input_wait"}
forms = pytest.mark.parametrize("form", FORMS, ids=lambda form: f"{form.term}, {form.place}")


def find(term: str, place: str) -> Form:
    (form,) = (form for form in FORMS if (form.term, form.place) == (term, place))
    return form


# The table of limits.


def test_the_documented_limits_are_computed() -> None:
    assert "\n".join(list_lines()) in PAGE


def test_every_term_has_its_limits() -> None:
    assert {form.term for form in FORMS} == set(TERMS)


@pytest.mark.parametrize("limit", LIMITS)
def test_a_prediction_has_the_same_times(limit: str) -> None:
    pe, batch = LIMITS[limit]
    terms = paradl.predict(
        *("resnet50", "data+spatial", pe, batch),
        dataset="imagenet",
        system="abci",
        settings={"calibration": "none"},
    )
    iterations = terms["epoch_time"] / terms["iteration_time"]
    for form in FORMS:
        if form.place == "`data+spatial`":
            seconds = terms["terms"][form.term] / iterations
            assert list_times(form)[limit] == pytest.approx(1e3 * seconds, rel=1e-9)


# One PE, one node.


@forms
def test_one_pe_pays_what_is_its_own_alone(form: Form) -> None:
    seconds = time_form(form, [1], [1, 32, 4096])
    if form.term in ALONE:
        assert form.term == "input_wait" or (seconds > 0).all()
    else:
        assert (seconds == 0).all()


@forms
def test_nothing_in_one_node_uses_adapters(form: Form) -> None:
    faster = {"inter_bandwidth": 50e9, "inter_latency": 1e-6}
    one, other = (time_form(form, [4, 1024], [32], **value)[:, 0] for value in ({}, faster))
    assert one[0] == other[0]
    between_nodes = {"gradient_exchange": 1, "hidden_communication": 1, "input_wait": 0}
    if form.term in between_nodes:
        assert (one[1] > other[1]) == between_nodes[form.term]
    else:
        assert one[1] == other[1]


# By hand.


def test_a_ring_of_one_node() -> None:
    """2 (q-1) (alpha + m/q beta) of 25,502,912 weights of 4 bytes, in ABCI's nodes of 50 GB/s."""
    form = find("gradient_exchange", "`data`")
    seconds = time_form(form, [4], [32], node_reduce=1.0)[0, 0]
    weights = 25_502_912 + 26_560  # of convolutions and the last layer; scales of normalisations
    assert seconds == pytest.approx(6 * (9e-6 + 4 * weights / 4 / 50e9), rel=1e-9)


@pytest.mark.parametrize("pe", [4, 1024])
def test_a_flat_group_has_a_slow_part_without_nodes(pe: int) -> None:
    """2 (1 - 1/p) max(0, m - 256 MiB) / (large_message SB): 3/4 of its limit in a node of 4."""
    form = find("gradient_exchange", "`filter`, vgg16")
    rates = (time_form(form, [pe], [32], large_message=rate)[0, 0] for rate in (0.1, 0.2))
    undivided = 4 * (4096 * 25_088 + 4096 * 4096 + 1000 * 4096)  # bytes: layers behind the split
    slow = 2 * (1 - 1 / pe) * (undivided - 2**28) / 16e9
    assert next(rates) - next(rates) == pytest.approx(slow * (1 / 0.1 - 1 / 0.2), rel=1e-9)


@pytest.mark.parametrize("pe", [4, 16, 1024])
def test_a_spatial_group_has_a_slow_part_between_nodes(pe: int) -> None:
    """(1 - 1/n)(1 + jitter z(n)) of it, of all 138 million weights: none in one node."""
    form = find("gradient_exchange", "`data+spatial`, vgg16")
    one, other = (
        time_form(form, [pe], [32], large_message=rate, host_jitter=0.5)[0, 0]
        for rate in (0.1, 0.2)
    )
    nodes = pe / 4
    z = NormalDist().inv_cdf((nodes - 3 / 8) / (nodes + 1 / 4))
    slow = 2 * (1 - 1 / nodes) * (1 + 0.5 * z) * (4 * 138_344_128 - 2**28) / 16e9
    assert one - other == pytest.approx(slow * (1 / 0.1 - 1 / 0.2), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("pe", [1, 4, 16, 1024])
def test_log_files(pe: int) -> None:
    """2 L_c p tau, p tau more of several replicas; nothing by channel but that, or of one PE."""
    tau, convolutions, several = 1e-5, 53, pe > 4
    logs = {"`data+spatial`": 2 * convolutions * (pe > 1) + several, "`data+channel`": several}
    for place, opened in logs.items():
        seconds = time_form(find("log_files", place), [pe], [32], log_open=tau)[0, 0]
        assert seconds == pytest.approx(opened * pe * tau, rel=1e-12)


@pytest.mark.parametrize("pe", [1, 4, 16, 1024])
def test_the_end_of_a_split(pe: int) -> None:
    """2 (1 - 1/p2) b a y / (`gather_rate` SB) of 7 x 7 points in 2,048 channels."""
    form = find("split_gather", "`data+spatial`")
    seconds = time_form(form, [pe], [1, 32], gather_rate=0.05)[0]
    sent = 2 * (1 - 1 / min(pe, 4)) * 4 * 2048 * 7 * 7
    np.testing.assert_allclose(seconds, sent * np.array([1, 32]) / (0.05 * 16e9), rtol=1e-12)


def test_samples_below_256_mib_are_free() -> None:
    """slow(b a x) / 2 = max(0, b a x - 256 MiB) / (`large_message` SB), x of 3 x 224 x 224."""
    form = find("sample_scatter", "`data+spatial`")
    sample = 4 * 3 * 224 * 224
    fits = 2**28 // sample
    seconds = time_form(form, [4], [fits, fits + 1, 4096], large_message=0.1)[0]
    beyond = np.array([0, (fits + 1) * sample - 2**28, 4096 * sample - 2**28])
    np.testing.assert_allclose(seconds, beyond / (0.1 * 16e9), rtol=1e-12)


def test_nodes_wait_for_the_slowest_of_them_to_hand_out_samples() -> None:
    """1 + host_jitter z(n) of n nodes."""
    form = find("sample_scatter", "`data+spatial`, cosmoflow")
    one, four, many = time_form(form, [4, 16, 1024], [32], host_jitter=0.5)[:, 0]
    for seconds, nodes in ((four, 4), (many, 256)):
        z = NormalDist().inv_cdf((nodes - 3 / 8) / (nodes + 1 / 4))
        assert seconds / one == pytest.approx(1 + 0.5 * z, rel=1e-9)


@pytest.mark.parametrize("place", ["`data`", "`data+spatial`"])
def test_launches_and_the_device_have_a_maximum(place: str) -> None:
    """M(X, o L) = (X^4 + (o L)^4)^(1/4): o L with few samples, X with many, in ResNet-50."""
    form = find("launch_wait", place)
    launched = 3e-4 * (2 * 53 + 49 + 16 + 3)  # normalised, ReLU, additions, poolings and classes
    wait, samples, once = (
        time_form(replace(form, term=term), [16], [1, 32, 4096], layer_overhead=3e-4)[0]
        for term in ("launch_wait", "forward_backward", "pass_overhead")
    )
    device = samples + once
    by_hand = (device**4 + launched**4) ** 0.25 - device
    np.testing.assert_allclose(wait, by_hand, rtol=1e-9, atol=1e-14)
    assert wait[0] + device[0] == pytest.approx(launched, rel=1e-4)
    assert wait[-1] < 1e-6 * device[-1]


@pytest.mark.parametrize("pe", [1, 4, 16, 1024])
def test_the_slowest_of_p_pes(pe: int) -> None:
    """jitter z(p) of computing (Blom 1958)."""
    form = find("straggler_wait", "`data`")
    computing = sum(
        time_form(replace(form, term=term), [pe], [32])[0, 0]
        for term in ("forward_backward", "pass_overhead", "launch_wait")
    )
    z = NormalDist().inv_cdf((pe - 3 / 8) / (pe + 1 / 4)) if pe > 1 else 0
    seconds = time_form(form, [pe], [32], jitter=0.02)[0, 0]
    assert seconds == pytest.approx(0.02 * z * computing, rel=1e-6)


def test_hosts_that_feed_a_thousand_samples_a_second() -> None:
    """max(0, N / r - T), T all else: 0 where PEs are slower than the hosts of their node."""
    form = find("input_wait", "`data`, input_rate=1000")
    pes, batches = [1, 4, 16, 1024], [1, 32, 4096]
    others = [name for name in TERMS if name not in ("input_wait", "hidden_communication")]
    busy = sum(time_form(replace(form, term=name), pes, batches) for name in others)
    needed = np.minimum(np.array(pes), 4)[:, None] * np.array(batches) / 1000
    by_hand = np.maximum(0, needed - busy)
    np.testing.assert_allclose(time_form(form, pes, batches), by_hand, rtol=1e-9, atol=1e-12)
    assert (by_hand[[0, 3], 1] == 0).all()
    assert by_hand[1, 1] > by_hand[2, 1] > 0


# The table of growth.


def read_growth() -> dict[str, dict[str, str]]:
    """The cells of each row, by symbol."""
    (table,) = re.findall(r"\| term \| p \| n \| G \| b \|\n.*\n((?:\|.*\n)+)", PAGE)
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]
    return {row: dict(zip(("p", "n", "G", "b"), cells, strict=True)) for row, *cells in rows}


GROWTH = read_growth()
OTHERS = {
    "the same through hosts, of a flat group": find("gradient_exchange", "`filter`, vgg16"),
    "the same through hosts, of a spatial group": find(
        "gradient_exchange", "`data+spatial`, vgg16"
    ),
}


def find_row(row: str) -> Form:
    """The first form of the term that a row is of."""
    return OTHERS.get(row) or next(form for form in FORMS if f"`{form.term}`" == row)


def list_rows(symbol: str, *words: str) -> list[str]:
    """Rows whose cell in a column begins with one of these words."""
    return [row for row, cells in GROWTH.items() if cells[symbol].startswith(words)]


def test_every_term_has_its_growth() -> None:
    assert set(GROWTH) == {f"`{name}`" for name in TERMS} | set(OTHERS)


@pytest.mark.parametrize("row", list_rows("p", "-"))
def test_terms_of_a_fixed_group_do_not_grow_with_pes_or_nodes(row: str) -> None:
    assert GROWTH[row]["n"] == "-"
    seconds = time_form(find_row(row), [4, 16, 1024], [32])[:, 0]
    assert seconds[0] > 0
    np.testing.assert_allclose(seconds, seconds[0], rtol=1e-12)


@pytest.mark.parametrize("row", list_rows("p", "1", "start-ups"))
def test_terms_grow_as_pes_at_most(row: str) -> None:
    """What grows as p in the end: the second of two doublings adds twice as much."""
    form = find_row(row)
    seconds = time_form(form, [256, 512, 1024], [32], host_jitter=0.0, inter_latency=1e-2)[:, 0]
    first, second = np.diff(seconds)
    assert second / first == pytest.approx(2, rel=0.02)


@pytest.mark.parametrize("row", list_rows("b", "0"))
def test_terms_do_not_grow_with_samples(row: str) -> None:
    seconds = time_form(find_row(row), [16], [1, 32, 4096])[0]
    assert seconds[0] > 0
    np.testing.assert_allclose(seconds, seconds[0], rtol=1e-12)


@pytest.mark.parametrize("row", list_rows("b", "1"))
def test_terms_grow_as_samples_in_the_end(row: str) -> None:
    one, two = time_form(find_row(row), [16], [2**19, 2**20])[0]
    assert math.log2(two / one) == pytest.approx(1, abs=0.01)


def deepen(row: str) -> list[float]:
    """Seconds of ResNets with two, four and six blocks in each stage."""
    networks = (
        {"name": "deep", "rank": 2, "family": {"name": "resnet", "stages": [blocks] * 4}}
        for blocks in (2, 4, 6)
    )
    form = replace(find_row(row), dataset="imagenet")
    return [
        float(time_form(replace(form, model=network), [16], [4096])[0, 0]) for network in networks
    ]


@pytest.mark.parametrize("row", list_rows("G", "0"))
def test_terms_do_not_grow_with_layers(row: str) -> None:
    seconds = deepen(row)
    assert seconds[0] > 0
    assert seconds == pytest.approx([seconds[0]] * 3, rel=1e-12)


# Without launches, which have a maximum of their own: see above.
SUMS = set(list_rows("G", "1", "weights", "sum", "undivided")) - {"`launch_wait`"}


@pytest.mark.parametrize("row", sorted(SUMS))
def test_terms_grow_as_layers(row: str) -> None:
    first, second = np.diff(deepen(row))
    assert first > 0
    assert second == pytest.approx(first, rel=1e-9)


def test_stages_send_no_more_where_there_are_more_layers() -> None:
    """The largest cut alone: deeper networks have as cheap places to cut, or cheaper ones."""
    fewest, *more = deepen("`point_to_point`")
    assert 0 < max(more) <= fewest
