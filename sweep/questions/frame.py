"""A summary as a table: a row for each model, dataset, system, strategy and value of other axes."""

import pandas as pd
import xarray as xr

from grids.grid import LABELS
from kernels import Limit


def frame(found: xr.Dataset) -> tuple[pd.DataFrame, list[str]]:
    """The rows that can exist, with the limits' counts as columns of their names; and the axes."""
    axes = [*LABELS, *(str(dim) for dim in found["largest_pe"].dims if dim not in LABELS)]
    flags = {str(each.name): found["counts"].isel(flag=n) for n, each in enumerate(Limit)}
    flat = found.drop_vars("counts").assign(flags)
    rows = flat.to_dataframe(dim_order=axes).reset_index()
    return rows[rows["forbidden_by"] != int(Limit.INCOMPATIBLE)], axes


def whole(counts: pd.Series) -> pd.Series:
    """PE counts as whole numbers, None for 0, which stands for none."""
    numbers = counts.astype(object)
    return numbers.where(counts > 0, None)
