"""Reading a cube's cells, wherever they are: in a store, in a Dataset, or computed in memory.

Questions read parts, a Dataset or a summary, and never have to know which of them it is.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from grids.grid import Grid
from grids.reading.errors import InputError
from kernels.names.flags import Limit
from kernels.names.statistics import SUMMARISED, Objective
from sweep.cells.lines import Lines
from sweep.cells.parts import Part
from sweep.cells.selection import Selection, locate_values, select
from sweep.cube.coordinates import list_columns
from sweep.cube.dimensions import CELLS, restore_axes
from sweep.cube.layout import SERIAL
from sweep.cube.statistics import EFFICIENCY
from sweep.cube.variables import VARIABLES, Arrays, Columns, Positions

if TYPE_CHECKING:
    import xarray as xr

# Names in a cube of what a cell of `best` chose: an axis may be called `group`.
CHOSEN = {"group": "group_size", "segments": "segment_count"}
# The variables that answers are made of, as far as a cube has them.
READ = (*SUMMARISED, SERIAL, "epochs", "replicas", *CHOSEN.values())
# [B] Fewer are read at once: each strategy read by itself from Dask's arrays takes 0.1 s.
FEW = 2**26

Places = dict[str, Positions]


class Reader(ABC):
    """The cells of a cube, or of a slice of one.

    place: where they are, for messages. keeps_summary: whether it has summaries of whole lines of
    PE counts, for which no cells are read.
    """

    place: str
    keeps_summary = False

    @property
    @abstractmethod
    def grid(self) -> Grid:
        """The design space of the whole cube. InputError: a Dataset that is no cube."""

    @property
    @abstractmethod
    def coordinates(self) -> Arrays:
        """The values along each dimension, in the cube's order."""

    @property
    @abstractmethod
    def held(self) -> Collection[object]:
        """The names of all variables, those of cells among them."""

    @property
    @abstractmethod
    def attributes(self) -> Mapping[str, Any]:
        """The attributes of the whole cube."""

    @property
    @abstractmethod
    def versions(self) -> Mapping[str, str]:
        """The versions that the cube was made with; none where it was computed just now."""

    @abstractmethod
    def count_blocks(self) -> tuple[int, int]:
        """Blocks that are done, and all of them; a Dataset is one."""

    @abstractmethod
    def open_cells(self, selection: Selection, extra: Collection[str] = ()) -> "xr.Dataset":
        """The whole cube, to select from; RunError: files of selected cells are gone."""

    @abstractmethod
    def open_chunks(self) -> "xr.Dataset":
        """The whole cube, to be read chunk by chunk; RunError as of `open_cells`."""

    @abstractmethod
    def cut_parts(
        self, names: Collection[str], places: Mapping[str, Positions], misfits: bool
    ) -> Iterator[Part]:
        """The cells at ascending positions along each dimension, a block at a time."""

    @property
    def columns(self) -> Columns:
        """The parameters that change together, with the dimension of each."""
        return list_columns(self.grid, self.coordinates)

    @property
    def variables(self) -> list[str]:
        """The variables of cells, with the time on one PE."""
        return [name for name in VARIABLES if name in self.held]

    def locate(self, selection: Selection) -> Places:
        """The positions of a slice along each dimension; InputError as of `locate_values`."""
        every = self.coordinates
        chosen = locate_values(every, selection, self.columns)
        return {dim: chosen.get(dim, np.arange(len(values))) for dim, values in every.items()}

    def list_values(self, selection: Selection) -> Arrays:
        """The values along each dimension of a slice; InputError as of `locate_values`."""
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
        self, names: Collection[str], places: Mapping[str, Positions], *, misfits: bool = False
    ) -> Iterator[Part]:
        """The parts of a slice, in the cube's order, each with the variables `names`.

        places: of `locate`. misfits: with the parts of samples that do not fit their model.
        InputError: a variable that the cube lacks. RunError: a file of a finished block is gone.
        """
        self.expect_variables(names)
        return self.cut_parts(names, places, misfits)

    def read_cells(
        self,
        selection: Selection,
        max_global_batch: int | None = None,
        extra: Collection[str] = (),
    ) -> "xr.Dataset":
        """The cells of a slice, over all dimensions of a cube; many stay where they are stored.

        max_global_batch: larger batches are forbidden. extra: variables beside the usual ones,
        where the cube has them. InputError: an unknown axis or value, or a cube without cells.
        """
        cells = self.open_cells(selection, extra)
        part = select(restore_axes(cells, (*CELLS, *extra)), selection)
        self.expect_variables(SUMMARISED)
        part = part[[name for name in (*READ, *extra) if name in part]]
        if part.nbytes <= FEW:
            part = part.compute()
        return part if max_global_batch is None else _bound_batches(part, max_global_batch)

    def read_whole(self, selection: Selection, max_global_batch: int | None) -> Part | None:
        """All cells as plain arrays, where they are the slice and need no Dataset; else None."""
        return None

    def summarise(
        self,
        selection: Selection,
        efficiency: float = EFFICIENCY,
        objective: Objective = "epoch_time",
        max_global_batch: int | None = None,
    ) -> Lines:
        """The summary of a slice: as it is kept, if that answers the question, else computed.

        objective: its statistics are needed. max_global_batch: larger batches are forbidden.

        InputError: an unknown axis or value; a store that keeps summaries alone, of other lines.
        """
        # What is kept is of one efficiency.
        if efficiency == EFFICIENCY and self.has_lines(selection, max_global_batch):
            return self.read_summary(selection, objective)
        # late: JAX comes with it
        from sweep.cells.computed_summary import summarise_cells, summarise_part

        whole = self.read_whole(selection, max_global_batch)
        if whole is not None and objective == "epoch_time":
            return summarise_part(whole, efficiency)
        return summarise_cells(self.read_cells(selection, max_global_batch), efficiency, objective)

    def read_summary(self, selection: Selection, objective: Objective) -> Lines:
        """The summary of a slice, as it is kept: of readers with `keeps_summary`."""
        raise NotImplementedError

    def has_lines(self, selection: Selection, max_global_batch: int | None) -> bool:
        """True if the lines of a slice are those of the summary that is kept: whole ones."""
        return self.keeps_summary and "pe" not in selection and max_global_batch is None


def _bound_batches(cells: "xr.Dataset", most: int) -> "xr.Dataset":
    """The cells with larger global batches forbidden."""
    from sweep.cube.derived_quantities import Paradl

    if most < 1:
        raise InputError(f"expected at least 1, got {most}", where="max_global_batch")
    limit = cells["limit"]
    beyond = (Paradl(cells).global_batch > most).broadcast_like(limit).transpose(*limit.dims)
    flags = beyond.astype(np.uint16) * np.uint16(Limit.NO_CONVERGENCE)
    # A group that does not divide, or samples that do not fit, have no global batch.
    exempt = np.uint16(Limit.GROUP_DOES_NOT_DIVIDE | Limit.INCOMPATIBLE)
    bounded = (limit | flags).where((limit & exempt) == 0, limit).astype(np.uint16)
    return cells.assign(limit=bounded.assign_attrs(limit.attrs))
