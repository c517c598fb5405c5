"""Tables of words: looked up by number, or used as the output layer.


A pass reads only the rows that it looks up. By default the gradient is as large as the table and
fully written, as in PyTorch; with `sparse: true` it has only the rows in use, as in TensorFlow.
"""

import math
from typing import ClassVar, Literal

from paradl.grids.entries.entry import Count, Name
from paradl.grids.models.steps.settings import (
    BuildingSettings,
    Site,
    count_outputs,
    expect_sequence,
    keep_sizes,
    make_sequence,
)
from paradl.grids.models.tensors import LayerOutput, Passage, Role
from paradl.grids.reading.errors import InputError, shorten

# Of the three times that a pass reads or writes weights, only the gradient's.
GRADIENT = 1 / 3


class EmbeddingSettings(BuildingSettings):
    """A vector for each word's number.

    row: which number of a position to look up, if there are several; 1 is the first. shares: the
    earlier embedding whose table is used. shards: equal parts in which the table is stored, the
    last one padded. sparse: whether the gradient has only the rows that were looked up.
    """

    vocabulary: Count | Literal["targets"]
    features: Count
    row: Count | None = None
    shares: Name | None = None
    shards: Count = 1
    sparse: bool = False

    def build(self, name: str, x: LayerOutput, site: Site) -> LayerOutput:
        length, numbers = expect_sequence(name, x.tensor)
        if not (self.row or 1) <= numbers or (self.row is None and numbers > 1):
            what = f"row: expected 1 to {numbers}, got {self.row or 'none'}"
            raise InputError(what, where=f"layer {name}")
        vocabulary = count_outputs(name, self.vocabulary, site.targets)
        weights = _fill_shards(vocabulary, self.shards) * self.features
        if self.shares is not None:
            _expect_table(name, self.shares, weights, site)
            weights = 0  # counted with the first embedding
        passage = Passage(
            x.tensor,
            make_sequence(length, self.features),
            role=Role("rows", "vocabulary", vocabulary),
            weights=weights,
            reads=0.0 if self.sparse else GRADIENT,
            looked_up=length * self.features if self.sparse else 0,
        )
        return site.add(name, "embedding", passage, x)


class Logits(BuildingSettings):
    """Scores of all words at each position, and their softmax.

    shares: the embedding whose table is the matrix (Press and Wolf 2017).
    """

    bare: ClassVar[str] = "vocabulary"

    vocabulary: Count
    shares: Name | None = None
    bias: bool = False

    def build(self, name: str, x: LayerOutput, site: Site) -> LayerOutput:
        length, features = expect_sequence(name, x.tensor)
        weights = self.vocabulary * features
        if self.shares is not None:
            _expect_table(name, self.shares, weights, site)
        passage = Passage(
            x.tensor,
            make_sequence(length, self.vocabulary),
            bias=self.bias,
            role=Role("columns", "vocabulary", self.vocabulary),
            weights=None if self.shares is None else 0,
            flops=2 * length * weights,
        )
        scores = site.add(name, "linear", passage, x)
        return site.add(f"{name}.softmax", "softmax", keep_sizes(scores), scores)


class SampledSoftmaxSettings(BuildingSettings):
    """Scores of the right class and of randomly drawn ones, and their softmax; for training only.

    Jean et al. 2015 (On using very large target vocabulary). samples: classes drawn once per pass,
    for all positions. sparse: whether the gradient has no other rows.
    """

    classes: Count | Literal["targets"]
    samples: Count
    bias: bool = True
    shards: Count = 1
    sparse: bool = False

    def build(self, name: str, x: LayerOutput, site: Site) -> LayerOutput:
        length, features = expect_sequence(name, x.tensor)
        classes = count_outputs(name, self.classes, site.targets)
        if self.samples > classes:
            what = f"samples: expected at most the {classes} classes, got {self.samples}"
            raise InputError(what, where=f"layer {name}")
        rows = _fill_shards(classes, self.shards)
        scored = self.samples + 1  # plus the right one
        passage = Passage(
            x.tensor,
            make_sequence(length, scored),
            weights=rows * features,
            biases=classes if self.bias else 0,
            flops=2 * length * features * scored,
            width=(features, scored),
            besides=length * features,  # the right class differs from position to position
            # Two passes read the drawn rows; the gradient writes these, or the whole table.
            reads=self.samples / rows if self.sparse else GRADIENT * (1 + 2 * self.samples / rows),
            looked_up=length * features if self.sparse else 0,
            drawn=self.samples * features if self.sparse else 0,
        )
        scores = site.add(f"{name}.scores", "sampled_softmax", passage, x)
        return site.add(f"{name}.softmax", "softmax", keep_sizes(scores), scores)


def _fill_shards(rows: int, shards: int) -> int:
    return math.ceil(rows / shards) * shards


def _expect_table(name: str, reference: str, weights: int, site: Site) -> None:
    """Raise InputError if the shared step is no embedding, or its table has another size."""
    kind, shared = site.find_table(site.look_up(name, reference))
    if kind != "embedding" or shared != weights:
        raise InputError(
            f"shares: expected an embedding of {weights} weights, got {shorten(reference)}, "
            f"{'the sample' if kind is None else kind} of {shared}",
            where=f"layer {name}",
            advice="name the first embedding of the table, of the same vocabulary and features",
        )
