"""Properties of communication on any machine: random machines, real networks.

More of any resource is never slower; exposed and hidden time add up; a group among others is never
faster than alone.
"""

from functools import cache
from itertools import accumulate
from operator import mul
from pathlib import Path

import numpy as np
import pytest
from budgets import limit_examples
from hypothesis import example, given
from hypothesis import strategies as st
from machine_answers import STRATEGIES, Definition, add_times, answer

from paradl.grids.library import find
from paradl.kernels.configuration.answers import Answer
from paradl.kernels.names.arrays import Floats

pytestmark = pytest.mark.usefixtures("float64")

MODELS = ("alexnet", "resnet50")
INSIDE = {
    "filter": "layer_collectives",
    "channel": "layer_collectives",
    "pipeline": "point_to_point",
}


@cache
def read_catalogue(name: str) -> Definition:
    return find("system", name, Path()).definition()


@st.composite
def machines(draw: st.DrawFn, node: int | None = None) -> Definition:
    """Any network of nodes, each level slower than the one inside it."""
    pes = [node or draw(st.sampled_from((1, 2, 3, 4, 6, 8)))]
    pes += [draw(st.sampled_from((2, 3, 4, 8))) for _ in range(draw(st.integers(1, 2)))]
    latencies = accumulate(draw(st.floats(1e-6, 1e-4)) for _ in pes)
    narrows = [draw(st.floats(1e10, 5e11)), *(draw(st.floats(0.05, 1)) for _ in pes[1:])]
    rows = zip(accumulate(pes, mul), latencies, accumulate(narrows, mul), strict=True)
    levels = [
        {
            "name": f"level {n}",
            "pes": count,
            "latency": latency,
            "bandwidth": bandwidth,
            "oversubscription": draw(st.sampled_from((1.0, 2.0, 3.5))),
        }
        for n, (count, latency, bandwidth) in enumerate(rows)
    ]
    if draw(st.booleans()):  # its node's switches sum
        levels[0]["switch_latency"] = draw(st.floats(1e-7, 1e-4))
    if draw(st.booleans()):  # its node's PEs share one path
        levels[0]["shared"] = draw(st.floats(1e9, 1e12))
    whole = read_catalogue("dgx1-v100")
    machine = {key: value for key, value in whole.items() if key not in ("size", "mesh")}
    return machine | {
        "name": "any",
        "pes_per_node": pes[0],
        "links_per_node": draw(st.integers(1, 8)),
        "levels": levels,
        "software": draw(st.sampled_from(("plain", "ddp"))),
    }


def get_seconds(answer: Answer, term: str) -> Floats:
    """Return seconds per iteration of a term."""
    return np.asarray(getattr(answer.terms, term) / answer.iterations).ravel()


def change_levels(machine: Definition, key: str, factor: float, beyond: bool) -> Definition:
    """The machine with another latency or bandwidth inside its nodes, or beyond them."""
    levels = [dict(level) for level in machine["levels"]]
    for level in levels[1:] if beyond else levels[:1]:
        level[key] *= factor
    return machine | {"levels": levels}


# More is never slower.

H100 = read_catalogue("dgx-h100")


@pytest.mark.parametrize("strategy", STRATEGIES)
@limit_examples(10)
@given(
    machine=machines(),
    model=st.sampled_from(MODELS),
    replicas=st.sampled_from((1, 2, 3, 8)),
    factor=st.floats(1.01, 10),
)
def test_a_better_network_is_never_slower(strategy, machine, model, replicas, factor) -> None:
    configuration = (strategy, 4 * replicas, model)
    before = add_times(answer(machine, *configuration))
    links = machine["links_per_node"] + 1
    for better in (
        change_levels(machine, "bandwidth", factor, beyond=False),
        change_levels(machine, "bandwidth", factor, beyond=True),
        change_levels(machine, "latency", 1 / factor, beyond=False),
        change_levels(machine, "latency", 1 / factor, beyond=True),
        change_levels(machine, "oversubscription", 1.0, beyond=True) | {"links_per_node": links},
    ):
        assert add_times(answer(better, *configuration)) <= before * (1 + 1e-12)


# Not of pipelines: on a faster device stages may be cut elsewhere, whose launches take longer.
@pytest.mark.parametrize("strategy", [one for one in STRATEGIES if "pipeline" not in one])
@limit_examples(10)
@given(
    machine=machines(),
    model=st.sampled_from(MODELS),
    replicas=st.sampled_from((1, 2, 3, 8)),
    batch=st.sampled_from((1, 4, 32, 256)),
    factor=st.floats(1.01, 10),
)
@example(H100, "alexnet", 2, 4, 1.5)
def test_a_faster_device_is_never_slower(strategy, machine, model, replicas, batch, factor) -> None:
    """Few samples are launched more slowly than computed, and hide exchanges all the same."""
    for key in ("peak_flops", "memory_bandwidth"):
        rates = [machine["pe"][key], factor * machine["pe"][key]]
        axes = {"batch": batch, key: rates}
        before, after = add_times(answer(machine, strategy, 4 * replicas, model, **axes))
        assert after <= before * (1 + 1e-12)


# What is hidden.


@pytest.mark.parametrize("strategy", STRATEGIES)
@limit_examples(10)
@given(
    machine=machines(),
    model=st.sampled_from(MODELS),
    replicas=st.sampled_from((1, 2, 3, 8)),
    bucket=st.sampled_from(("100 kB", "25 MB", "10 GB")),
    accumulated=st.sampled_from((1, 3)),
)
def test_hidden_and_exposed_time_add_up(
    strategy, machine, model, replicas, bucket, accumulated
) -> None:
    overlaps = [0.0, 0.1, 0.5, 1.0]
    axes = {"overlap": overlaps, "bucket": bucket, "accumulate": accumulated}
    result = answer(machine, strategy, 4 * replicas, model, **axes)
    exposed = np.broadcast_to(np.asarray(result.communication).ravel(), 4)
    hidden = np.broadcast_to(np.asarray(result.terms.hidden_communication).ravel(), 4)
    assert hidden[0] == 0
    assert (hidden >= 0).all()
    np.testing.assert_allclose(exposed + hidden, exposed[0], rtol=1e-9)
    # Of two halves of the passes no more than one can be hidden in.
    terms = result.terms
    running = terms.forward_backward + terms.pass_overhead + terms.launch_wait
    computing = np.asarray(running).ravel()
    assert (hidden <= np.array(overlaps) * computing * (1 + 1e-9)).all()


# Groups that do not begin where nodes do.


@pytest.mark.parametrize("inside", INSIDE)
@limit_examples(10)
@given(machine=machines(), group=st.integers(2, 12), groups=st.integers(2, 6))
def test_a_group_is_never_faster_among_others(inside, machine, group, groups) -> None:
    """Alone it begins where a node does; of several, some lie across."""
    strategy = f"data+{inside}:group={group}"
    alone, among = (answer(machine, strategy, group * n, "alexnet") for n in (1, groups))
    before, after = (get_seconds(result, INSIDE[inside]) for result in (alone, among))
    assert after >= before * (1 - 1e-12)
    aligned = all(
        level["pes"] % group == 0 or group % level["pes"] == 0 for level in machine["levels"]
    )
    if aligned and "shared" not in machine["levels"][0]:  # else groups of a node share its path
        assert after == pytest.approx(before)


@pytest.mark.parametrize("inside", INSIDE)
@limit_examples(10)
@given(data=st.data(), group=st.integers(2, 8), more=st.integers(1, 7), nodes=st.integers(2, 4))
def test_groups_across_nodes_are_never_faster_than_inside(inside, data, group, more, nodes) -> None:
    """The same groups, where a node has some PEs more than fill it with whole ones."""
    whole = group * data.draw(st.integers(1, 2))
    across = whole + min(more, group - 1)
    network = data.draw(machines(node=across))
    filled = network | {"pes_per_node": whole}
    filled["levels"] = [{**network["levels"][0], "pes": whole}, *network["levels"][1:]]
    configuration = (f"data+{inside}:group={group}", group * across * nodes, "alexnet")
    seconds = [
        get_seconds(answer(machine, *configuration), INSIDE[inside])
        for machine in (network, filled)
    ]
    assert seconds[0] >= seconds[1]
