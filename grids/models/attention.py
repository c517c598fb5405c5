"""Attention: each position reads all positions of a sequence, weighted by how they match.

    layers:
      - attention: {heads: 12}                       # of a sequence to itself
      - attention: {heads: 8, keys: encoder}         # to what an earlier step gives
      - attention: {score: additive, keys: encoder, normalise: true}
      - matmul: {by: keys, transpose: true, heads: 8}  # a product of two tensors by itself

Scaled dot products are Vaswani et al. 2017 (Attention is all you need), equation 1: softmax(Q K^T /
sqrt(d)) V with projections of Q, K, V and of what comes out. Additive attention is Bahdanau et al.
2015, v tanh(W q + U k); normalised (Salimans and Kingma 2016), v has a length and the sum a bias,
as GNMT has it in TensorFlow and PyTorch. Both are built of layers that the network has a row for
each, as frameworks run them that do not fuse them: scores of all pairs of positions cross the
memory, and are kept.
"""

from typing import ClassVar, Literal, Self

from pydantic import model_validator

from grids.entries.entry import Count, Name
from grids.models.building import BuildingSettings, Site, expect_sequence, make_sequence
from grids.models.tensors import Counts, Passage, Stream
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

    def build(self, name: str, x: Stream, site: Site) -> Stream:
        other = site.look_up(name, self.by)
        if self.transpose:
            return _compare(site, name, x, other, self.heads)
        return _collect(site, name, x, other, self.heads)


class Attention(BuildingSettings):
    """Queries of what comes in to the keys and values of `keys`, or of the same sequence.

    features: of all heads together, those that come in by default.
    """

    bare: ClassVar[str] = "heads"

    heads: Count | None = None
    keys: Name | None = None
    score: Literal["dot", "additive"] = "dot"
    features: Count | None = None
    bias: bool = True
    normalise: bool = False

    @model_validator(mode="after")
    def _check_score(self) -> Self:
        """The settings, if they are those of one kind of score."""
        if self.score == "dot" and self.heads is None:
            raise ValueError("heads: expected how many there are; 1 for one")
        if self.score == "dot" and self.normalise:
            raise ValueError("normalise: expected with 'score: additive' alone")
        if self.score == "additive" and self.heads is not None:
            raise ValueError("heads: expected none with 'score: additive', which has one")
        return self

    def build(self, name: str, x: Stream, site: Site) -> Stream:
        memory = x if self.keys is None else site.look_up(name, self.keys)
        _, features = expect_sequence(name, x.tensor)
        expect_sequence(name, memory.tensor)
        width = self.features or features
        if self.score == "additive":
            return self._build_additive(name, x, memory, width, site)
        assert self.heads is not None
        query = _project(site, f"{name}.query", x, width, bias=self.bias)
        key = _project(site, f"{name}.key", memory, width, bias=self.bias)
        value = _project(site, f"{name}.value", memory, width, bias=self.bias)
        scores = _compare(site, f"{name}.scores", query, key, self.heads)
        weights = site.add(f"{name}.softmax", "softmax", _keep_sizes(scores), scores)
        context = _collect(site, f"{name}.context", weights, value, self.heads)
        return _project(site, f"{name}.output", context, features, bias=self.bias)

    def _build_additive(
        self, name: str, x: Stream, memory: Stream, width: int, site: Site
    ) -> Stream:
        """A sum of each query with each key, of which a vector makes a score."""
        query = _project(site, f"{name}.query", x, width, bias=False)
        key = _project(site, f"{name}.key", memory, width, bias=False)
        queries, keys = x.tensor.extents[0], memory.tensor.extents[0]
        pairs = make_sequence(queries, keys * width)
        counts = Counts(biases=width if self.normalise else 0, besides=key.tensor.items)
        total = site.add(
            f"{name}.sum", "add", Passage(query.tensor, pairs, counts=counts), query, key
        )
        hidden = site.add(f"{name}.tanh", "tanh", _keep_sizes(total), total)
        counts = Counts(
            weights=width,
            biases=int(self.normalise),  # the length of v
            flops=2 * pairs.items,
            width=(width, 1),
        )
        passage = Passage(pairs, make_sequence(queries, keys), counts=counts)
        scores = site.add(f"{name}.scores", "matmul", passage, hidden)
        weights = site.add(f"{name}.softmax", "softmax", _keep_sizes(scores), scores)
        return _collect(site, f"{name}.context", weights, memory, heads=1)


def _project(site: Site, name: str, x: Stream, features: int, *, bias: bool) -> Stream:
    """A matrix for the features of each position."""
    y = make_sequence(x.tensor.extents[0], features)
    return site.add(name, "linear", Passage(x.tensor, y, bias=bias), x)


def _keep_sizes(x: Stream) -> Passage:
    return Passage(x.tensor, x.tensor)


def _compare(site: Site, name: str, x: Stream, other: Stream, heads: int) -> Stream:
    """T x S scores a head: each position's features with those of each position of `other`."""
    queries, features = expect_sequence(name, x.tensor)
    keys, others = expect_sequence(name, other.tensor)
    if features != others:
        raise ShapeError(f"{name}: {x.tensor} do not match {other.tensor}: features differ")
    depth = _split_heads(name, features, heads)
    counts = Counts(
        flops=2 * queries * keys * features, width=(depth, keys), besides=other.tensor.items
    )
    passage = Passage(x.tensor, make_sequence(queries, heads * keys), counts=counts)
    return site.add(name, "matmul", passage, x, other)


def _collect(site: Site, name: str, x: Stream, other: Stream, heads: int) -> Stream:
    """T x d a head: the features of the positions of `other`, in the measure of T x S weights."""
    queries, scores = expect_sequence(name, x.tensor)
    keys, features = expect_sequence(name, other.tensor)
    if scores != heads * keys:
        raise ShapeError(f"{name}: {x.tensor} do not match {other.tensor} in {heads} heads")
    depth = _split_heads(name, features, heads)
    counts = Counts(
        flops=2 * queries * keys * features, width=(keys, depth), besides=other.tensor.items
    )
    passage = Passage(x.tensor, make_sequence(queries, features), counts=counts)
    return site.add(name, "matmul", passage, x, other)


def _split_heads(name: str, features: int, heads: int) -> int:
    """Features of a head; InputError where heads do not divide them."""
    if features % heads:
        raise InputError(
            f"heads: expected a divisor of {features} features, got {heads}",
            where=f"layer {name.rpartition('.')[0] or name}",
            advice="let heads divide the features",
        )
    return features // heads
