"""Where an answer has what a cube stores."""

from dataclasses import fields

from kernels.configuration.answers import Answer
from kernels.names.stored import STORED
from kernels.names.terms import TERMS


def test_every_output_is_another_part_of_an_answer() -> None:
    parts = {each.name for each in fields(Answer)} | {f"terms.{name}" for name in TERMS}
    parts |= {"train_time"}
    assert len(set(STORED.values())) == len(STORED)
    assert set(STORED.values()) <= parts
