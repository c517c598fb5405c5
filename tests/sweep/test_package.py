"""The package as Python and its tools see it."""

import inspect
import pydoc
import subprocess
import sys
import tomllib
from importlib.metadata import version
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

import sweep

ROOT = Path(__file__).parents[2]
ROOMS = ("sweep", "grids", "kernels")
FUNCTIONS = [name for name in sweep.__all__ if inspect.isfunction(getattr(sweep, name))]


@pytest.mark.parametrize("name", sweep.__all__)
def test_everything_promised_is_there(name):
    assert callable(getattr(sweep, name))
    assert name in dir(sweep)


def test_nothing_else_is():
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = sweep.nothing


@pytest.mark.parametrize("name", FUNCTIONS)
def test_each_argument_has_a_name_and_a_type(name):
    signature = inspect.signature(getattr(sweep, name))
    assert signature.return_annotation is not signature.empty
    for parameter in signature.parameters.values():
        assert parameter.annotation is not parameter.empty
        assert parameter.kind != parameter.VAR_KEYWORD
        # A function's own arguments are as many as it has.
        assert parameter.kind != parameter.VAR_POSITIONAL or name == "trace_model"


def test_help_shows_the_functions():
    text = pydoc.plain(pydoc.render_doc(sweep))
    assert len(FUNCTIONS) == 32
    for name in FUNCTIONS:
        assert f"\n    {name}(" in text


def test_it_has_the_name_of_the_project_too():
    """An installation puts the file where `import paradl` finds it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    forced = project["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    (path,) = (source for source, target in forced.items() if target == "paradl.py")
    spec = spec_from_file_location("paradl", ROOT / path)
    assert spec is not None
    assert spec.loader is not None
    paradl = module_from_spec(spec)
    spec.loader.exec_module(paradl)
    assert paradl.__all__ == sweep.__all__
    assert paradl.InputError is sweep.InputError
    assert set(sweep.__all__) <= set(dir(paradl))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = paradl.nothing
    command = [sys.executable, ROOT / path, "--version"]
    ended = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=True)
    assert ended.stdout == f"paradl {version('paradl')}\n"


def test_importing_it_is_quick():
    code = "import sweep, sys; dir(sweep); print(*{name.partition('.')[0] for name in sys.modules})"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"jax", "numpy", "xarray", "zarr", "pydantic"} & set(run.stdout.split())


def test_python_m_sweep_is_the_command_line():
    run = subprocess.run(
        [sys.executable, "-m", "sweep", "--version"], capture_output=True, text=True, check=True
    )
    assert run.stdout == f"paradl {version('paradl')}\n"


@pytest.mark.parametrize("room", ROOMS)
def test_types_are_for_users_too(room):
    assert (ROOT / room / "py.typed").read_bytes() == b""


def test_a_question_in_python(mixed_url):
    cube = sweep.open_dataset(mixed_url)
    assert sweep.limits(cube)["strategy"].nunique() == 6
    assert cube.paradl.efficiency.max() <= 1.0001
