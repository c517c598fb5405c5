"""Writing netCDF: the cube as it is, with its dimensions, a chunk at a time."""

import io
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sweep.errors import RunError

if TYPE_CHECKING:
    import xarray as xr

# zlib, which every netCDF library reads; at its lowest level.
COMPRESSION = {"zlib": True, "complevel": 1, "shuffle": True}


class _Forgiving(io.FileIO):
    """A file that keeps the first failure to itself, and from then on writes nothing.

    HDF5 cannot close a file that it fails to write: with a full disk the process ended in a
    segmentation fault (h5py 3.16).
    """

    failure: OSError | None = None

    def write(self, data: Any) -> int:
        """How many bytes were given; all of them are taken."""
        view = memoryview(data).cast("B")
        if self.failure is None:
            try:
                return self._write_all(view)
            except OSError as error:
                self.failure = error
        self.seek(len(view), io.SEEK_CUR)
        return len(view)

    def _write_all(self, view: memoryview) -> int:
        """Write all, however many pieces the system takes it in."""
        done = 0
        while done < len(view):
            done += super().write(view[done:]) or 0
        return done


def write_netcdf(path: Path, cube: "xr.Dataset") -> None:
    """Write a Dataset; what is lazy is read chunk after chunk."""
    import dask

    numbers = [name for name, array in cube.data_vars.items() if array.dtype.kind in "fiu"]
    # In turn: threads would read ahead of the one that may write.
    with _Forgiving(path, "w+") as file, dask.config.set(scheduler="synchronous"):
        try:
            cube.to_netcdf(
                file,
                engine="h5netcdf",
                format="NETCDF4",
                encoding={name: {**COMPRESSION} for name in numbers},
            )
        finally:
            if file.failure is not None:
                raise file.failure


def expect_engine() -> None:
    """RunError: the library that writes netCDF is not installed."""
    if find_spec("h5netcdf") is None or find_spec("h5py") is None:
        raise RunError(
            "netCDF needs h5netcdf and h5py; install paradl with its extra: pip install '.[export]'"
        )
