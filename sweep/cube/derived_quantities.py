"""`ds.paradl`: quantities derived from a cube's variables on reading, and never stored.

B = A b p1 under weak scaling, b = B / (A p1) under strong scaling, with A passes per iteration
(`accumulate`); I = D / B iterations per epoch. Speedup and efficiency are relative to
`serial_time`, the epoch on one PE.
"""

from collections.abc import Container, Mapping
from functools import cached_property, partial, reduce
from operator import mul
from typing import Any

import numpy as np
import xarray as xr

from paradl.grids.convergence.entry import Convergence, Pair, find_epochs
from paradl.grids.entries.parameters import DEFAULTS
from paradl.grids.entries.strategies import Strategy
from paradl.grids.grid import Grid
from paradl.grids.outputs import MAIN_OUTPUTS
from paradl.grids.reading.errors import InputError
from paradl.kernels import batches
from paradl.kernels.names.flags import FORBIDS
from paradl.kernels.names.layout_terms import EVERY_TERM, LAYOUT_TERMS
from paradl.kernels.names.parallelisms import KINDS, LAYOUT_DEGREES
from paradl.kernels.names.stored import name_elasticity
from paradl.kernels.names.terms import TERMS
from paradl.sweep.cube.dimensions import expect_flags, expect_laws, read_design
from paradl.sweep.cube.variables import DERIVED, name_limits

REOPEN = "reopen the store with paradl.open_dataset(STORE), and keep it in slices"
PAIR = ("model", "dataset")  # has a law of epochs


class Paradl:
    """Derived quantities of a cube, or of any slice of one; lazy if the cube is."""

    def __init__(self, dataset: xr.Dataset) -> None:
        self._ds = dataset

    @cached_property
    def grid(self) -> Grid:
        """Design space of the cube."""
        return read_design(self._ds)

    @property
    def epoch_time(self) -> xr.DataArray:
        """Time of an epoch [s]: compute and communication."""
        return name_array(self._get("comp_time") + self._get("comm_time"), "epoch_time")

    @property
    def global_batch(self) -> xr.DataArray:
        """Samples of a mini-batch over all replicas, B."""
        batch, scaling = self._get("batch").astype(float), self.grid.spec.scaling
        # A stated B needs no replicas, which a cube of best groups may not have.
        passes: Any = self.replicas * self._accumulated if scaling == "weak" else 1
        return name_array(batches.global_batch(batch, passes, scaling), "global_batch")

    @property
    def epochs(self) -> xr.DataArray:
        """Epochs to the target; NaN if no law is known, or the batch does not converge."""
        if "epochs" in self._ds:
            return self._get("epochs")
        return name_array(self._count_epochs(self.global_batch), "epochs")

    @property
    def epochs_alone(self) -> xr.DataArray:
        """Epochs to the target with the global batch of one PE."""
        batch, scaling = self._get("batch").astype(float), self.grid.spec.scaling
        alone = batches.global_batch(batch, self._accumulated, scaling)
        return name_array(self._count_epochs(alone), "epochs_alone")

    @property
    def train_time(self) -> xr.DataArray:
        """Time to the target [s]."""
        return name_array(self.epoch_time * self.epochs, "train_time")

    def _count_epochs(self, global_batch: xr.DataArray) -> xr.DataArray:
        return self._count_pairs(global_batch, {}, expect_laws(self.grid))

    def _count_pairs(
        self, batch: xr.DataArray, pair: Mapping[str, str], laws: Mapping[Pair, Convergence]
    ) -> xr.DataArray:
        """Count epochs for all models and data sets that agree with `pair`."""
        for dim in (other for other in PAIR if other not in pair):
            labels = self._get(dim)
            parts = [
                self._count_pairs(
                    batch.sel({dim: label}, drop=True) if dim in batch.dims else batch,
                    {**pair, dim: label},
                    laws,
                )
                for label in map(str, np.atleast_1d(labels.values))
            ]
            return xr.concat(parts, labels) if labels.ndim else parts[0]
        law = laws.get((pair["model"], pair["dataset"]))
        if law is None:
            return xr.full_like(batch, np.nan)
        counted: xr.DataArray = xr.apply_ufunc(
            partial(find_epochs, law), batch, dask="parallelized", output_dtypes=[float]
        )
        return counted

    @property
    def _accumulated(self) -> Any:
        """Passes whose gradients are added up before an exchange, A."""
        passes = self._look_up_given("accumulate")
        return DEFAULTS["accumulate"] if passes is None else passes

    @property
    def replicas(self) -> xr.DataArray:
        """Data-parallel replicas, p1."""
        if "replicas" in self._ds:
            return self._get("replicas")
        return name_array(self._count_replicas(), "replicas")

    @property
    def iterations(self) -> xr.DataArray:
        """Iterations per epoch, I."""
        samples, rounding = self._look_up_samples(), self.grid.spec.iterations
        # At least one, as in `kernels.configuration.run`, since a step takes a whole batch.
        count = batches.iterations(samples, self.global_batch, rounding).clip(min=1)
        return name_array(count, "iterations")

    @property
    def iteration_time(self) -> xr.DataArray:
        """Time of an iteration [s]."""
        return name_array(self.epoch_time / self.iterations, "iteration_time")

    @property
    def throughput(self) -> xr.DataArray:
        """Samples per second."""
        rate = self._look_up_samples() / self.epoch_time
        return name_array(self._restore_order(rate), "throughput")

    @property
    def speedup(self) -> xr.DataArray:
        """Epoch time on one PE over epoch time."""
        gain = self._get("serial_time") / self.epoch_time
        return name_array(self._restore_order(gain), "speedup")

    @property
    def efficiency(self) -> xr.DataArray:
        """Speedup per PE."""
        return name_array(self.speedup / self._get("pe"), "efficiency")

    @property
    def feasible(self) -> xr.DataArray:
        """True if nothing forbids a cell."""
        expect_flags(self._get("limit"))
        return name_array((self._get("limit") & np.uint16(FORBIDS)) == 0, "feasible")

    @property
    def bottleneck(self) -> xr.DataArray:
        """Largest part of the time, as an index into the attribute `flag_meanings`; -1: no time.

        Parts: the terms if the cube has all of its strategies', else compute and communication.
        """
        labels, grid = {*np.atleast_1d(self._get("strategy").values).tolist()}, self.grid
        chosen = [at for at, label in enumerate(grid.labels["strategy"]) if label in labels]
        blocks = [grid.find_blocks((n, 0, 0, at)) for n in range(len(grid.models)) for at in chosen]
        wanted = {*(TERMS if None in blocks else ()), *(LAYOUT_TERMS if any(blocks) else ())}
        terms = [
            name
            for part in ("compute", "communication")
            for name, term in EVERY_TERM.items()
            if term.part == part and name in wanted
        ]
        held = all(name in self._ds for name in terms)
        parts = terms if held else ["comp_time", "comm_time"]
        stacked = xr.concat([self._get(name) for name in parts], "part", coords="minimal")
        # -inf for NaN, since argmax refuses cells of nothing but NaN.
        largest = stacked.fillna(-np.inf).argmax("part").where(self.epoch_time.notnull(), -1)
        part = name_array(largest.astype("int8"), "bottleneck")
        meanings = {"flag_values": list(range(len(parts))), "flag_meanings": " ".join(parts)}
        return part.assign_attrs(meanings)

    def elasticity(self, parameter: str, of: str = "epoch_time") -> xr.DataArray:
        """Return the stored elasticity of `of` in a parameter. InputError: it is not stored."""
        name = name_elasticity(of, parameter)
        return self._get(name, f"sweep with outputs: [{', '.join(MAIN_OUTPUTS)}, {name}]")

    def reasons(self, limit: int) -> list[str]:
        """List the names of the limits in a flag."""
        return name_limits(int(limit))

    def _get(self, name: str, advice: str = REOPEN) -> xr.DataArray:
        """Return a variable or coordinate. InputError: it is missing."""
        if name not in self._ds.variables:
            raise InputError(f"the Dataset has no {name!r}", advice=advice)
        return self._ds[name]

    def _restore_order(self, array: xr.DataArray) -> xr.DataArray:
        # Arithmetic orders dimensions by its operands.
        return array.transpose(*self.epoch_time.dims)

    def _look_up_samples(self) -> xr.DataArray:
        """Return the samples of an epoch by data set, D."""
        samples = {dataset.name: float(dataset.samples) for dataset in self.grid.datasets}
        return self._map_labels("dataset", samples)

    def _map_labels(self, dim: str, values: dict[str, float]) -> xr.DataArray:
        """Return the values of labels along a dimension."""
        labels = self._get(dim)
        _check_labels(labels, values)
        mapped = np.array([values[str(label)] for label in np.atleast_1d(labels.values)])
        return labels.copy(data=mapped.reshape(labels.shape)).drop_attrs()

    def _count_replicas(self) -> xr.DataArray:
        """Return p1 by strategy: p, p over the group size, or 1."""
        pe, labels = self._get("pe").astype(float), self._get("strategy")
        strategies = {strategy.label: strategy for strategy in self.grid.strategies}
        _check_labels(labels, strategies)
        parts = [
            self._divide_pes(strategy, pe).assign_coords(strategy=label)
            for label, strategy in strategies.items()
            if label in labels.values
        ]
        joined = xr.concat(parts, "strategy", coords="minimal", compat="override", join="override")
        return joined.squeeze("strategy") if labels.ndim == 0 else joined

    def _divide_pes(self, strategy: Strategy, pe: xr.DataArray) -> xr.DataArray:
        if not strategy.replicated:
            return xr.ones_like(pe)
        if not strategy.parts:
            return pe
        # A group larger than p is forbidden; one replica keeps it from dividing by 0.
        return (pe // self._look_up_group(strategy)).clip(min=1)

    def _look_up_group(self, strategy: Strategy) -> xr.DataArray | float:
        """Return the PEs in a group of a hybrid. InputError: chosen by the sweep and not stored."""
        stated = dict(strategy.degrees)
        # Experts divide the PEs of the other degrees again.
        parts = [name for name in strategy.parts if name in (*KINDS, *LAYOUT_DEGREES)]
        if "best" in (strategy.group, *map(stated.get, parts)):
            raise InputError(
                f"this cube does not store the groups that {strategy.label!r} chose",
                advice="add 'replicas' to the spec's outputs",
            )
        if not strategy.hybrid:
            sizes: Any = (stated.get(name) or self._look_up_given(name) for name in parts)
            group: xr.DataArray | float = reduce(mul, sizes, 1.0)
            return group
        if strategy.group is not None:
            return float(strategy.group)
        for name in (*strategy.parts, "group"):
            given = self._look_up_given(name)
            if given is not None:
                return given
        nodes = {system.name: float(system.pes_per_node) for system in self.grid.systems}
        return self._map_labels("system", nodes)

    def _look_up_given(self, name: str) -> xr.DataArray | float | None:
        """Return a parameter that is an axis or fixed; None if it is neither."""
        if name in self._ds.coords:
            return self._ds[name].astype(float)
        return self.grid.spec.parameters.get(name)


def _check_labels(labels: xr.DataArray, names: Container[str]) -> None:
    """Refuse labels that are not in the cube's spec, as after combining cubes."""
    for label in map(str, np.atleast_1d(labels.values)):
        if label not in names:
            raise InputError(
                f"{label!r} is not a {labels.name} of the spec in the Dataset's attributes",
                advice="query each cube by itself, then combine the answers",
            )


def name_array(array: xr.DataArray, name: str) -> xr.DataArray:
    """Name an array, and replace its attributes by CF attributes of its own."""
    named = array.rename(name)
    named.attrs = {"units": DERIVED[name].units, "long_name": DERIVED[name].long_name}
    return named
