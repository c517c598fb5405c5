"""Writing netCDF: the cube as it is, with its dimensions, a chunk at a time."""

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from sweep.errors import RunError

if TYPE_CHECKING:
    import xarray as xr

# zlib, which every netCDF library reads; its lowest level: of level 4 files are hardly smaller.
COMPRESSION = {"zlib": True, "complevel": 1, "shuffle": True}


def write_netcdf(path: Path, cube: "xr.Dataset") -> None:
    """Write a Dataset; what is lazy is read chunk after chunk."""
    import dask

    numbers = [name for name, each in cube.data_vars.items() if each.dtype.kind in "fiu"]
    # In turn: threads would read ahead of the one that may write.
    with dask.config.set(scheduler="synchronous"):
        cube.to_netcdf(
            path,
            engine="h5netcdf",
            format="NETCDF4",
            encoding={name: {**COMPRESSION} for name in numbers},
        )


def expect_engine() -> None:
    """RunError: the library that writes netCDF is not installed."""
    if find_spec("h5netcdf") is None or find_spec("h5py") is None:
        raise RunError(
            "netCDF needs h5netcdf and h5py; install paradl with its extra: pip install '.[export]'"
        )
