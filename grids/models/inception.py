"""Inception v3, with its auxiliary classifier.

Szegedy et al., "Rethinking the Inception Architecture for Computer Vision", CVPR 2016, in the form
and with the block names of torchvision: every convolution without bias and followed by a batch
normalisation, kernels of 1x7 and 7x1 (rows, columns) in the middle, of 1x3 and 3x1 at the end. The
auxiliary head wants extents of at least 17 in the middle: images of 299, as in the paper.
"""

from typing import Literal

from grids.entries.entry import Record
from grids.models.steps import Concat, Fc, Side, Step, Steps, make_plain
from grids.models.windows import AdaptivePool, Conv, Pool

# Rows by columns. A 7x7 kernel as a row and a column takes 14 weights in place of 49.
ONE = (1, 1)
ROW3, COLUMN3 = (1, 3), (3, 1)
ROW7, COLUMN7 = (1, 7), (7, 1)


class Inception(Record):
    """{name: inception} is Inception v3; `aux: false` leaves the auxiliary head out."""

    name: Literal["inception"]
    aux: bool = True

    def make_steps(self) -> Steps:
        # Extents, channels: those of table 1 of the paper.
        return (
            *_make_stem(),  # 35, 192
            _make_mixed_35("Mixed_5b", pool=32),  # 35, 256: its pooled branch is the narrower one
            _make_mixed_35("Mixed_5c", pool=64),
            _make_mixed_35("Mixed_5d", pool=64),  # 35, 288
            _make_reduction_17("Mixed_6a"),  # 17, 768
            _make_mixed_17("Mixed_6b", width=128),  # the inner 7-kernels widen, the block does not
            _make_mixed_17("Mixed_6c", width=160),
            _make_mixed_17("Mixed_6d", width=160),
            _make_mixed_17("Mixed_6e", width=192),
            *([_make_auxiliary_head()] if self.aux else []),  # 3,326,696 weights and biases
            _make_reduction_8("Mixed_7a"),  # 8, 1280
            _make_mixed_8("Mixed_7b"),  # 8, 2048
            _make_mixed_8("Mixed_7c"),
            Step(adaptive_avgpool=AdaptivePool(name="avgpool", extent=(1,))),
            make_plain("dropout", "dropout"),
            Step(fc=Fc(name="fc", outputs="targets")),
        )


def _make_stem() -> Steps:
    # From an extent of 299; only one of the 3x3 is padded.
    return (
        *_convolve(32, (3, 3), stride=2, padding=(0,)),  # 149
        *_convolve(32, (3, 3), padding=(0,)),  # 147
        *_convolve(64, (3, 3)),
        _shrink(),  # 73
        *_convolve(80, ONE),
        *_convolve(192, (3, 3), padding=(0,)),  # 71
        _shrink(),  # 35
    )


def _make_mixed_35(name: str, pool: int) -> Step:
    return _concat(
        name,
        _convolve(64, ONE),
        (*_convolve(48, ONE), *_convolve(64, (5, 5))),
        (*_convolve(64, ONE), *_convolve(96, (3, 3)), *_convolve(96, (3, 3))),
        (_smooth(), *_convolve(pool, ONE)),
    )


def _make_reduction_17(name: str) -> Step:
    return _concat(
        name,
        _convolve(384, (3, 3), stride=2, padding=(0,)),
        (
            *_convolve(64, ONE),
            *_convolve(96, (3, 3)),
            *_convolve(96, (3, 3), stride=2, padding=(0,)),
        ),
        (_shrink(),),
    )


def _make_mixed_17(name: str, width: int) -> Step:
    return _concat(
        name,
        _convolve(192, ONE),
        (*_convolve(width, ONE), *_convolve(width, ROW7), *_convolve(192, COLUMN7)),
        (
            *_convolve(width, ONE),
            *_convolve(width, COLUMN7),
            *_convolve(width, ROW7),
            *_convolve(width, COLUMN7),
            *_convolve(192, ROW7),
        ),
        (_smooth(), *_convolve(192, ONE)),
    )


def _make_reduction_8(name: str) -> Step:
    return _concat(
        name,
        (*_convolve(192, ONE), *_convolve(320, (3, 3), stride=2, padding=(0,))),
        (
            *_convolve(192, ONE),
            *_convolve(192, ROW7),
            *_convolve(192, COLUMN7),
            *_convolve(192, (3, 3), stride=2, padding=(0,)),
        ),
        (_shrink(),),
    )


def _make_mixed_8(name: str) -> Step:
    return _concat(
        name,
        _convolve(320, ONE),
        (*_convolve(384, ONE), _fork()),
        (*_convolve(448, ONE), *_convolve(384, (3, 3)), _fork()),
        (_smooth(), *_convolve(192, ONE)),
    )


def _fork() -> Step:
    """A 3x3 convolution as a row beside a column."""
    return _concat("fork", _convolve(384, ROW3), _convolve(384, COLUMN3))


def _make_auxiliary_head() -> Step:
    head = (
        Step(avgpool=Pool(kernel=(5,), stride=(3,))),  # from 17 to 5
        *_convolve(128, ONE),
        *_convolve(768, (5, 5), padding=(0,)),  # to 1: a smaller image leaves it nothing
        Step(adaptive_avgpool=AdaptivePool(extent=(1,))),
        Step(fc=Fc(name="fc", outputs="targets")),
    )
    return Step(side=Side(name="AuxLogits", layers=head))


def _convolve(
    filters: int,
    kernel: tuple[int, int],
    *,
    stride: int = 1,
    padding: tuple[int, ...] | Literal["same"] = "same",
) -> Steps:
    conv = Conv(filters=filters, kernel=kernel, stride=(stride,), padding=padding, bias=False)
    return Step(conv=conv), make_plain("batchnorm"), make_plain("relu")


def _shrink() -> Step:
    return Step(maxpool=Pool(kernel=(3,), stride=(2,)))  # unpadded: 35 to 17, 17 to 8


def _smooth() -> Step:
    # Padded, so that a pooled branch keeps the extents that the others have.
    return Step(avgpool=Pool(kernel=(3,), stride=(1,), padding=(1,)))


def _concat(name: str, *branches: Steps) -> Step:
    return Step(concat=Concat(name=name, branches=branches))
