"""Read a cube's cells, as parts, a Dataset or a summary, whatever the source is."""

import json
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from paradl.grids.design_space import expect_global_batch
from paradl.grids.grid import LABELS, Grid
from paradl.grids.reading.errors import InputError
from paradl.kernels.names.flags import Limit
from paradl.kernels.names.statistics import EFFICIENCY, SUMMARISED, Objective
from paradl.sweep.cells.parts import Lines, Part
from paradl.sweep.cells.selection import Selection, locate_values, select
from paradl.sweep.cube.dimensions import CELLS, list_dims, read_axes, read_design, restore_axes
from paradl.sweep.cube.plan import SERIAL, make_plan
from paradl.sweep.cube.variables import VARIABLES, Arrays, Columns, Positions, list_columns

if TYPE_CHECKING:
    import xarray as xr

# Variables with the choices of `best`, renamed since an axis may be called `group`.
CHOSEN = {"group": "group_size", "segments": "segment_count"}
# Variables that answers need, if a cube has them.
READ = (*SUMMARISED, SERIAL, "epochs", "replicas", *CHOSEN.values())
# [B] Smaller slices are read at once: reading each strategy from Dask arrays takes 0.1 s.
FEW = 2**26

Places = Mapping[str, Positions]  # by dimension


class Reader:
    """Reader of the cells of a Dataset: a cube, or a slice of one. Others read stores and grids.

    place: where the cells are, for messages. keeps_summary: whether summaries of whole lines of PE
    counts are stored, so that no cells need be read.
    """

    place = "the Dataset"
    keeps_summary = False

    def __init__(self, dataset: "xr.Dataset") -> None:
        self._dataset = dataset

    @cached_property
    def grid(self) -> Grid:
        """Design space of the whole cube. InputError: a Dataset that is not a cube."""
        return read_design(self.open_chunks())

    @cached_property
    def coordinates(self) -> Arrays:
        """Values along each dimension, in the cube's order; one value where it was selected."""
        return read_axes(self.open_chunks())

    @property
    def held(self) -> Collection[object]:
        """Names of all variables, including those of cells."""
        return self.open_chunks().variables

    @property
    def attributes(self) -> Mapping[str, object]:
        """Attributes of the whole cube."""
        return self.open_chunks().attrs

    @property
    def versions(self) -> Mapping[str, str]:
        """Versions of the software that made the cube; empty if it was computed just now."""
        versions: dict[str, str] = json.loads(str(self.attributes.get("paradl_versions", "{}")))
        return versions

    def count_blocks(self) -> tuple[int, int]:
        """Numbers of finished blocks and of all blocks; a Dataset is one block."""
        return 1, 1

    def open_cells(self) -> "xr.Dataset":
        """The whole cube, to select from."""
        return self.open_chunks()

    def open_chunks(self) -> "xr.Dataset":
        """The whole cube, to be read chunk by chunk."""
        return self._dataset

    def cut_parts(self, names: Collection[str], places: Places, misfits: bool) -> Iterator[Part]:
        """Yield the cells at ascending positions along each dimension, a block at a time."""
        restored = restore_axes(self.open_chunks(), names).isel(places)
        dims = list_dims(restored)
        # One model and one data set per part, as in a store; bytes per cell do not matter here.
        plan = make_plan(
            tuple(dims), tuple(restored.sizes[dim] for dim in dims), cell_bytes=0, alone=2
        )
        for block in range(plan.blocks):
            piece = restored.isel(dict(zip(dims, plan.find_region(block), strict=True))).load()
            yield Part(
                {dim: piece[dim].values for dim in dims},
                {name: spread_array(piece.variables[name], dims) for name in names},
            )

    @property
    def columns(self) -> Columns:
        """Parameters that change together, with their dimension and values."""
        return list_columns(self.grid, self.coordinates)

    @property
    def variables(self) -> list[str]:
        """Variables of cells, including the time on one PE."""
        return [name for name in VARIABLES if name in self.held]

    def locate(self, selection: Selection) -> Places:
        """Positions of a slice along each dimension. InputError: see `locate_values`."""
        coordinates = self.coordinates
        chosen = locate_values(coordinates, selection, self.columns)
        return {dim: chosen.get(dim, np.arange(len(values))) for dim, values in coordinates.items()}

    def list_values(self, selection: Selection) -> Arrays:
        """Values along each dimension of a slice. InputError: see `locate_values`."""
        places = self.locate(selection)
        return {dim: values[places[dim]] for dim, values in self.coordinates.items()}

    def expect_variables(self, names: Collection[str]) -> None:
        """InputError: a variable that no cell has."""
        missing = [name for name in names if name not in self.held]
        if missing:
            outputs = ", ".join(name for name in names if name != SERIAL)
            raise InputError(
                f"the cube has no variable {missing[0]!r}, and this question needs its cells",
                advice=f"sweep with outputs: [{outputs}]",
            )

    def read_parts(
        self, names: Collection[str], places: Places, *, misfits: bool = False
    ) -> Iterator[Part]:
        """The parts of a slice, in the cube's order, each with the variables `names`.

        places: of `locate`. misfits: with the parts of samples that do not fit their model.
        InputError: a variable that the cube lacks. RunError: a file of a finished block is damaged.
        """
        self.expect_variables(names)
        return self.cut_parts(names, places, misfits)

    def read_cells(
        self,
        selection: Selection,
        max_global_batch: int | None = None,
        extra: Collection[str] = (),
    ) -> "xr.Dataset":
        """Cells of a slice over all dimensions of a cube; large slices are loaded lazily.

        max_global_batch: forbids larger batches. extra: further variables, if the cube has them.
        InputError: an unknown axis or value, or a cube without cells.
        """
        cells = self.open_cells()
        part = select(restore_axes(cells, (*CELLS, *extra)), selection)
        self.expect_variables(SUMMARISED)
        part = part[[name for name in (*READ, *extra) if name in part]]
        if part.nbytes <= FEW:
            part = part.compute()
        return part if max_global_batch is None else _bound_batches(part, max_global_batch)

    def read_strategies(
        self,
        selection: Selection,
        max_global_batch: int | None,
        trains: Callable[[str, str], bool] = lambda model, dataset: False,
    ) -> Iterator[Part]:
        """The cells of a slice, a part for each model, data set, system and strategy.

        trains: tells for a model and data set whether cells need their epochs to the target.
        """
        cells = self.read_cells(selection, max_global_batch)
        dims = [*LABELS, *(str(dim) for dim in cells["limit"].dims if dim not in LABELS)]
        values = {dim: cells[dim].values for dim in dims}
        # Without coordinates: to slice them, too, takes half of a summary's time.
        bare = cells.drop_vars(cells.coords)
        for index in product(*(range(cells.sizes[dim]) for dim in LABELS)):
            at = {dim: slice(n, n + 1) for dim, n in zip(LABELS, index, strict=True)}
            labels = {dim: values[dim][place] for dim, place in at.items()}
            trained = trains(str(labels["model"][0]), str(labels["dataset"][0]))
            # One strategy at a time, so memory does not grow with the slice.
            part = (cells if trained else bare).isel(at).load()
            if trained:
                part = _add_epochs(part)
            yield Part(
                values | labels,
                # Variables, since to transpose an array with its coordinates takes 2 ms.
                {str(n): spread_array(part.variables[n], dims) for n in part.data_vars},
            )

    def summarise(
        self,
        selection: Selection,
        efficiency: float = EFFICIENCY,
        objective: Objective = "epoch_time",
        max_global_batch: int | None = None,
    ) -> Lines:
        """Summary of a slice: the stored one if it answers the question, else computed from cells.

        objective: needs its statistics. max_global_batch: forbids larger batches.
        InputError: an unknown axis or value; a store without cells whose summary does not answer.
        """
        # The stored summary is for one efficiency.
        if efficiency == EFFICIENCY and self.has_lines(selection, max_global_batch):
            return self.read_summary(selection, objective)
        from paradl.sweep.cells.computed_summary import summarise_parts  # late: imports JAX

        trains = objective == "train_time"
        parts = self.read_strategies(selection, max_global_batch, lambda model, dataset: trains)
        return summarise_parts(self.list_values(selection), parts, efficiency)

    def read_summary(self, selection: Selection, objective: Objective) -> Lines:
        """Stored summary of a slice; only for readers with `keeps_summary`."""
        raise NotImplementedError

    def has_lines(self, selection: Selection, max_global_batch: int | None) -> bool:
        """True if a summary with the lines of this slice is stored: whole lines of PE counts."""
        return self.keeps_summary and "pe" not in selection and max_global_batch is None


def spread_array(array: "xr.Variable", dims: list[str]) -> NDArray[np.generic]:
    """Values over all dimensions, of size 1 along those that the array lacks."""
    values = array.transpose(*(dim for dim in dims if dim in array.dims)).values
    return np.expand_dims(values, tuple(n for n, dim in enumerate(dims) if dim not in array.dims))


def _add_epochs(cube: "xr.Dataset") -> "xr.Dataset":
    """Add the epochs of each cell, and those of one PE, to a cube."""
    from paradl.sweep.cube.derived_quantities import Paradl  # late: xarray comes with it

    derived, limit = Paradl(cube), cube["limit"]
    return cube.assign(
        epochs=derived.epochs.broadcast_like(limit),
        epochs_alone=derived.epochs_alone.broadcast_like(limit.isel(pe=0, drop=True)),
    )


def _bound_batches(cells: "xr.Dataset", most: int) -> "xr.Dataset":
    """Forbid cells with larger global batches."""
    from paradl.sweep.cube.derived_quantities import Paradl

    expect_global_batch(most)
    limit = cells["limit"]
    beyond = (Paradl(cells).global_batch > most).broadcast_like(limit).transpose(*limit.dims)
    flags = beyond.astype(np.uint16) * np.uint16(Limit.NO_CONVERGENCE)
    # Cells whose group does not divide, or whose samples do not fit, have no global batch.
    exempt = np.uint16(Limit.GROUP_DOES_NOT_DIVIDE | Limit.INCOMPATIBLE)
    bounded = (limit | flags).where((limit & exempt) == 0, limit).astype(np.uint16)
    return cells.assign(limit=bounded.assign_attrs(limit.attrs))
