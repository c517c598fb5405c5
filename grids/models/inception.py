"""Inception v3, with its auxiliary classifier.

Szegedy et al., "Rethinking the Inception Architecture for Computer Vision", CVPR 2016, in the form
and with the block names of torchvision: every convolution without bias and followed by a batch
normalisation, kernels of 1x7 and 7x1 (rows, columns) in the middle, of 1x3 and 3x1 at the end. The
auxiliary head wants extents of at least 17 in the middle: images of 299, as in the paper.
"""

from typing import Literal

from grids.entries.entry import Record
from grids.models.steps import AdaptivePool, Concat, Conv, Fc, Pool, Side, Step, Steps, make_plain

ONE = (1, 1)
ROW3, COLUMN3 = (1, 3), (3, 1)
ROW7, COLUMN7 = (1, 7), (7, 1)


class Inception(Record):
    """{name: inception} is Inception v3; `aux: false` leaves the auxiliary head out."""

    name: Literal["inception"]
    aux: bool = True

    def steps(self) -> Steps:
        return (
            *_stem(),
            _mixed_35("Mixed_5b", pool=32),
            _mixed_35("Mixed_5c", pool=64),
            _mixed_35("Mixed_5d", pool=64),
            _reduction_17("Mixed_6a"),
            _mixed_17("Mixed_6b", width=128),
            _mixed_17("Mixed_6c", width=160),
            _mixed_17("Mixed_6d", width=160),
            _mixed_17("Mixed_6e", width=192),
            *([_auxiliary_head()] if self.aux else []),
            _reduction_8("Mixed_7a"),
            _mixed_8("Mixed_7b"),
            _mixed_8("Mixed_7c"),
            Step(adaptive_avgpool=AdaptivePool(name="avgpool", extent=(1,))),
            make_plain("dropout", "dropout"),
            Step(fc=Fc(name="fc", outputs="targets")),
        )


def _stem() -> Steps:
    return (
        *_conv(32, (3, 3), stride=2, padding=(0,)),
        *_conv(32, (3, 3), padding=(0,)),
        *_conv(64, (3, 3)),
        _shrink(),
        *_conv(80, ONE),
        *_conv(192, (3, 3), padding=(0,)),
        _shrink(),
    )


def _mixed_35(name: str, pool: int) -> Step:
    return _concat(
        name,
        _conv(64, ONE),
        (*_conv(48, ONE), *_conv(64, (5, 5))),
        (*_conv(64, ONE), *_conv(96, (3, 3)), *_conv(96, (3, 3))),
        (_smooth(), *_conv(pool, ONE)),
    )


def _reduction_17(name: str) -> Step:
    return _concat(
        name,
        _conv(384, (3, 3), stride=2, padding=(0,)),
        (*_conv(64, ONE), *_conv(96, (3, 3)), *_conv(96, (3, 3), stride=2, padding=(0,))),
        (_shrink(),),
    )


def _mixed_17(name: str, width: int) -> Step:
    return _concat(
        name,
        _conv(192, ONE),
        (*_conv(width, ONE), *_conv(width, ROW7), *_conv(192, COLUMN7)),
        (
            *_conv(width, ONE),
            *_conv(width, COLUMN7),
            *_conv(width, ROW7),
            *_conv(width, COLUMN7),
            *_conv(192, ROW7),
        ),
        (_smooth(), *_conv(192, ONE)),
    )


def _reduction_8(name: str) -> Step:
    return _concat(
        name,
        (*_conv(192, ONE), *_conv(320, (3, 3), stride=2, padding=(0,))),
        (
            *_conv(192, ONE),
            *_conv(192, ROW7),
            *_conv(192, COLUMN7),
            *_conv(192, (3, 3), stride=2, padding=(0,)),
        ),
        (_shrink(),),
    )


def _mixed_8(name: str) -> Step:
    return _concat(
        name,
        _conv(320, ONE),
        (*_conv(384, ONE), _fork()),
        (*_conv(448, ONE), *_conv(384, (3, 3)), _fork()),
        (_smooth(), *_conv(192, ONE)),
    )


def _fork() -> Step:
    """A 3x3 convolution as a row beside a column."""
    return _concat("fork", _conv(384, ROW3), _conv(384, COLUMN3))


def _auxiliary_head() -> Step:
    head = (
        Step(avgpool=Pool(kernel=(5,), stride=(3,))),
        *_conv(128, ONE),
        *_conv(768, (5, 5), padding=(0,)),
        Step(adaptive_avgpool=AdaptivePool(extent=(1,))),
        Step(fc=Fc(name="fc", outputs="targets")),
    )
    return Step(side=Side(name="AuxLogits", layers=head))


def _conv(
    filters: int,
    kernel: tuple[int, int],
    *,
    stride: int = 1,
    padding: tuple[int, ...] | Literal["same"] = "same",
) -> Steps:
    conv = Conv(filters=filters, kernel=kernel, stride=(stride,), padding=padding, bias=False)
    return Step(conv=conv), make_plain("batchnorm"), make_plain("relu")


def _shrink() -> Step:
    return Step(maxpool=Pool(kernel=(3,), stride=(2,)))


def _smooth() -> Step:
    return Step(avgpool=Pool(kernel=(3,), stride=(1,), padding=(1,)))


def _concat(name: str, *branches: Steps) -> Step:
    return Step(concat=Concat(name=name, branches=branches))
