"""paradl: how a network trains at scale under every way of parallelising it, and what stops it.

    import paradl
    ds = paradl.run("spec.yaml", "cube.zarr")
    paradl.limits(ds)
    ds.paradl.efficiency

`__init__.pyi` lists what there is; each name is imported on first use.
"""

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import lazy_loader

_here = Path(__file__).parent
if not _here.is_dir():  # the catalogue is read as files, and JAX has compiled modules
    raise ImportError(f"{_here}: paradl cannot run from a zip; pip install it")

# In a checkout, kernels, grids and sweep are beside `src`, and the links here are for type
# checkers alone: Python needs none, as on Windows, and names files by their true place.
_top = _here.parents[1]
if _here == _top / "src" / "paradl" and (_top / "pyproject.toml").is_file():
    __path__.insert(0, str(_top))

_import_name, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> Any:
    """Return a public name, imported now. AttributeError: an unknown one, with the nearest."""
    try:
        return _import_name(name)
    except AttributeError:
        if name in __all__:  # its own import failed
            raise
        meant = import_module("paradl.grids.reading.errors").find_meant(name, __all__)
        advice = f"; did you mean {meant!r}?" if meant else ""
        raise AttributeError(f"paradl has no {name!r}{advice}") from None


def _open_accessor(dataset: Any) -> Any:
    """Return `ds.paradl`; its own imports wait until then."""
    return import_module("paradl.sweep.accessor").Accessor(dataset)


# Every Dataset has `ds.paradl` from here on. For that xarray is imported, which takes 0.4 s and
# 70 MB (2026-11, 2 cores): the command line needs none, and its workers have its name.
_script = Path(sys.argv[0] if sys.argv else "")
_is_module = _script == _here / "__main__.py" or sys.orig_argv[1:3] == ["-m", "paradl"]
if _script.stem != "paradl" and not _is_module:
    _xarray = import_module("xarray")
    if not hasattr(_xarray.Dataset, "paradl"):  # as it has after a reload, when xarray would warn
        _xarray.register_dataset_accessor("paradl")(_open_accessor)
