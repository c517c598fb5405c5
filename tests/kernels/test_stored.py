"""Where an answer has what a cube stores."""

from dataclasses import fields

from paradl.kernels.configuration.answers import Answer
from paradl.kernels.names.layout_terms import EVERY_TERM
from paradl.kernels.names.stored import STORED


def test_every_output_is_another_part_of_an_answer() -> None:
    parts = {field.name for field in fields(Answer)} | {f"terms.{name}" for name in EVERY_TERM}
    parts |= {"train_time"}
    assert len(set(STORED.values())) == len(STORED)
    assert set(STORED.values()) <= parts
