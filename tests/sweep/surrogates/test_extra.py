"""What is said where the extra's libraries are not installed."""

import sys

import pytest

from sweep.surrogates.extra import NEEDED


@pytest.mark.parametrize(
    "arguments",
    [("train", "rows", "-o", "s"), ("evaluate", "s", "rows"), ("predict", "s", "rows")],
    ids=lambda arguments: arguments[0],
)
def test_without_the_extra_it_is_named(arguments, monkeypatch, paradl):
    for name in [*sys.modules]:
        if name.startswith("sweep.surrogates."):
            monkeypatch.delitem(sys.modules, name)
    for name in NEEDED:
        monkeypatch.setitem(sys.modules, name, None)
    code, out, err = paradl("surrogate", *arguments)
    assert (code, out) == (1, "")
    assert "pip install '.[surrogate]'" in err
    assert all(name in err for name in NEEDED)
    assert "Traceback" not in err
