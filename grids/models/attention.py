"""Attention: each position reads all positions of a sequence, weighted by how they match.

    layers:
      - attention: {heads: 12}                       # of a sequence to itself
      - attention: {heads: 8, keys: encoder}         # to what an earlier step gives
      - attention: {heads: 32, kv_heads: 8, head_features: 128, rotary: true, bias: false}
      - attention: {score: additive, keys: encoder, normalise: true}
      - matmul: {by: keys, transpose: true, heads: 8}  # a product of two tensors by itself

Scaled dot products are Vaswani et al. 2017 (Attention is all you need), equation 1: softmax(Q K^T /
sqrt(d)) V with projections of Q, K, V and of what comes out. Additive attention is Bahdanau et al.
2015, v tanh(W q + U k); normalised (Salimans and Kingma 2016), v has a length and the sum a bias,
as GNMT has it in TensorFlow and PyTorch. Both are built of layers that the network has a row for
each, as frameworks run them that do not fuse them: scores of all pairs of positions cross the
memory, and are kept.
"""

from dataclasses import replace
from typing import ClassVar, Literal, Self

from pydantic import model_validator

from grids.entries.entry import Count, Name
from grids.models.composites import BuildingSettings, Site, expect_sequence, make_sequence
from grids.models.tensors import NO_ROLE, Counts, LayerOutput, Passage, Role, Shape
from grids.reading.errors import InputError, ShapeError


class MatMul(BuildingSettings):
    """The product of two tensors: positions x features, times those of `by`, head by head.

    Transposed: each position's features with those of every position of `by`, T x d times S x d as
    T x S. Else T x S times S x d as T x d.
    """

    bare: ClassVar[str] = "by"

    by: Name
    transpose: bool = False
    heads: Count = 1

    def build(self, name: str, x: LayerOutput, site: Site) -> LayerOutput:
        other = site.look_up(name, self.by)
        if self.transpose:
            return compare(site, name, x, other, self.heads)
        return collect(site, name, x, other, self.heads)


class Attention(BuildingSettings):
    """Queries of what comes in to the keys and values of `keys`, or of the same sequence.

    features: of all heads together, those that come in by default; or head_features of each.
    bias: of the matrices; output_bias: of the last one, if it differs.
    kv_heads: heads of keys and values, each for several of queries (Ainslie et al. 2023). rotary:
    whether queries and keys turn with their position. normalise_heads: whether queries and keys are
    scaled by their root mean square, head by head. distances: buckets of learned biases by the
    distance of two positions (Raffel et al. 2020); learns_distances: whether they are this layer's
    own, and not those of an earlier one. window: positions that one reads, if not all.
    """

    bare: ClassVar[str] = "heads"

    heads: Count | None = None
    keys: Name | None = None
    score: Literal["dot", "additive"] = "dot"
    features: Count | None = None
    bias: bool = True
    output_bias: bool | None = None
    normalise: bool = False
    kv_heads: Count | None = None
    head_features: Count | None = None
    rotary: bool = False
    normalise_heads: bool = False
    distances: Count | None = None
    learns_distances: bool = True
    window: Count | None = None

    @model_validator(mode="after")
    def _check_score(self) -> Self:
        """The settings, if they are those of one kind of score."""
        if self.score == "dot" and self.heads is None:
            raise ValueError("heads: expected how many there are; 1 for one")
        if self.score == "dot" and self.normalise:
            raise ValueError("normalise: expected with 'score: additive' alone")
        if self.score == "additive" and self.heads is not None:
            raise ValueError("heads: expected none with 'score: additive', which has one")
        if self.heads is not None and self.heads % (self.kv_heads or 1):
            raise ValueError(f"kv_heads: expected a divisor of {self.heads} heads")
        if self.features is not None and self.head_features is not None:
            raise ValueError("expected either features or head_features, got both")
        return self

    def build(self, name: str, x: LayerOutput, site: Site) -> LayerOutput:
        memory = x if self.keys is None else site.look_up(name, self.keys)
        _, features = expect_sequence(name, x.tensor)
        expect_sequence(name, memory.tensor)
        width = self.features or features
        if self.score == "additive":
            return self._build_additive(name, x, memory, width, site)
        assert self.heads is not None
        expect_window(name, memory.tensor, self.window)
        depth = self.head_features or _split_heads(f"{name}.query", width, self.heads)
        width, shared = depth * self.heads, depth * (self.kv_heads or self.heads)
        role = Role("columns", "heads", self.heads)
        of_shared = Role("columns", "kv_heads", self.kv_heads or self.heads)
        query = project(site, f"{name}.query", x, width, role, bias=self.bias)
        key = project(site, f"{name}.key", memory, shared, of_shared, bias=self.bias)
        value = project(site, f"{name}.value", memory, shared, of_shared, bias=self.bias)
        query, key = (
            self._turn(site, of, stream, depth)
            for of, stream in ((f"{name}.query", query), (f"{name}.key", key))
        )
        scores = compare(site, f"{name}.scores", query, key, self.heads)
        if self.distances is not None:
            scores = self._add_distances(site, name, scores)
        weights = weigh(site, name, scores)
        context = collect(site, f"{name}.context", weights, value, self.heads, depth)
        bias = self.bias if self.output_bias is None else self.output_bias
        role = replace(role, divided="rows")
        return project(site, f"{name}.output", context, features, role, bias=bias)

    def _turn(self, site: Site, name: str, x: LayerOutput, depth: int) -> LayerOutput:
        """Queries or keys, scaled and turned where the settings say so."""
        if self.normalise_heads:
            passage = Passage(x.tensor, x.tensor, counts=Counts(weights=depth, biases=0))
            x = site.add(f"{name}.norm", "rmsnorm", passage, x)
        return site.add(f"{name}.rotary", "rotary", keep_sizes(x), x) if self.rotary else x

    def _add_distances(self, site: Site, name: str, scores: LayerOutput) -> LayerOutput:
        """Scores with a learned bias for each head and bucket of distances."""
        assert self.heads is not None
        assert self.distances is not None
        weights = self.distances * self.heads if self.learns_distances else 0
        passage = Passage(scores.tensor, scores.tensor, counts=Counts(weights=weights))
        return site.add(f"{name}.distances", "positions", passage, scores)

    def _build_additive(
        self, name: str, x: LayerOutput, memory: LayerOutput, width: int, site: Site
    ) -> LayerOutput:
        """A sum of each query with each key, of which a vector makes a score."""
        query = project(site, f"{name}.query", x, width, bias=False)
        key = project(site, f"{name}.key", memory, width, bias=False)
        queries, keys = x.tensor.extents[0], memory.tensor.extents[0]
        pairs = make_sequence(queries, keys * width)
        counts = Counts(biases=width if self.normalise else 0, besides=key.tensor.items)
        total = site.add(
            f"{name}.sum", "add", Passage(query.tensor, pairs, counts=counts), query, key
        )
        hidden = site.add(f"{name}.tanh", "tanh", keep_sizes(total), total)
        counts = Counts(
            weights=width,
            biases=int(self.normalise),  # the length of v
            flops=2 * pairs.items,
            width=(width, 1),
        )
        passage = Passage(pairs, make_sequence(queries, keys), counts=counts)
        scores = site.add(f"{name}.scores", "matmul", passage, hidden)
        weights = site.add(f"{name}.softmax", "softmax", keep_sizes(scores), scores)
        return collect(site, f"{name}.context", weights, memory, heads=1)


def project(
    site: Site, name: str, x: LayerOutput, features: int, role: Role = NO_ROLE, *, bias: bool
) -> LayerOutput:
    """A matrix for the features of each position."""
    y = make_sequence(x.tensor.extents[0], features)
    return site.add(name, "linear", Passage(x.tensor, y, bias=bias, role=role), x)


def weigh(site: Site, name: str, scores: LayerOutput) -> LayerOutput:
    """The softmax of scores: with queries, keys and values Megatron's core attention."""
    passage = replace(keep_sizes(scores), role=Role(module="core_attn"))
    return site.add(f"{name}.softmax", "softmax", passage, scores)


def keep_sizes(x: LayerOutput) -> Passage:
    """The way through a layer whose output has the sizes of its input."""
    return Passage(x.tensor, x.tensor)


def compare(site: Site, name: str, x: LayerOutput, other: LayerOutput, heads: int) -> LayerOutput:
    """T x S scores a head: each position's features with those of each position of `other`.

    Of fewer heads of `other`, each serves several.
    """
    queries, features = expect_sequence(name, x.tensor)
    keys, others = expect_sequence(name, other.tensor)
    if features % others or heads % (features // others):
        raise ShapeError(f"{name}: {x.tensor} do not match {other.tensor}: features differ")
    depth = _split_heads(name, features, heads)
    counts = Counts(
        flops=2 * queries * keys * features, width=(depth, keys), besides=other.tensor.items
    )
    passage = Passage(x.tensor, make_sequence(queries, heads * keys), counts=counts)
    return site.add(name, "matmul", passage, x, other)


def collect(
    site: Site, name: str, x: LayerOutput, other: LayerOutput, heads: int, depth: int | None = None
) -> LayerOutput:
    """T x d a head: the features of the positions of `other`, in the measure of T x S weights.

    depth: features of a head, where several heads share those of `other`.
    """
    queries, scores = expect_sequence(name, x.tensor)
    keys, features = expect_sequence(name, other.tensor)
    if scores != heads * keys:
        raise ShapeError(f"{name}: {x.tensor} do not match {other.tensor} in {heads} heads")
    depth = depth or _split_heads(name, features, heads)
    counts = Counts(
        flops=2 * queries * keys * heads * depth, width=(keys, depth), besides=other.tensor.items
    )
    passage = Passage(x.tensor, make_sequence(queries, heads * depth), counts=counts)
    return site.add(name, "matmul", passage, x, other)


def expect_window(name: str, memory: Shape, window: int | None) -> None:
    """ShapeError for a sequence that is longer than the window of positions that one reads."""
    if window is not None and memory.extents[0] > window:
        raise ShapeError(
            f"{name}: reads a sliding window of {window:,} positions, which is not modelled for "
            f"sequences that are longer, got {memory.extents[0]:,}"
        )


def _split_heads(name: str, features: int, heads: int) -> int:
    """Features of a head; InputError where heads do not divide them."""
    if features % heads:
        raise InputError(
            f"heads: expected a divisor of {features} features, got {heads}",
            where=f"layer {name.rpartition('.')[0] or name}",
            advice="let heads divide the features",
        )
    return features // heads
