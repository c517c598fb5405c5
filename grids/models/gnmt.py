"""GNMT: an encoder and a decoder of LSTMs, between them attention.

Wu et al., "Google's neural machine translation system", arXiv:1609.08144, as NVIDIA's version 2 has
it (DeepLearningExamples, PyTorch/Translation/GNMT, seq2seq/models): the first layer of the encoder
goes both ways; from the third layer on each has a shortcut; the decoder's first layer asks, and
what it is answered comes into every later one. A sample is a pair of sentences, [2, length].
"""

from typing import Annotated, Literal

from pydantic import Field

from grids.entries.entry import Count, Record
from grids.models.attention import Attention
from grids.models.recurrent import Lstm
from grids.models.sequences import Linear
from grids.models.steps import Concat, Read, Residual, Step, Steps, make_plain
from grids.models.vocabularies import Embedding

SOURCE, TARGET = 1, 2  # rows of a sample
LINKED = 2  # layers without a shortcut, in front of those with one


class Gnmt(Record):
    """Version 2 is {name: gnmt, layers: 4, hidden: 1024, shared_embedding: true}."""

    name: Literal["gnmt"]
    layers: Annotated[Count, Field(ge=LINKED, le=400)]  # of the encoder, and as many of the decoder
    hidden: Count
    shared_embedding: bool  # whether both sentences look words up in one table

    def make_steps(self) -> Steps:
        return (
            self._embed("encoder.embedding", SOURCE),
            *self._make_encoder(),
            Step(read=Read(step="sample")),
            self._embed(
                "decoder.embedding", TARGET, "encoder.embedding" if self.shared_embedding else None
            ),
            *self._make_decoder(),
            Step(linear=Linear(name="classifier", features="targets")),
            make_plain("softmax", "softmax"),
        )

    def _embed(self, name: str, row: int, shares: str | None = None) -> Step:
        return Step(
            embedding=Embedding(
                name=name, vocabulary="targets", features=self.hidden, row=row, shares=shares
            )
        )

    def _make_encoder(self) -> Steps:
        """The last one's name is `encoder`: what the decoder asks."""
        rest = range(1, self.layers)
        return (
            make_plain("dropout", "encoder.dropout0"),
            self._lstm("encoder.lstm0", bidirectional=True),
            *(step for number in rest for step in self._make_encoder_layer(number)),
        )

    def _make_encoder_layer(self, number: int) -> Steps:
        body = (make_plain("dropout", "dropout"), self._lstm("lstm"))
        name = f"encoder.layer{number}"
        if number >= LINKED:
            return (Step(residual=Residual(name=name, body=body)),)
        return (make_plain("dropout", f"{name}.dropout"), self._lstm(f"{name}.lstm"))

    def _make_decoder(self) -> Steps:
        last = f"encoder.layer{self.layers - 1}"
        asked = last if self.layers > LINKED else f"{last}.lstm"
        attention = Attention(name="attention", score="additive", keys=asked, normalise=True)
        return (
            make_plain("dropout", "decoder.dropout0"),
            self._lstm("decoder.lstm0"),
            # What was answered stands aside, until each later layer reads it.
            Step(attention=attention),
            Step(read=Read(step="decoder.lstm0")),
            *(
                step
                for number in range(1, self.layers)
                for step in self._make_decoder_layer(number)
            ),
        )

    def _make_decoder_layer(self, number: int) -> Steps:
        answer = (Step(read=Read(step="attention")),)
        body = (
            Step(concat=Concat(name="input", branches=((), answer))),
            make_plain("dropout", "dropout"),
            self._lstm("lstm"),
        )
        if number < LINKED:
            # Without a shortcut: a concatenation of one branch would be a copy.
            return (
                Step(concat=Concat(name="decoder.layer1.input", branches=((), answer))),
                make_plain("dropout", "decoder.layer1.dropout"),
                self._lstm("decoder.layer1.lstm"),
            )
        return (Step(residual=Residual(name=f"decoder.layer{number}", body=body)),)

    def _lstm(self, name: str, *, bidirectional: bool = False) -> Step:
        return Step(lstm=Lstm(name=name, hidden=self.hidden, bidirectional=bidirectional))
