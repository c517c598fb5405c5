"""References: names, paths, and files of other frameworks."""

import pytest

from grids.entries.names import check_name
from grids.reading.errors import InputError


@pytest.mark.parametrize(
    ("kind", "reference"),
    [
        ("model", "resnet50"),
        ("model", "./mine.yaml"),
        ("model", "VGG.net_sc"),
        ("system", "abci:precision=amp"),
        ("system", "./mine.yaml:precision=amp"),
    ],
)
def test_names_and_paths_pass(kind, reference):
    check_name(kind, reference)


@pytest.mark.parametrize(
    ("kind", "reference", "message"),
    [
        ("model", "resnet5", "unknown model 'resnet5'; did you mean 'resnet50'?"),
        ("model", "./net.onnx", ".onnx files are not read"),
        ("dataset", "lm1b", "did you mean 'one-billion-words'?"),
        ("system", "abcd:precision=amp", "unknown system 'abcd'; did you mean 'abci'?"),
    ],
)
def test_slips_are_refused(kind, reference, message):
    with pytest.raises(InputError) as error:
        check_name(kind, reference)
    assert message in str(error.value)
