"""The grid: a spec with everything looked up, as labelled coordinates and kernel inputs.

The cube's dimensions are model, dataset, system, strategy, then the numeric axes, pe and batch
first. A grid writes itself down (`definition`) with all models, datasets and systems spelled out,
so that a store is complete: the same grid comes back where the user's files, or this catalogue, are
not. JAX is imported where kernel inputs are made: who asks for names and sizes does without it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from grids.axes import Axis
from grids.convergence.entry import Convergence, Pair
from grids.convergences import look_up_convergences
from grids.definition import define_spec
from grids.degrees import read_strategies
from grids.entries.calibration import CalibrationFile
from grids.entries.datasets import Dataset
from grids.entries.oracles import add_former_choices
from grids.entries.parameters import PARAMETERS
from grids.entries.quantity import Parameter
from grids.entries.strategies import Strategy
from grids.entries.systems import System
from grids.inputs.draws import DRAWS
from grids.library import Model
from grids.lookup import (
    Where,
    check_self_contained,
    join_keys,
    look_up,
    look_up_calibrations,
    look_up_datasets,
    refuse_ranges,
    refuse_twins,
)
from grids.models.layers import Floats, LayerTable
from grids.notes import list_misfits, list_notes
from grids.outputs import INTERVALS, list_layered
from grids.reading.errors import ShapeError
from grids.rows import Rows
from grids.spec import Spec, validate_spec
from grids.spec_rows import settle_rows
from grids.whole_layers import expect_divisible

if TYPE_CHECKING:
    from grids.inputs.case import Workload
    from grids.inputs.groups import Groups
    from grids.inputs.values import Settings
    from kernels.configuration.case import Case
    from kernels.options import Options

LABELS = ("model", "dataset", "system", "strategy")

Built = TypeVar("Built")
Index = tuple[int, int, int, int]  # a position along each of the labelled dimensions


@dataclass(frozen=True)
class Grid:
    """A design space, ready to evaluate. `axes`: the numeric ones, values ascending.

    calibrations: by labels of systems. convergences: laws of epochs by the labels of models and
    data sets. draws: of a machine, for percentiles.
    """

    spec: Spec
    models: tuple[Model, ...]
    datasets: tuple[Dataset, ...]
    systems: tuple[System, ...]
    strategies: tuple[Strategy, ...]
    calibrations: Mapping[str, CalibrationFile] = field(default_factory=dict)
    convergences: Mapping[Pair, Convergence] = field(default_factory=dict)
    draws: int = DRAWS

    @classmethod
    def from_spec(cls, spec: Spec, base: Path = Path(), where: Where = join_keys) -> "Grid":
        """The grid of what the spec names; files are relative to `base`.

        InputError tells the place of a key, as `where` gives it, that names what is not there.
        """
        refuse_ranges(spec, where)
        spec = settle_rows(spec, base, where)
        models = look_up("model", spec.axes.model, base, where)
        systems = look_up("system", spec.axes.system, base, where)
        datasets = look_up_datasets(spec.axes.dataset, models, base, where)
        chosen = read_strategies(spec, where(("axes", "strategy")))
        calibrations = look_up_calibrations(spec.calibration, spec.oracle, systems, base, where)
        names = tuple(each.name for each in models)
        laws = look_up_convergences(spec.convergence, spec.target, names, datasets, base, where)
        grid = cls(spec, models, datasets, systems, chosen, calibrations, laws)
        # By label, after the look-up: two files, or two ways to write a strategy, may share one.
        for dim, labels in grid.labels.items():
            refuse_twins(labels, where(("axes", dim)))
        return grid

    @classmethod
    def from_definition(cls, definition: dict[str, object]) -> "Grid":
        """The grid that wrote `definition`. InputError: it refers to what is not inside."""
        spec = validate_spec(add_former_choices(definition), "the store's spec")
        check_self_contained(spec)
        return cls.from_spec(spec)

    def definition(self) -> dict[str, object]:
        """The spec as plain data, complete: nothing in it refers to a file or a catalogue."""
        named = self.models, self.datasets, self.systems, self.strategies
        plain = define_spec(self.spec, *named, self.calibrations, self.convergences)
        if self._places_operators:
            from grids.workloads import define_placements

            plain["placements"] = define_placements(
                self.labels, self.fitting, self.strategies, self.axes["batch"], self.workload
            )
        return plain

    @property
    def _places_operators(self) -> bool:
        return any(strategy.placed for strategy in self.strategies)

    def drop_outputs(self) -> "Grid":
        """The same design space, of which only the summaries are kept."""
        return replace(self, spec=self.spec.model_copy(update={"outputs": ()}))

    @cached_property
    def labels(self) -> dict[str, tuple[str, ...]]:
        """Names along the labelled dimensions."""
        return {
            "model": tuple(each.name for each in self.models),
            "dataset": tuple(each.name for each in self.datasets),
            "system": tuple(each.name for each in self.systems),
            "strategy": tuple(each.label for each in self.strategies),
        }

    @property
    def warnings(self) -> list[str]:
        """Warnings: odd files, unused keys, doubtful measured epochs, layers that stay whole."""
        named = self.models, self.datasets, self.systems, self.strategies, self.convergences
        notes = list_notes(self.spec, *named, self.fitting)
        return [*notes, *list_misfits(self.labels, self.misfit)]

    @cached_property
    def axes(self) -> dict[str, Floats]:
        """Values along the numeric dimensions, in SI units; the numbers of rows, from 0."""
        # One order for all cubes: rows are the last.
        axes: dict[str, Axis | Rows] = {**self.spec.axes.numeric, **self.rows}
        return {name: axis.values for name, axis in axes.items()}

    @property
    def rows(self) -> dict[str, Rows]:
        """Parameters that change together, by their dimension, which is the last of the cube's."""
        return self.spec.axes.rows

    @cached_property
    def parameters(self) -> dict[str, Parameter]:
        """All that may be an axis of this grid: the oracle's parameters, and its rows."""
        return PARAMETERS | {name: rows.describe(name) for name, rows in self.rows.items()}

    @property
    def dims(self) -> tuple[str, ...]:
        """Names of the cube's dimensions."""
        return (*LABELS, *self.axes)

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the cube's dimensions."""
        return tuple(map(len, (*self.labels.values(), *self.axes.values())))

    @property
    def has_intervals(self) -> bool:
        """True if percentiles are asked for."""
        return any(name in INTERVALS for name in self.spec.outputs)

    def ask_intervals(self, draws: int = DRAWS) -> "Grid":
        """The same design space, cases of which know how far off they may be; not of Table III."""
        if self.spec.oracle == "paper":
            return self
        more = () if self.has_intervals else (next(iter(INTERVALS)),)
        outputs = {"outputs": (*self.spec.outputs, *more)}
        return replace(self, spec=self.spec.model_copy(update=outputs), draws=draws)

    @cached_property
    def options(self) -> "Options":
        """The formulas that the spec chose."""
        from grids.formulas import choose_formulas

        # Where no bound on the input is stated, none is computed.
        stated = "input_rate" in (*self.spec.axes.swept, *self.spec.parameters)
        bounded = stated or any(each.input_rate is not None for each in self.systems)
        return choose_formulas(self.spec, bounded=bounded)

    @cached_property
    def _settings(self) -> "Settings":
        from grids.inputs.values import Settings

        spec, draws = self.spec, self.draws if self.has_intervals else 0
        own = spec.parameters, spec.scaling, self.options, spec.oracle
        rows = {name: each.columns for name, each in self.rows.items()}
        return Settings(*own, draws=draws, slopes=list_layered(spec.outputs), rows=rows)

    @cached_property
    def _tables(self) -> dict[tuple[int, int], LayerTable | ShapeError]:
        # Every block of a sweep asks for its pair's.
        return {}

    def _infer_table(self, model: int, dataset: int) -> LayerTable | ShapeError:
        """The layers of a pair, or why its samples do not fit; of each pair inferred once."""
        key = (model, dataset)
        if key not in self._tables:
            try:
                table = self.models[model].table(self.datasets[dataset])
                expect_divisible(self.strategies, table)
                self._tables[key] = table
            except ShapeError as error:  # an answer as good as a table: it is not asked for again
                self._tables[key] = error
        return self._tables[key]

    def table(self, model: int, dataset: int) -> LayerTable | None:
        """The layer table of a pair, None where the samples do not fit the model."""
        table = self._infer_table(model, dataset)
        return table if isinstance(table, LayerTable) else None

    @cached_property
    def fitting(self) -> dict[tuple[int, int], LayerTable]:
        """The layer tables of all (model, dataset) pairs that fit."""
        pairs = product(range(len(self.models)), range(len(self.datasets)))
        return {pair: table for pair in pairs if (table := self.table(*pair)) is not None}

    def misfit(self, model: int, dataset: int) -> str | None:
        """Why the samples do not fit the model, None where they do."""
        error = self._infer_table(model, dataset)
        return str(error) if isinstance(error, ShapeError) else None

    def case(
        self,
        index: Index,
        axes: Mapping[str, Floats] | None = None,
        strategy: Strategy | None = None,
    ) -> "Case | None":
        """The kernels' case of one (model, dataset, system, strategy); None: it cannot exist.

        `axes`: a block's part of the numeric axes, all of them by default. `strategy` takes the
        place of the grid's own.
        """
        from grids.inputs.case import build_case

        return self.build(build_case, index, axes, strategy)

    def groups(
        self,
        index: Index,
        axes: Mapping[str, Floats] | None = None,
        strategy: Strategy | None = None,
    ) -> "Groups | None":
        """The layers of a case in its groups, before they are reduced; None: it cannot exist."""
        from grids.inputs.case import build_groups

        return self.build(build_groups, index, axes, strategy)

    def build(
        self,
        build: "Callable[[Workload, Strategy, Mapping[str, Floats], Settings], Built]",
        index: Index,
        axes: Mapping[str, Floats] | None,
        strategy: Strategy | None,
    ) -> "Built | None":
        workload = self.workload(*index[:3])
        if workload is None:
            return None
        chosen = strategy or self.strategies[index[3]]
        return build(workload, chosen, axes or self.axes, self._settings)

    @cached_property
    def _workloads(self) -> "dict[tuple[int, int, int], Workload | None]":
        # Every case asks for its triple's, whose measured times are spread over the layers.
        return {}

    def workload(self, model: int, dataset: int, system: int) -> "Workload | None":
        """A model's layers with their measured times, None where the samples do not fit."""
        key = (model, dataset, system)
        if key not in self._workloads:
            self._workloads[key] = self._make_workload(*key)
        return self._workloads[key]

    def _make_workload(self, model: int, dataset: int, system: int) -> "Workload | None":
        from grids.workloads import make_workload, place_workload

        table = self.table(model, dataset)
        if table is None:
            return None
        chosen, data, machine = self.models[model], self.datasets[dataset], self.systems[system]
        calibration = self.calibrations.get(machine.name)
        law = self.convergences.get((chosen.name, data.name))
        workload = make_workload(self.spec, chosen, data, machine, table, calibration, law)
        if not self._places_operators:
            return workload
        return place_workload(self.spec, chosen.name, data.name, workload, self._settings)
