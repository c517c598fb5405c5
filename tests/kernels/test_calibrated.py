"""The calibrated formulas against plain Python, one number at a time, written from their equations.

b samples a replica, p = p1 x p2 PEs in n = max(1, p / PEs of a node) nodes, delta bytes an item.
"""

from dataclasses import dataclass, fields, replace
from math import inf, log2
from typing import Any

import numpy as np
import pytest
from budgets import limit_examples
from hypothesis import assume, given
from hypothesis import strategies as st
from toys import bounds

from kernels.calibrated import iteration_terms
from kernels.calibration import LARGE_MESSAGE, Calibration
from kernels.case import Case
from kernels.collectives import Algorithm
from kernels.compute import PE
from kernels.group import GroupWork
from kernels.network import Network
from kernels.options import Options
from kernels.run import Run
from kernels.terms import Terms

GROUPS = ("none", "spatial", "pipeline", "filter", "channel")
LEVELS = 3


@dataclass(frozen=True)
class Question:
    """Arguments of `iteration_terms`, of Python's own numbers."""

    group: str
    work: GroupWork
    run: Run
    network: Network
    pe: PE
    calibration: Calibration
    algorithm: Algorithm


@st.composite
def questions(draw: st.DrawFn) -> Question:
    """A group of layers on a machine, none of it like any other."""
    group = draw(st.sampled_from(GROUPS))
    p1 = draw(st.sampled_from((1, 2, 3, 16)))
    p2 = 1 if group == "none" else draw(st.sampled_from((1, 2, 4, 5, 64)))
    run = Run(
        p=float(p1 * p2),
        p1=float(p1),
        p2=float(p2),
        spec_batch=draw(st.floats(0.5, 512)),
        samples=1e6,
        segments=draw(st.sampled_from((1.0, 4.0))),
        delta=draw(st.sampled_from((2.0, 4.0))),
        gamma=1.0,
        phi=draw(st.floats(1, 4)),
        gradient_delta=4.0,
        accumulate=1.0,
    )
    run = replace(run, gradient_delta=run.delta)
    pe = PE(1e13, 0.5, 16e9, draw(st.floats(1e11, 1e13)))
    algorithm: Algorithm = draw(st.sampled_from(("ring", "tree", "best")))
    calibration = Calibration(*(draw(st.floats(0.01, 3)) for _ in fields(Calibration)))
    return Question(group, draw(works(group)), run, draw(networks()), pe, calibration, algorithm)


@st.composite
def works(draw: st.DrawFn, group: str) -> GroupWork:
    items = st.just(0.0) | st.floats(1, 1e9)  # no parts of an item, such as 1e-308
    serial = draw(st.floats(1e-6, 1))
    messages = draw(st.sampled_from((1, 3)))

    def if_by(*groups: str, of: st.SearchStrategy) -> float:
        return draw(of) if group in groups else 0.0

    def each(of: st.SearchStrategy) -> list[float]:
        return [if_by("filter", "channel", of=of) for _ in range(messages)]

    return GroupWork(
        forward_backward=draw(st.floats(1e-6, 1)),
        update=draw(st.floats(0, 1e-2)),
        fixed=0.0,
        activations=np.zeros(1),
        parameters=np.zeros(1),
        gradient=draw(items),
        gathered=np.array(each(items)),
        gathers=np.array(each(st.integers(0, 50).map(float))),
        halo_items=if_by("spatial", of=items),
        halo_exchanges=if_by("spatial", of=st.integers(0, 50).map(float)),
        split_items=if_by("spatial", of=items),
        stage_items=if_by("pipeline", of=items),
        replicated=float(group == "spatial"),
        pipelined=float(group == "pipeline"),
        by_filter=float(group == "filter"),
        by_channel=float(group == "channel"),
        serial=serial,
        convolution=serial * draw(st.floats(0, 1)),
        elementwise=draw(items),
        layers=draw(st.integers(1, 200).map(float)),
        sample=draw(st.floats(1, 1e9)),
        undivided=draw(items),
        tensors=0.0,
        halo_stride=1.0,
    )


@st.composite
def networks(draw: st.DrawFn) -> Network:
    bandwidth = st.floats(1e8, 1e12)
    latency = st.floats(1e-7, 1e-3)
    staged = draw(st.booleans())
    return Network(
        span=np.array([4.0, 32.0, 4096.0]),
        latency=np.array([draw(latency) for _ in range(LEVELS)]),
        bandwidth=np.array([draw(bandwidth) for _ in range(LEVELS)]),
        pes_per_node=4.0,
        links_per_node=2.0,
        staging_latency=draw(latency) if staged else 0.0,
        staging_bandwidth=draw(bandwidth) if staged else inf,
        phi_halo=draw(st.floats(1, 8)),
        phi_gather=1.0,
    )


class ByHand:
    """The same terms."""

    def __init__(self, asked: Question) -> None:
        # Numbers, which kernels take for arrays as well.
        self.work: Any = asked.work
        self.run: Any = asked.run
        self.network: Any = asked.network
        self.calibration: Any = asked.calibration
        self.group, self.algorithm = asked.group, asked.algorithm
        self.memory = float(asked.pe.memory_bandwidth)
        self.p, self.p1, self.p2 = (float(each) for each in (self.run.p, self.run.p1, self.run.p2))
        self.bytes = float(self.run.spec_batch * self.run.delta)  # of one item of each sample
        self.n = max(1.0, self.p / 4)
        self.elsewhere = (self.n - 1) / self.n
        self.congested = 1 + float(self.calibration.congestion * self.elsewhere)

    def level(self, q: float) -> tuple[float, float]:
        place = next((n for n in range(LEVELS) if q <= self.network.span[n]), LEVELS - 1)
        return float(self.network.latency[place]), float(self.network.bandwidth[place])

    def gather(self, q: float, m: float, alpha: float, bandwidth: float, times: float = 1) -> float:
        ring = (q - 1) * (times * alpha + m / q / bandwidth)
        tree = log2(q) * (times * alpha + m / bandwidth)
        return {"ring": ring, "tree": tree, "best": min(ring, tree)}[self.algorithm]

    def reduce(self, q: float, m: float, spanned: float, slower: float = 1) -> float:
        """A gradient all-reduce of q PEs that are spread over `spanned` ones."""
        alpha, bandwidth = self.level(spanned)
        if spanned <= 4:
            return 2 * self.gather(q, m, alpha, self.calibration.node_reduce * bandwidth / slower)
        alpha *= self.calibration.reduce_latency
        return 2 * self.gather(q, m, alpha, self.calibration.reduce * bandwidth / slower)

    @property
    def staged(self) -> float:
        """Bytes of gradients through host memory: all of spatial's, the undivided of a group's."""
        by_layer = self.group in ("filter", "channel") and self.p1 == 1 and self.p2 > 1
        spatial = self.group == "spatial" and self.p > 1
        return self.run.delta * self.work.undivided if by_layer or spatial else 0.0

    def large(self, m: float) -> float:
        """Seconds of what is beyond a large message."""
        speed = self.calibration.large_message * self.network.staging_bandwidth
        return max(0.0, m - LARGE_MESSAGE) / speed

    @property
    def slow(self) -> float:
        return 2 * self.elsewhere * self.large(self.staged)

    def forward_backward(self) -> float:
        serial = self.run.spec_batch * self.work.serial
        moved = self.bytes * self.work.elementwise
        elementwise = self.calibration.elementwise_passes * moved / self.memory
        overhead = self.calibration.layer_overhead * self.work.layers
        if elementwise + overhead > 0.8 * serial:
            most = 0.8 * serial / (elementwise + overhead)
            elementwise, overhead = most * elementwise, most * overhead
        products = serial - elementwise - overhead
        convolutions = products * self.work.convolution / self.work.serial
        others = products - convolutions
        match self.group:
            case "none":
                return serial
            case "pipeline":
                return self.run.spec_batch * self.work.forward_backward
            case "spatial":
                return (convolutions + elementwise) / self.p2 + others + overhead
        return convolutions / self.p2 + elementwise + others + overhead

    def split_overhead(self) -> float:
        times = {"filter": 2, "channel": 1}.get(self.group, 0)
        outputs = self.bytes * float(sum(self.work.gathered)) * (self.p2 - 1) / self.p2
        assembled = times * outputs / (self.calibration.assembly * self.memory)
        chunks = 2 * float(sum(self.work.gathers)) * (self.p2 - 1) if self.group == "filter" else 0
        packed = 2 * self.staged / (self.calibration.packing * self.network.staging_bandwidth)
        again = self.slow if self.group == "channel" else 0.0
        return assembled + chunks * self.calibration.chunk_overhead + packed + again

    def gradient_exchange(self) -> float:
        rings = 0.0
        if self.group != "spatial":
            several = self.calibration.contention if self.p2 > 1 else 1.0
            phi = max(1.0, several * self.run.phi)
            rings = self.reduce(self.p1, self.run.delta * self.work.gradient, self.p, phi)
        inside = min(self.p, 4.0)
        levels = 0.0
        if self.staged > 0:
            alpha, bandwidth = self.level(self.p)
            alpha, bandwidth = (
                alpha * self.calibration.reduce_latency,
                bandwidth * self.calibration.reduce,
            )
            levels = self.reduce(inside, self.staged, inside)
            levels += 2 * self.gather(self.n, self.staged, alpha, bandwidth)
        return float(self.congested * (rings + levels + self.slow))

    def layer_collectives(self) -> float:
        alpha, bandwidth = self.level(self.p2)
        if self.p2 <= 4:
            bandwidth *= self.calibration.node_collective
        else:
            alpha *= self.calibration.reduce_latency
            bandwidth *= self.calibration.collective
        once: Any = sum(
            self.gather(self.p2, self.bytes * float(items), alpha, bandwidth, float(times))
            for items, times in zip(self.work.gathered, self.work.gathers, strict=True)
        )
        return float(self.congested * {"filter": 2, "channel": 3}.get(self.group, 0) * once)

    def halo_exchange(self) -> float:
        alpha, bandwidth = self.level(self.p2)
        alpha = max(alpha, self.calibration.halo_latency * self.network.staging_latency)
        bandwidth = min(bandwidth, self.network.staging_bandwidth) / self.network.phi_halo
        starts = 4 * self.work.halo_exchanges * alpha
        return self.congested * (starts + 2 * self.bytes * self.work.halo_items / bandwidth)

    def split_gather(self) -> float:
        """The group's samples, where they are large."""
        if self.group != "spatial" or self.p2 == 1:
            return 0.0
        return float(self.congested * self.large(self.bytes * self.work.sample))

    def point_to_point(self) -> float:
        if self.group != "pipeline" or self.p2 == 1:
            return 0.0
        alpha, bandwidth = self.level(self.p2)
        sent = self.bytes / self.run.segments * self.work.stage_items
        steps = 2 * (self.p2 + self.run.segments - 2)
        return self.congested * steps * (alpha + sent / bandwidth)

    def pipeline_bubble(self) -> float:
        filling = (self.p2 - 1) / self.run.segments if self.group == "pipeline" else 0.0
        return filling * self.forward_backward()

    def pass_overhead(self) -> float:
        return 0.0  # a part of the serial time

    def input_wait(self) -> float:
        return 0.0

    def weight_update(self) -> float:
        return self.work.update


def answer(asked: Question) -> Terms:
    return iteration_terms(
        Case(
            work=asked.work,
            bounds=bounds(),
            run=asked.run,
            network=asked.network,
            pe=asked.pe,
            calibration=asked.calibration,
            options=Options(algorithm=asked.algorithm),
        )
    )


@limit_examples(60)
@given(questions())
def test_terms_by_hand(asked: Question) -> None:
    found, by_hand = answer(asked), ByHand(asked)
    for term in fields(Terms):
        expected = getattr(by_hand, term.name)()
        assert float(getattr(found, term.name)) == pytest.approx(expected, rel=1e-9, abs=1e-300), (
            term.name
        )


@limit_examples(20)
@given(questions().filter(lambda asked: asked.run.p == 1))
def test_one_pe_is_serial(asked: Question) -> None:
    found = answer(asked)
    if asked.group != "pipeline":  # whose one stage is what the reduction of layers says
        assert float(found.forward_backward) == pytest.approx(
            asked.run.spec_batch * asked.work.serial
        )
    assert float(found.communication) == pytest.approx(0, abs=halo_starts(asked))
    assert float(found.split_overhead) == pytest.approx(0, abs=1e-300)


def halo_starts(asked: Question) -> float:
    """A group of one PE has no halo, which the reduction of layers knows, but these layers not."""
    return ByHand(asked).halo_exchange() + 1e-300


@limit_examples(30)
@given(questions())
def test_only_peers_in_other_nodes_congest(asked: Question) -> None:
    quiet = replace(asked, calibration=replace(asked.calibration, congestion=0.0))
    more, less = answer(asked).communication, answer(quiet).communication
    longer = 1 + asked.calibration.congestion * (1 - 1 / max(1.0, asked.run.p / 4))
    assert float(more) == pytest.approx(longer * float(less), rel=1e-9)


@limit_examples(40)
@given(questions(), st.sampled_from([each.name for each in fields(Calibration)]))
def test_nothing_gets_faster_by_a_greater_overhead(asked: Question, name: str) -> None:
    """Times and shares are longer when greater; bandwidths, shorter.

    But for elementwise layers of a spatial group: they divide, and are a part of the serial time of
    which the rest does not.
    """
    assume((asked.group, name) != ("spatial", "elementwise_passes"))
    value = getattr(asked.calibration, name)
    after = answer(replace(asked, calibration=replace(asked.calibration, **{name: 1.5 * value})))
    before = answer(asked)
    change = float(after.compute + after.communication - before.compute - before.communication)
    slower = ("overhead", "latency", "contention", "congestion", "passes")
    tolerance = 1e-9 * float(before.compute + before.communication)
    if any(word in name for word in slower):
        assert change >= -tolerance
    else:
        assert change <= tolerance
