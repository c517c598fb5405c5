"""paradl: how a network trains at scale under every way of parallelising it, and what stops it.

    import paradl
    ds = paradl.run("spec.yaml", "cube.zarr")
    paradl.limits(ds)
    ds.paradl.efficiency

`__init__.pyi` lists what there is. Each name is imported on first use, so that the command line
answers at once: JAX, xarray and Zarr take 0.9 s to import, `paradl --help` 0.1 s in all.
"""

import sys
from importlib import import_module
from pathlib import Path

import lazy_loader

# In a checkout, kernels, grids and sweep are beside `src`, and the links here are for type
# checkers alone: Python needs none, as on Windows, and names files by their true place.
_top = Path(__file__).parents[2]
if Path(__file__).parent == _top / "src" / "paradl" and (_top / "pyproject.toml").is_file():
    __path__.insert(0, str(_top))

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

if "xarray" in sys.modules:  # else xarray does so itself, once it opens a store
    import_module("paradl.sweep.xarray_plugin")
