"""`ds.paradl` on every Dataset, from `import sweep` on, without the seconds that xarray takes.

Where xarray is there already it is told at once, else as soon as it is imported. What the accessor
needs is imported when a Dataset is first asked for it.
"""

import sys
from contextlib import suppress
from importlib import import_module
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any

XARRAY = "xarray"


def attach() -> None:
    """Give every Dataset its `paradl`, now or when xarray comes."""
    module = sys.modules.get(XARRAY)
    if module is not None:
        register(module)
    elif not any(isinstance(each, _Watch) for each in sys.meta_path):
        # First: what finds xarray first is what is asked.
        sys.meta_path.insert(0, _Watch())


def register(xarray: ModuleType) -> None:
    """Register the accessor, unless it is: xarray warns of a second time."""
    if not hasattr(xarray.Dataset, "paradl"):
        xarray.register_dataset_accessor("paradl")(_open)


def _open(dataset: Any) -> Any:
    """The accessor of a Dataset: see `sweep.accessor.Accessor`."""
    return import_module("sweep.accessor").Accessor(dataset)


class _Watch:
    """A finder that finds nothing by itself, and hears of xarray's import."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """Where xarray is, with a loader that registers; None for everything else."""
        if name != XARRAY:
            return None
        with suppress(ValueError):  # another thread was first
            sys.meta_path.remove(self)
        spec = find_spec(XARRAY)
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def execute_and_register(module: ModuleType) -> None:
            execute(module)
            register(module)

        # Of this one loader, which belongs to this one module.
        vars(spec.loader)["exec_module"] = execute_and_register
        return spec
