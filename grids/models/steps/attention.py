"""Attention: each position reads all positions of a sequence, weighted by how they match.


Dot-product attention is Vaswani et al. 2017, equation 1: softmax(Q K^T / sqrt(d)) V, with
projections of Q, K, V and of the result. Additive attention is Bahdanau et al. 2015,
v tanh(W q + U k); when normalised (Salimans and Kingma 2016), v has a length and the sum a bias, as
in the GNMT of TensorFlow and PyTorch. Every operation is a row of the layer table, as frameworks
without fused kernels run it: the scores of all pairs of positions go through memory, and are kept.

Latent attention is DeepSeek-V2 (arXiv 2405.04434), section 2.1, as in training: keys and values of
all heads are materialised from a few features per position. The query and key of a head have
`content` features, and `rotary` ones that are rotated by position; the rotary part of the key is
shared by all heads.
"""

from dataclasses import replace
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, ValidationInfo, field_validator, model_validator

from paradl.grids.entries.entry import Count, Name, Record
from paradl.grids.models.steps.settings import (
    BuildingSettings,
    Site,
    collect,
    compare,
    describe_heads,
    expect_sequence,
    keep_sizes,
    make_sequence,
    multiply,
    project,
    split_heads,
    weigh,
)
from paradl.grids.models.tensors import LayerOutput, Passage, Reading, Role
from paradl.grids.reading.errors import format_count


class MatMul(BuildingSettings):
    """The product of two tensors, positions x features, head by head.

    Transposed: the features of each position with those of every position of `by`, T x d times
    S x d giving T x S. Otherwise T x S times S x d giving T x d.
    """

    bare: ClassVar[str] = "by"

    by: Name
    transpose: bool = False
    heads: Count = 1

    def build(self, name: str, x: LayerOutput, site: Site) -> LayerOutput:
        other = site.look_up(name, self.by)
        # Keys with a fraction of the queries' features have as many fewer heads.
        shared = max(x.tensor.channels // other.tensor.channels, 1) if self.transpose else 1
        reading = Reading(self.heads, max(self.heads // shared, 1))
        return (compare if self.transpose else collect)(site, name, x, other, reading)


class Attention(BuildingSettings):
    """Attention of the input's queries to the keys and values of `keys`, or of the input itself.

    features: of all heads together, by default the input's; or head_features of one head. bias: of
    the matrices; output_bias: of the last one, if different. kv_heads: heads of keys and values,
    each shared by several queries (Ainslie et al. 2023). rotary: rotate queries and keys by
    position. normalise_heads: divide each head's queries and keys by their root mean square.
    distances: number of learned biases, by distance of two positions (Raffel et al. 2020);
    learns_distances: whether they are this layer's or an earlier one's. relative: distances whose
    vectors queries and keys are multiplied with (He et al. 2020, DeBERTa), by matrices of
    relative_weights if not by those of queries and keys. causal: a query reads no later position.
    window: positions that a query reads, if not all.
    """

    bare: ClassVar[str] = "heads"

    heads: Count | None = None
    keys: Name | None = None
    score: Literal["dot", "additive"] = "dot"
    features: Count | None = None
    bias: bool = True
    output_bias: bool | None = None
    key_bias: bool | None = None
    normalise: bool = False
    kv_heads: Count | None = None
    head_features: Count | None = None
    rotary: bool = False
    normalise_heads: bool = False
    normalise_width: bool = False
    sinks: bool = False
    gates: bool = False
    distances: Count | None = None
    learns_distances: bool = True
    relative: Count | None = None
    relative_weights: Annotated[int, Field(ge=0)] = 0
    causal: bool = False
    window: Count | None = None

    @field_validator("head_features", mode="before")
    @classmethod
    def _expect_whole(cls, value: object, info: ValidationInfo) -> object:
        """Return the features of a head; of a family, they are a quotient."""
        heads = info.data.get("heads")
        is_quotient = isinstance(value, float) and 0 < value < 2**53 and not value.is_integer()
        if is_quotient and heads:
            raise ValueError(describe_heads(round(value * heads), heads))
        return value

    @model_validator(mode="after")
    def _check_score(self) -> Self:
        if self.score == "dot" and self.heads is None:
            raise ValueError("heads: expected the number of heads; 1 for a single one")
        if self.score == "dot" and self.normalise:
            raise ValueError("normalise: only allowed with 'score: additive'")
        if self.score == "additive" and (self.causal or self.window):
            raise ValueError("causal, window: not allowed with 'score: additive'")
        if self.score == "additive" and self.heads is not None:
            raise ValueError("heads: not allowed with 'score: additive', which has one head")
        if self.heads is not None and self.heads % (self.kv_heads or 1):
            raise ValueError(f"kv_heads: expected a divisor of {format_count(self.heads, 'head')}")
        if self.features is not None and self.head_features is not None:
            raise ValueError("expected either features or head_features, got both")
        return self

    def build(self, name: str, x: LayerOutput, site: Site) -> LayerOutput:
        # In cross-attention the keys and values come from another sequence, the memory.
        memory = x if self.keys is None else site.look_up(name, self.keys)
        _, features = expect_sequence(name, x.tensor)
        expect_sequence(name, memory.tensor)
        width = self.features or features
        if self.score == "additive":
            return self._build_additive(name, x, memory, width, site)
        assert self.heads is not None
        depth = self.head_features or split_heads(f"{name}.query", width, self.heads)
        reading = Reading(self.heads, self.kv_heads or self.heads, self.causal, self.window or 0)
        width, shared = depth * self.heads, depth * reading.kv_heads
        # Columns, then rows: tensor parallelism exchanges once per attention (Megatron-LM).
        role = Role("columns", "heads", self.heads)
        shared_role = Role("columns", "kv_heads", reading.kv_heads)
        query = project(site, f"{name}.query", x, width, role, bias=self.bias)
        bias = self.bias if self.key_bias is None else self.key_bias
        key = project(site, f"{name}.key", memory, shared, shared_role, bias=bias)
        value = project(site, f"{name}.value", memory, shared, shared_role, bias=self.bias)
        query, key = (
            self._rotate(site, stream_name, stream, depth)
            for stream_name, stream in ((f"{name}.query", query), (f"{name}.key", key))
        )
        # Queries that share a key save its weights and bytes, but no product.
        scores = compare(site, f"{name}.scores", query, key, reading)
        if self.distances is not None:
            scores = self._add_distances(site, name, scores)
        for side, stream in (("query", query), ("key", key)) if self.relative else ():
            scores = self._add_relative(site, f"{name}.{side}", scores, stream)
        weights = weigh(site, name, scores, reading, self.heads if self.sinks else 0)
        context = collect(site, f"{name}.context", weights, value, reading, depth)
        if self.gates:
            gate = project(site, f"{name}.gate", x, width, role, bias=self.bias)
            context = multiply(site, f"{name}.gated", context, gate)
        bias = self.bias if self.output_bias is None else self.output_bias
        role = replace(role, divided="rows")
        return project(site, f"{name}.output", context, features, role, bias=bias)

    def _rotate(self, site: Site, name: str, x: LayerOutput, depth: int) -> LayerOutput:
        if self.normalise_heads or self.normalise_width:
            width = x.tensor.channels if self.normalise_width else depth  # which all heads share
            passage = Passage(x.tensor, x.tensor, weights=width, biases=0)
            x = site.add(f"{name}.norm", "rmsnorm", passage, x)
        return site.add(f"{name}.rotary", "rotary", keep_sizes(x), x) if self.rotary else x

    def _add_distances(self, site: Site, name: str, scores: LayerOutput) -> LayerOutput:
        """Add a learned bias per head and bucket of distances to the scores."""
        assert self.heads is not None
        assert self.distances is not None
        weights = self.distances * self.heads if self.learns_distances else 0
        passage = Passage(scores.tensor, scores.tensor, weights=weights)
        return site.add(f"{name}.distances", "positions", passage, scores)

    def _add_relative(
        self, site: Site, name: str, scores: LayerOutput, x: LayerOutput
    ) -> LayerOutput:
        """Add products of queries, or keys, with the vectors of all distances to the scores."""
        heads, relative = self.heads or 0, self.relative or 0
        products = make_sequence(x.tensor.extents[0], heads * relative)
        weights = self.relative_weights / 2  # of one side
        flops = 2 * x.tensor.items * relative
        passage = Passage(x.tensor, products, weights=weights, biases=0, flops=flops)
        added = site.add(f"{name}_relative", "matmul", passage, x)
        total = Passage(scores.tensor, scores.tensor, inputs=2)
        return site.add(f"{name}_relative_sum", "add", total, scores, added)

    def _build_additive(
        self, name: str, x: LayerOutput, memory: LayerOutput, width: int, site: Site
    ) -> LayerOutput:
        """Build the sums of all queries and keys, and reduce each with a vector to a score."""
        query = project(site, f"{name}.query", x, width, bias=False)
        key = project(site, f"{name}.key", memory, width, bias=False)
        queries, keys = x.tensor.extents[0], memory.tensor.extents[0]
        # Each query is added to every key, so that a position has the sums of all its pairs.
        pairs = make_sequence(queries, keys * width)
        biases = width if self.normalise else 0
        passage = Passage(query.tensor, pairs, biases=biases, besides=key.tensor.items)
        total = site.add(f"{name}.sum", "add", passage, query, key)
        hidden = site.add(f"{name}.tanh", "tanh", keep_sizes(total), total)
        passage = Passage(
            pairs,
            make_sequence(queries, keys),
            weights=width,
            biases=int(self.normalise),  # the length of v
            flops=2 * pairs.items,
            width=(width, 1),
        )
        scores = site.add(f"{name}.scores", "matmul", passage, hidden)
        weights = site.add(f"{name}.softmax", "softmax", keep_sizes(scores), scores)
        return collect(site, f"{name}.context", weights, memory, Reading(1, 1))


# Recomputed from latent features when Megatron recomputes this module.
UP = Role(module="mla_up_proj")


class Index(Record):
    """Small heads that score all positions, of which attention reads the `most` best ones.

    DeepSeek-V3.2 (arXiv 2512.02556, section 2.1). heads: their number. features: of a head. most:
    positions that are read.
    """

    heads: Count
    features: Count
    most: Count


class LatentAttention(BuildingSettings):
    """Attention with latent keys and values; query_rank: rank of latent queries, if any.

    causal, window: as of `attention`. index: chooses the positions that it reads.
    """

    bare: ClassVar[str] = "heads"

    heads: Count
    rank: Count
    content: Count
    rotary: Count
    value: Count
    query_rank: Count | None = None
    causal: bool = False
    window: Count | None = None
    index: Index | None = None

    def build(self, name: str, x: LayerOutput, site: Site) -> LayerOutput:
        positions, features = expect_sequence(name, x.tensor)
        depth, window = self.content + self.rotary, self.window or 0
        source = self._rank_queries(name, x, site)
        if self.index is not None:
            self._build_index(f"{name}.index", source, x, self.index, site)
            window = min(window or self.index.most, self.index.most)
        query = self._build_queries(name, source, depth, site)
        latent = project(site, f"{name}.latent", x, self.rank + self.rotary, bias=False)
        # Only latent features are normalised, not the rotary ones.
        ranked = make_sequence(positions, self.rank)
        passage = Passage(ranked, ranked, role=UP)
        normal = site.add(f"{name}.latent_norm", "rmsnorm", passage, latent)
        width = self.content + self.value
        # Rotation copies the keys, so only the values are still read from this output.
        role = Role("columns", "heads", self.heads, UP.module, kept=self.value / width)
        written = project(site, f"{name}.key_value", normal, self.heads * width, role, bias=False)
        keys = make_sequence(positions, self.heads * depth)
        key = site.add(f"{name}.key_rotary", "rotary", Passage(keys, keys), written, latent)
        values = LayerOutput(make_sequence(positions, self.heads * self.value), written.maker)
        reading = Reading(self.heads, self.heads, self.causal, window)
        scores = compare(site, f"{name}.scores", query, key, reading)
        weights = weigh(site, name, scores, reading)
        context = collect(site, f"{name}.context", weights, values, reading)
        role = Role("rows", "heads", self.heads)
        return project(site, f"{name}.output", context, features, role, bias=False)

    def _rank_queries(self, name: str, x: LayerOutput, site: Site) -> LayerOutput:
        """Return what queries are made of: latent features, or the input."""
        if self.query_rank is None:
            return x
        x = project(site, f"{name}.query_latent", x, self.query_rank, bias=False)
        return site.add(f"{name}.query_norm", "rmsnorm", replace(keep_sizes(x), role=UP), x)

    def _build_index(
        self, name: str, source: LayerOutput, x: LayerOutput, index: Index, site: Site
    ) -> None:
        """Build the scores of all positions, of which the best are chosen."""
        reading = Reading(index.heads, 1, self.causal)
        query = project(site, f"{name}.query", source, index.heads * index.features, bias=False)
        key = project(site, f"{name}.key", x, index.features, bias=False)
        key = site.add(f"{name}.norm", "norm", keep_sizes(key), key)
        weights = project(site, f"{name}.weights", x, index.heads, bias=False)
        scores = compare(site, f"{name}.scores", query, key, reading)
        site.add(f"{name}.sum", "scale", keep_sizes(scores), scores, weights)

    def _build_queries(self, name: str, x: LayerOutput, depth: int, site: Site) -> LayerOutput:
        role = Role("columns", "heads", self.heads, UP.module)
        query = project(site, f"{name}.query", x, self.heads * depth, role, bias=False)
        return site.add(f"{name}.query_rotary", "rotary", keep_sizes(query), query)
