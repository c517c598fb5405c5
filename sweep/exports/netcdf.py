"""Writing netCDF: the cube with its dimensions, one chunk at a time."""

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import xarray as xr

# Every netCDF library reads zlib; its lowest level is the fastest.
COMPRESSION = {"zlib": True, "complevel": 1, "shuffle": True}


class _QuietFile(io.FileIO):
    """A file that records its first failed write and only pretends to write from then on.

    HDF5 cannot close a file after a failed write: with a full disk the process died of a
    segmentation fault (h5py 3.16).
    """

    failure: OSError | None = None

    def write(self, data: Any) -> int:
        """Write bytes; report all of them as written in any case."""
        view = memoryview(data).cast("B")
        done = 0
        try:
            while done < len(view) and self.failure is None:
                done += super().write(view[done:]) or 0
        except OSError as error:
            self.failure = error
        # To where HDF5 believes the file to be.
        self.seek(len(view) - done, io.SEEK_CUR)
        return len(view)

    def truncate(self, size: int | None = None) -> int:
        """Set the file's size, or pretend to after a failure: a full disk cannot grow it either."""
        try:
            return super().truncate(size) if self.failure is None else size or 0
        except OSError as error:
            self.failure = error
            return size or 0


def _compute_in_turn(graph: Any, keys: Any, **options: Any) -> Any:
    """Compute chunks in their order in the file, each read and written before the next.

    Dask would order them by their names, which are random: each time another file. And only one
    thread may write; others would read ahead of it and fill the memory.
    """
    from dask.local import get_sync
    from dask.optimization import cull

    tasks = dict(graph.__dask_graph__())

    def compute(keys: Any) -> Any:
        if isinstance(keys, list):  # one per array and dimension
            return [compute(key) for key in keys]
        return get_sync(cull(tasks, [keys])[0], keys)  # type: ignore[no-untyped-call]

    return compute(keys)


def write_netcdf(path: Path, cube: "xr.Dataset") -> None:
    """Write a Dataset, reading lazy arrays chunk by chunk."""
    import dask

    numbers = [name for name, array in cube.data_vars.items() if array.dtype.kind in "fiu"]
    with _QuietFile(path, "w+") as file, dask.config.set(scheduler=_compute_in_turn):
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
