"""Sizes of transformers, from the families of the catalogue."""

from pathlib import Path

import pytest

from grids.library import find
from grids.models.transformers import read_transformer
from grids.reading.errors import InputError
from kernels.layouts.parameters import count_parameters

NAMES = (
    *("gpt3_175b", "llama2_7b", "llama2_70b", "llama3_405b", "llama3_8b"),
    *("mixtral_8x7b", "qwen3_30b_a3b", "deepseek_v3"),
)


@pytest.mark.parametrize("name", NAMES)
def test_as_many_parameters_as_its_layers(name):
    model = find("model", name, Path())
    table = model.table(find("dataset", "pile", Path()))
    assert count_parameters(read_transformer(model)) == table.parameters


@pytest.mark.parametrize("name", ["resnet50", "t5_11b", "vit_b_16"])
def test_another_family(name):
    with pytest.raises(InputError, match="none of the families gpt, llama, moe"):
        read_transformer(find("model", name, Path()))
