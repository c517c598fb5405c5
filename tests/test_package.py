"""The package as Python and its tools see it."""

import inspect
import pydoc
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

import paradl

ROOT = Path(__file__).parents[1]
FUNCTIONS = [name for name in paradl.__all__ if inspect.isfunction(getattr(paradl, name))]


@pytest.mark.parametrize("name", paradl.__all__)
def test_everything_promised_is_there(name):
    assert callable(getattr(paradl, name))
    assert name in dir(paradl)


def test_nothing_else_is():
    name = "nothing"
    with pytest.raises(AttributeError, match="nothing"):
        getattr(paradl, name)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_each_argument_has_a_name_and_a_type(name):
    signature = inspect.signature(getattr(paradl, name))
    assert signature.return_annotation is not signature.empty
    for parameter in signature.parameters.values():
        assert parameter.annotation is not parameter.empty
        assert parameter.kind != parameter.VAR_POSITIONAL


def test_help_shows_the_functions():
    text = pydoc.plain(pydoc.render_doc(paradl))
    for name in FUNCTIONS:
        assert f"\n    {name}(" in text


def test_everything_is_there_without_extras():
    """`help(paradl)` and `from paradl import *` import every name; a call says what is missing."""
    code = """
import sys
sys.modules.update(dict.fromkeys(("matplotlib", "vl_convert", "pyarrow")))
from importlib import util
find = util.find_spec
util.find_spec = lambda name, *rest: find(name, *rest) if sys.modules.get(name, 1) else None
from paradl import *
try:
    write_report("nothing.zarr", "page.html")
except RunError as error:
    print(error)
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install '.[report]'" in run.stdout


def test_importing_it_imports_little_and_a_reload_warns_of_nothing():
    """Xarray, for `ds.paradl`, with what xarray itself imports; a function imports the rest."""
    code = (
        "import importlib, paradl, sys; dir(paradl); "
        "print(*{name.partition('.')[0] for name in sys.modules}); importlib.reload(paradl).best"
    )
    strict = [sys.executable, "-W", "error", "-c", code]
    run = subprocess.run(strict, capture_output=True, text=True, check=True)
    assert not {"jax", "zarr", "dask", "pydantic", "scipy"} & set(run.stdout.split())


def test_python_m_paradl_is_the_command_line():
    run = subprocess.run(
        [sys.executable, "-m", "paradl", "--version"], capture_output=True, text=True, check=True
    )
    assert run.stdout == f"paradl {version('paradl')}\n"
