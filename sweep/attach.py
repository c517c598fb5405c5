"""Give every Dataset a `ds.paradl` on `import sweep`, without importing xarray, which is slow.

The accessor is registered at once if xarray is loaded, else as soon as it is imported. Its own
imports wait until a Dataset first uses it.
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
    """Register `paradl` for every Dataset, now or when xarray is imported."""
    module = sys.modules.get(XARRAY)
    if module is not None:
        register(module)
    elif not any(isinstance(finder, _Watch) for finder in sys.meta_path):
        # At the front: Python takes the first finder that knows xarray.
        sys.meta_path.insert(0, _Watch())


def register(xarray: ModuleType) -> None:
    """Register the accessor once: xarray would warn of a second time."""
    if not hasattr(xarray.Dataset, "paradl"):
        xarray.register_dataset_accessor("paradl")(_open)


def _open(dataset: Any) -> Any:
    """Make the accessor of a Dataset."""
    return import_module("sweep.accessor").Accessor(dataset)


class _Watch:
    """Import finder that waits for xarray, to register the accessor after it is loaded."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """Spec of xarray with a loader that also registers; None for other modules."""
        if name != XARRAY:
            return None
        with suppress(ValueError):  # another thread has removed it
            sys.meta_path.remove(self)
        spec = find_spec(XARRAY)
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def execute_and_register(module: ModuleType) -> None:
            execute(module)
            register(module)

        # This loader object belongs to xarray's spec alone.
        vars(spec.loader)["exec_module"] = execute_and_register
        return spec
