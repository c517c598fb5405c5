"""References: names, paths, and files of other frameworks."""

import pytest

from paradl.grids.entries.names import check_name, split_labels
from paradl.grids.reading.errors import InputError


@pytest.mark.parametrize(
    ("kind", "reference"),
    [
        ("model", "resnet50"),
        ("model", "./mine.yaml"),
        ("system", "abci:precision=amp"),
        ("system", "./mine.yaml:precision=amp"),
        ("system", "abci:memory=32.5 GB,software=ddp"),
    ],
)
def test_names_and_paths_pass(kind, reference, tmp_path):
    (tmp_path / "mine.yaml").touch()
    check_name(kind, reference, tmp_path)


@pytest.mark.parametrize(
    ("kind", "reference", "message"),
    [
        ("model", "resnet5", "unknown model 'resnet5'; did you mean 'resnet50'?"),
        ("model", "./net.onnx", ".onnx files are not read"),
        ("model", "VGG.net_sc", ".net_sc files are not read"),
        ("dataset", "lm1b", "did you mean 'one-billion-words'?"),
        ("system", "abcd:precision=amp", "unknown system 'abcd'; did you mean 'abci'?"),
    ],
)
def test_slips_are_refused(kind, reference, message):
    with pytest.raises(InputError) as error:
        check_name(kind, reference)
    assert message in str(error.value)


def test_settings_stay_with_their_name():
    text = "abci,dgx-h100:precision=bf16, memory=32 GB, ./mine.yaml:memory=1.5 TB,dgx2-v100"
    labels = ["dgx-h100:precision=bf16,memory=32 GB", "./mine.yaml:memory=1.5 TB"]
    assert split_labels(text) == ["abci", *labels, "dgx2-v100"]
