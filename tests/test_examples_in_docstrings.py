"""Examples of public functions: each runs as it stands, in an empty folder."""

import inspect
from doctest import DocTestFinder, DocTestRunner
from importlib.util import find_spec

import pytest

import paradl

FUNCTIONS = [name for name in paradl.__all__ if inspect.isfunction(getattr(paradl, name))]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_docstring_ends_with_an_example_that_runs(name, tmp_path, monkeypatch):
    function = getattr(paradl, name)
    # No names but Python's own: the example imports what it needs.
    (found,) = DocTestFinder(recurse=False).find(function, name, module=False, globs={})
    assert found.examples, f"{name} has no example"
    answer = found.examples[-1].want.strip()
    assert answer
    assert str(inspect.getdoc(function)).endswith(answer)
    assert any(f"paradl.{name}(" in example.source for example in found.examples)
    assert not any(example.options for example in found.examples)  # none is skipped
    if name == "trace_torch" and find_spec("torch") is None:
        pytest.skip("the example needs PyTorch")
    monkeypatch.chdir(tmp_path)
    failures: list[str] = []
    DocTestRunner(verbose=False).run(found, out=failures.append)
    assert not failures, "".join(failures)
