"""Mixers whose state every position updates: state-space layers and linear attention.

Instead of reading all earlier positions, each position reads a state that sums them with a decay.
Kernels work on pieces of the sequence: inside a piece as attention does, between pieces by the
state, so their work grows with the length alone. They compute states again in the backward pass.
"""

from dataclasses import replace
from typing import ClassVar

from paradl.grids.entries.entry import Count
from paradl.grids.models.steps.settings import (
    BuildingSettings,
    Site,
    expect_sequence,
    keep_sizes,
    make_sequence,
    multiply,
    project,
)
from paradl.grids.models.tensors import LayerOutput, Passage, Reading, Role
from paradl.grids.reading.errors import InputError


def count_selective(channels: int, state: int) -> int:
    """FLOPs of Mamba 1's scan, of a position: nine for each number of the state."""
    return 9 * channels * state


def count_pieces(piece: int, shared: int, features: int, state: int) -> int:
    """FLOPs of Mamba 2's scan, of a position: scores of all groups, of `shared` features, and sums
    of all heads in a piece; then states, made and read.
    """
    return 2 * piece * (shared + features) + 4 * features * state


def count_delta(piece: int, key: int, value: int) -> int:
    """FLOPs of the gated delta rule, of a position and head: as above, and triangular systems, of
    keys with keys, that are solved for keys and values.
    """
    return 2 * piece * (3 * key + 2 * value) + 6 * key * value


def convolve(
    site: Site, name: str, x: LayerOutput, role: Role, kernel: int, *, bias: bool
) -> LayerOutput:
    """Add a convolution over the last positions, each channel by itself, and its activation."""
    channels = x.tensor.channels
    passage = Passage(
        *(x.tensor, x.tensor),
        weights=channels * kernel,
        biases=channels if bias else 0,
        flops=2 * kernel * x.tensor.items,
        role=role,
    )
    return site.add(name, "short_conv", passage, x)


def scan(
    site: Site, name: str, features: int, role: Role, flops: float, vectors: int, *x: LayerOutput
) -> LayerOutput:
    """Add the states of all positions, and the features that they give.

    role: with the reading of a piece. flops: per position, forward. vectors: learned numbers.
    """
    assert role.reading is not None
    positions = x[0].tensor.extents[0]
    passage = Passage(
        x[0].tensor,
        make_sequence(positions, features),
        weights=vectors,
        flops=flops * positions,
        width=(features // role.parts, role.reading.window),
        besides=sum(one.tensor.items for one in x[1:]),
        role=role,
    )
    return site.add(name, "scan", passage, *x)


class StateSpace(BuildingSettings):
    """Mamba's layer of `features` channels with a state of `state` numbers each.

    With `heads` it is Mamba 2 (Dao and Gu 2024, arXiv 2405.21060, section 7): all inputs come from
    one matrix, channels of a head share a decay, and `groups` of heads share what they write and
    read; a gated norm, unless `norms` is false, is in front of the last matrix. Without, Mamba 1
    (Gu and Dao 2023, arXiv 2312.00752, section 3.4), whose steps have rank `rank`; `norms` are then
    those of Jamba (arXiv 2403.19887). kernel: positions of its convolution.
    """

    bare: ClassVar[str] = "features"

    features: Count
    state: Count
    heads: Count | None = None
    groups: Count = 1
    rank: Count | None = None
    kernel: Count = 4
    piece: Count = 256
    bias: bool = False
    conv_bias: bool = True
    norms: bool = True

    def build(self, name: str, x: LayerOutput, site: Site) -> LayerOutput:
        _, features = expect_sequence(name, x.tensor)
        if (self.heads is None) == (self.rank is None):
            what = "expected heads (Mamba 2) or rank (Mamba 1), got both or neither"
            raise InputError(what, where=f"layer {name}")
        if self.heads is None:
            y = self._build_first(name, x, site)
        else:
            y = self._build_second(name, x, self.heads, site)
        role = Role("rows", "heads", self.heads or self.features)
        return project(site, f"{name}.output", y, features, role, bias=self.bias)

    def _build_first(self, name: str, x: LayerOutput, site: Site) -> LayerOutput:
        assert self.rank is not None
        role = Role("columns", "heads", self.features)
        gate = project(site, f"{name}.gate", x, self.features, role, bias=self.bias)
        inner = project(site, f"{name}.input", x, self.features, role, bias=self.bias)
        inner = convolve(site, f"{name}.conv", inner, role, self.kernel, bias=self.conv_bias)
        positions, steps = inner.tensor.extents[0], self.rank + 2 * self.state
        chosen = project(site, f"{name}.choice", inner, steps, bias=False)
        if self.norms:
            chosen = site.add(f"{name}.norm", "rmsnorm", keep_sizes(chosen), chosen)
        ranked = LayerOutput(make_sequence(positions, self.rank), chosen.maker)
        step = project(site, f"{name}.step", ranked, self.features, role, bias=True)
        # Each number of the state takes an exponential, too: kernels take as long as those of
        # attention with 9/4 features a score.
        states, flops = self.features * self.state, count_selective(self.features, self.state)
        role = replace(role, reading=Reading(states, states, window=1))
        numbers = self.features * (self.state + 1)
        read = (inner, chosen, step)
        y = scan(site, f"{name}.scan", self.features, role, flops, numbers, *read)
        return multiply(site, f"{name}.gated", y, gate)

    def _build_second(self, name: str, x: LayerOutput, heads: int, site: Site) -> LayerOutput:
        shared = self.groups * self.state
        role = Role("columns", "heads", heads)
        gate = project(site, f"{name}.gate", x, self.features, role, bias=self.bias)
        width = self.features + 2 * shared
        inner = project(site, f"{name}.input", x, width, role, bias=self.bias)
        step = project(site, f"{name}.step", x, heads, role, bias=self.bias)
        inner = convolve(site, f"{name}.conv", inner, role, self.kernel, bias=self.conv_bias)
        positions, _ = expect_sequence(name, x.tensor)
        piece = min(self.piece, positions)
        flops = count_pieces(piece, shared, self.features, self.state)
        role = replace(role, reading=Reading(heads, self.groups, window=piece))
        y = scan(site, f"{name}.scan", self.features, role, flops, 3 * heads, inner, step)
        y = multiply(site, f"{name}.gated", y, gate)
        return site.add(f"{name}.norm", "rmsnorm", keep_sizes(y), y) if self.norms else y


class LinearAttention(BuildingSettings):
    """Attention without a softmax: `heads` of values read a state of keys times values.

    With `kernel`, a convolution is over queries, keys and values, and the state forgets by the
    delta rule (Yang et al. 2024, arXiv 2412.06464; Qwen3-Next). Without, it decays by a constant
    (MiniMax-01, arXiv 2501.08313, section 2.2). key_heads: of queries and keys, if fewer.
    """

    bare: ClassVar[str] = "heads"

    heads: Count
    value_features: Count
    key_heads: Count | None = None
    key_features: Count | None = None
    kernel: Count | None = None
    piece: Count = 64

    def build(self, name: str, x: LayerOutput, site: Site) -> LayerOutput:
        positions, features = expect_sequence(name, x.tensor)
        heads, value = self.heads, self.value_features
        key, key_heads = self.key_features or value, self.key_heads or heads
        role, width = Role("columns", "heads", heads), heads * value
        inner = project(site, f"{name}.input", x, 2 * key_heads * key + width, role, bias=False)
        gate = project(site, f"{name}.gate", x, width, role, bias=False)
        piece = min(self.piece, positions)
        # Per head: scores of a piece and their sums, then states of keys times values.
        flops, vectors, norm = 2 * piece * (key + value) + 4 * key * value, 0, width
        read: tuple[LayerOutput, ...] = ()
        if self.kernel is not None:
            read = (project(site, f"{name}.decay", x, 2 * heads, role, bias=False),)
            inner = convolve(site, f"{name}.conv", inner, role, self.kernel, bias=False)
            flops, vectors = count_delta(piece, key, value), 2 * heads
            norm = value  # which all heads share
        role = replace(role, reading=Reading(heads, key_heads, window=piece))
        y = scan(site, f"{name}.scan", width, role, heads * flops, vectors, inner, *read)
        passage = Passage(y.tensor, y.tensor, weights=norm, biases=0)
        y = multiply(site, f"{name}.gated", site.add(f"{name}.norm", "rmsnorm", passage, y), gate)
        role = Role("rows", "heads", heads)
        return project(site, f"{name}.output", y, features, role, bias=False)


class ShortConv(BuildingSettings):
    """Gated convolution over the last `kernel` positions (LFM2, arXiv 2511.23404, section 3)."""

    bare: ClassVar[str] = "kernel"

    kernel: Count
    bias: bool = False

    def build(self, name: str, x: LayerOutput, site: Site) -> LayerOutput:
        _, features = expect_sequence(name, x.tensor)
        role = Role("columns", "heads", features)
        inner, before, behind = (
            project(site, f"{name}.{part}", x, features, role, bias=self.bias)
            for part in ("input", "before", "behind")
        )
        inner = multiply(site, f"{name}.gated", inner, before)
        inner = convolve(site, f"{name}.conv", inner, role, self.kernel, bias=self.bias)
        y = multiply(site, f"{name}.product", inner, behind)
        role = Role("rows", "heads", features)
        return project(site, f"{name}.output", y, features, role, bias=self.bias)
