"""Summaries of a cube over its PE counts: kept beside it, or made of any slice of it.

As a Dataset with the cube's dimensions but pe, and the variables of `variables.SUMMARY`. A sweep
writes them in the pass that writes the cube, so that a question reads a thousandth of its bytes.
"""

from collections.abc import Mapping
from itertools import product
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from grids.errors import InputError
from grids.grid import LABELS
from kernels import Line, compiled, summarise
from sweep.compilation import keep_programs
from sweep.engine import open_dataset
from sweep.evaluate import summary_arrays
from sweep.questions.slices import select
from sweep.store import PART, SUMMARY
from sweep.variables import EFFICIENCY, Arrays, empty_summary

NEEDED = ("comp_time", "comm_time", "memory", "limit")
Source = xr.Dataset | str | Path
Selection = Mapping[str, object]


def summary(
    source: Source, selection: Selection | None = None, efficiency: float = EFFICIENCY
) -> xr.Dataset:
    """The summary of a slice: as the store at a path keeps it, if it answers that, else computed.

    InputError: an unknown axis or value; a store of summaries alone that would have to be computed.
    """
    chosen = selection or {}
    if isinstance(source, xr.Dataset):
        return computed(select(source, chosen), efficiency)
    part = select(open_dataset(source), chosen)  # by the cube's axes, of which a summary lacks pe
    if "pe" in chosen or efficiency != EFFICIENCY:
        return computed(part, efficiency)
    return select(kept(source), chosen)


def kept(store: str | Path) -> xr.Dataset:
    """The summary that a store keeps."""
    cube: xr.Dataset = xr.open_zarr(str(store))
    parts: xr.Dataset = xr.open_zarr(str(store), group=SUMMARY, consolidated=False)
    coordinates = {dim: cube[dim] for dim in parts.dims if dim in cube.coords}
    return _joined(parts.assign_coords(coordinates).load())


def _joined(parts: xr.Dataset) -> xr.Dataset:
    """One summary of lines of PE counts that lie in several blocks."""
    fastest = [name for name in parts if str(name).startswith("fastest")]
    best = parts["fastest_time"].fillna(np.inf).argmin(PART)
    counted = xr.DataArray(np.arange(parts.sizes[PART]), dims=PART)
    holds = counted.where(parts["largest_pe"] > 0, 0).max(PART)  # the part of the largest
    later = (counted >= holds) & (parts["forbidden_by"] > 0)
    first = later.argmax(PART)
    return xr.Dataset(
        {
            **{str(name): parts[name].isel({PART: best}) for name in fastest},
            "largest_pe": parts["largest_pe"].max(PART),
            "efficient_pe": parts["efficient_pe"].max(PART),
            "forbidden_by": parts["forbidden_by"].where(later, 0).isel({PART: first}),
            "counts": parts["counts"].sum(PART),
        }
    )


def computed(cube: xr.Dataset, efficiency: float) -> xr.Dataset:
    """The summary of a cube, or a slice of one, from its cells."""
    missing = [name for name in NEEDED if name not in cube]
    if missing:
        raise InputError(
            f"the cube has no variable {missing[0]!r}, and this question needs its cells",
            advice=f"sweep with outputs: [{', '.join(NEEDED)}]",
        )
    keep_programs()
    others = [str(dim) for dim in cube["limit"].dims if dim not in (*LABELS, "pe")]
    shape = [cube.sizes[dim] for dim in (*LABELS, *others)]
    arrays = empty_summary(shape)
    for index in product(*(range(cube.sizes[dim]) for dim in LABELS)):
        part = cube.isel(dict(zip(LABELS, index, strict=True))).load()
        for name, values in _of_lines(part.transpose("pe", *others), efficiency).items():
            arrays[name][index] = values
    dims = (*LABELS, *others)
    return xr.Dataset(
        {
            name: ((*dims, "flag") if name == "counts" else dims, values)
            for name, values in arrays.items()
        },
        coords={dim: cube[dim] for dim in dims},
    )


def _of_lines(part: xr.Dataset, efficiency: float) -> Arrays:
    """The summary of one model, dataset, system and strategy; limits come last."""
    with jax.enable_x64(True):
        line = Line(
            p=part["pe"].values.reshape(-1, *[1] * (part["limit"].ndim - 1)).astype(float),
            comp_time=part["comp_time"].values.astype(float),
            comm_time=part["comm_time"].values.astype(float),
            memory=part["memory"].values.astype(float),
            limit=part["limit"].values,
            serial_time=part["serial_time"].values.astype(float)[None],
        )
        return summary_arrays(_summarised(line, jnp.asarray(efficiency)))


_summarised = compiled()(summarise)
