"""Messages of the border: where, what, what to do."""

import pickle

import pytest

from grids.errors import InputError, nearest


@pytest.mark.parametrize(
    ("where", "advice", "text"),
    [
        ("", "", "no such file"),
        ("spec.yaml:3", "", "spec.yaml:3: no such file"),
        ("", "check the path", "no such file; check the path"),
        ("spec.yaml:3", "check the path", "spec.yaml:3: no such file; check the path"),
    ],
)
def test_message(where: str, advice: str, text: str) -> None:
    assert str(InputError("no such file", where=where, advice=advice)) == text


def test_an_error_travels_between_processes() -> None:
    error = InputError("no such file", where="a.yaml", advice="check")
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("resnet5", "did you mean 'resnet50'? known: alexnet, resnet50"),
        ("AlexNet", "did you mean 'alexnet'? known: alexnet, resnet50"),
        ("zzz", "known: alexnet, resnet50"),
    ],
)
def test_nearest(name: str, advice: str) -> None:
    assert nearest(name, ["resnet50", "alexnet"]) == advice
