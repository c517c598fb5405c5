"""The table of precisions against docs/machine.md."""

from typing import get_args

import pytest
from pydantic import TypeAdapter

from paradl.grids.entries.precision import OPTIMIZER_BYTES, PRECISIONS, AnyPrecision, PrecisionName
from paradl.grids.spec import Choices
from paradl.kernels.options import Optimizer

# Precision, bytes per item, per gradient in messages, of states with none, sgd and adam.
STATED: list[tuple[PrecisionName, int, int, tuple[int, int, int]]] = [
    ("fp32", 4, 4, (8, 12, 16)),
    ("tf32", 4, 4, (8, 12, 16)),
    ("amp", 2, 2, (8, 12, 16)),
    ("bf16", 2, 2, (8, 12, 16)),
    ("fp8", 2, 2, (8, 12, 16)),  # products alone are narrow: docs/transformers.md
    ("mxfp8", 2, 2, (8, 12, 16)),
    ("nvfp4", 2, 2, (8, 12, 16)),
]
OPTIMIZERS: tuple[Optimizer, ...] = ("none", "sgd", "adam")


@pytest.mark.parametrize(("name", "item", "gradient", "states"), STATED)
def test_bytes(name: PrecisionName, item: int, gradient: int, states: tuple[int, int, int]) -> None:
    precision = PRECISIONS[name]
    assert (precision.item, precision.gradient) == (item, gradient)
    assert tuple(map(precision.count_state_bytes, OPTIMIZERS)) == states


def test_every_precision_is_in_the_table_with_its_source() -> None:
    assert tuple(PRECISIONS) == get_args(PrecisionName) == tuple(row[0] for row in STATED)
    assert all(
        precision.source and precision.meaning and precision.peak
        for precision in PRECISIONS.values()
    )


def test_every_optimizer_of_a_spec_has_its_bytes() -> None:
    assert set(OPTIMIZER_BYTES) == set(get_args(Choices.model_fields["optimizer"].annotation))


READER: TypeAdapter[str] = TypeAdapter(AnyPrecision)


@pytest.mark.parametrize("name", ["fp23", "FP32", 16, None, ["amp"], "x" * 10**6])
def test_what_is_no_precision(name: object) -> None:
    with pytest.raises(
        ValueError, match=r"unknown precision .*known: amp, bf16, fp32, .*tf32"
    ) as error:
        READER.validate_python(name)
    assert len(str(error.value)) < 900


def test_the_nearest_precision_is_suggested() -> None:
    with pytest.raises(ValueError, match="unknown precision 'bf61'; did you mean 'bf16'"):
        READER.validate_python("bf61")
