"""The grid: a spec with everything looked up, as labelled coordinates and kernel inputs.

The cube's dimensions are model, dataset, system, strategy, then the numeric axes, pe and batch
first. A grid's `definition` spells out all models, data sets and systems, so that a store is
complete: the same grid can be restored without the user's files or this catalogue. JAX is only
imported to make kernel inputs; names and sizes need none.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, product
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from paradl.grids.axes import Axis
from paradl.grids.convergence.entry import Convergence, Pair
from paradl.grids.entries.calibration import CalibrationFile
from paradl.grids.entries.datasets import Dataset
from paradl.grids.entries.entry import define_once
from paradl.grids.entries.parameters import PARAMETERS
from paradl.grids.entries.quantity import Parameter
from paradl.grids.entries.strategies import Strategy, parse_strategy
from paradl.grids.entries.systems import System
from paradl.grids.inputs.draws import DRAWS
from paradl.grids.inputs.values import Settings
from paradl.grids.library import (
    look_up,
    look_up_calibrations,
    look_up_convergences,
    look_up_datasets,
)
from paradl.grids.models.architecture import Architecture
from paradl.grids.models.layers import LayerTable
from paradl.grids.outputs import INTERVALS, list_sloped
from paradl.grids.reading.errors import InputError, ShapeError, add_place, shorten
from paradl.grids.reading.yamlfile import Where, join_keys
from paradl.grids.rows import Rows
from paradl.grids.spec import Spec, add_former_choices, read_spec, validate_spec
from paradl.grids.spec_checks import (
    check_self_contained,
    expect_blocks,
    expect_divisible,
    expect_rates,
    expect_slopes,
    read_strategies,
    refuse_idle_settings,
    refuse_ranges,
    refuse_twins,
    refuse_zero_axis,
    settle_rows,
)
from paradl.kernels.names.arrays import Floats
from paradl.kernels.options import Options

if TYPE_CHECKING:
    from paradl.grids.inputs.groups import Groups
    from paradl.grids.inputs.workload import Workload
    from paradl.kernels.configuration.case import Case
    from paradl.kernels.work.transformer import Transformer

LABELS = ("model", "dataset", "system", "strategy")

# A transformer on one PE, at its fastest micro-batch. All else is stated, so that it takes no value
# of an axis, such as chunks of a pipeline.
ALONE = "data:chunks=1,micro=best,recompute=none,sequence=off,zero=0,shard=0,expert_tensor=0"

# Options that are keys of a spec.
AS_IN_SPEC = (
    *("allreduce", "iterations", "optimizer", "recompute", "conventions"),
    *("attention", "context", "loss", "states", "offload"),
)

Built = TypeVar("Built")
Index = tuple[int, int, int, int]  # a position along each labelled dimension
Source = str | Path | Mapping[str, object]  # a spec: a file or a mapping


@dataclass(frozen=True)
class Grid:
    """A design space, ready to evaluate.

    calibrations: by label of the system. convergences: laws of epochs by labels of model and data
    set. draws: number of machine draws for percentiles.
    """

    spec: Spec
    models: tuple[Architecture, ...]
    datasets: tuple[Dataset, ...]
    systems: tuple[System, ...]
    strategies: tuple[Strategy, ...]
    calibrations: Mapping[str, CalibrationFile] = field(default_factory=dict)
    convergences: Mapping[Pair, Convergence] = field(default_factory=dict)
    draws: int = DRAWS

    @classmethod
    def from_spec(
        cls, spec: Spec, base: Path = Path(), where: Where = join_keys, *, is_stored: bool = False
    ) -> "Grid":
        """Look up what a spec names; files are relative to `base`.

        is_stored: it is a store's. InputError: the place of a key that names nothing, as `where`
        returns it.
        """
        refuse_ranges(spec, where)
        spec = settle_rows(spec, base, where)
        models = look_up("model", spec.axes.model, base, where)
        systems = look_up("system", spec.axes.system, base, where)
        # After the models: by default data sets are those of the models' files.
        datasets = look_up_datasets(spec.axes.dataset, models, base, where)
        with add_place(where(("axes", "strategy"))):
            chosen = read_strategies(spec)
            if not is_stored:  # older versions swept such strategies
                refuse_idle_settings(chosen, spec)
            expect_blocks(chosen, models, datasets, spec.oracle)
        with add_place(where(("calibration",))):
            calibrations = look_up_calibrations(spec.calibration, spec.oracle, systems, base)
        names = tuple(model.name for model in models)
        with add_place(where(("convergence",))):
            laws = look_up_convergences(spec.convergence, spec.target, names, datasets, base)
        grid = cls(spec, models, datasets, systems, chosen, calibrations, laws)
        resolved = grid.resolved  # errors of networks name them
        if not is_stored and None in grid.transformers:
            with add_place(where(("axes", "zero"))):
                refuse_zero_axis(chosen, spec)
        with add_place(where(("axes", "strategy"))):
            expect_slopes(grid.layouts, spec.outputs)
        with add_place(where(("axes", "system"))):
            expect_rates(grid.layouts, resolved, systems)
        # By label, since two files, or two ways to write a strategy, may share one.
        for dim, labels in grid.labels.items():
            with add_place(where(("axes", dim))):
                refuse_twins(labels)
        return grid

    @classmethod
    def from_definition(cls, definition: dict[str, object]) -> "Grid":
        """Restore the grid of a `definition`. InputError: it refers to something outside."""
        spec = validate_spec(add_former_choices(definition), "the store's spec")
        check_self_contained(spec)
        return cls.from_spec(spec, is_stored=True)

    def definition(self) -> dict[str, object]:
        """Return the spec as plain data that refers to no file or catalogue."""
        # Unset keys stay out and generators of axes stay, as the user wrote them.
        plain: dict[str, Any] = self.spec.model_dump(mode="json", exclude_unset=True)
        plain["axes"] |= {
            "model": [model.definition() for model in self.models],
            "dataset": [dataset.definition() for dataset in self.datasets],
            "system": [system.definition() for system in self.systems],
            "strategy": [strategy.label for strategy in self.strategies],
        }
        # Defaults may change from version to version; a store keeps what it was swept with.
        plain["oracle"] = self.spec.oracle
        if self.spec.oracle == "paper":
            plain["conventions"] = self.spec.conventions
        plain["calibration"] = define_once(self.calibrations) or "none"
        if self.convergences:
            plain["convergence"] = define_once(self.convergences)
        if self._places_operators:
            from paradl.grids.workloads import define_placements

            plain["placements"] = define_placements(
                self.labels, self.fitting, self.strategies, self.axes["batch"], self.workload
            )
        return plain

    @property
    def _places_operators(self) -> bool:
        return any(strategy.placed for strategy in self.strategies)

    def drop_outputs(self) -> "Grid":
        """Return the same design space with summaries as its only output."""
        return replace(self, spec=self.spec.model_copy(update={"outputs": ()}))

    @cached_property
    def labels(self) -> dict[str, tuple[str, ...]]:
        """Names along the labelled dimensions."""
        entries = {"model": self.models, "dataset": self.datasets, "system": self.systems}
        names = {dim: tuple(entry.name for entry in given) for dim, given in entries.items()}
        return names | {"strategy": tuple(strategy.label for strategy in self.strategies)}

    @cached_property
    def axes(self) -> dict[str, Floats]:
        """Values along the numeric dimensions, in SI units; for rows their numbers, from 0."""
        # The same order in all cubes, with rows last.
        axes: dict[str, Axis | Rows] = {**self.spec.axes.numeric, **self.rows}
        return {name: axis.values for name, axis in axes.items()}

    @property
    def rows(self) -> dict[str, Rows]:
        """Parameters that change together, by dimension; these are the last of the cube."""
        return self.spec.axes.rows

    @cached_property
    def parameters(self) -> dict[str, Parameter]:
        """Everything that may be an axis of this grid: the oracle's parameters, and rows."""
        return PARAMETERS | {name: rows.describe(name) for name, rows in self.rows.items()}

    def strategy(self, index: Index) -> Strategy:
        """The strategy of an index as its network takes it."""
        return self.resolve_all(index[0])[index[3]]

    def resolve_all(self, model: int) -> tuple[Strategy, ...]:
        """The strategies as a network takes them: with blocks, `data` and stages are layouts."""
        if self.transformers[model] is None:
            return tuple(strategy.undo_layout() for strategy in self.strategies)
        return tuple(strategy.lay_out() for strategy in self.strategies)

    @cached_property
    def resolved(self) -> tuple[Strategy, ...]:
        """All strategies, as any network takes them."""
        return tuple(dict.fromkeys(chain(*map(self.resolve_all, range(len(self.models))))))

    @cached_property
    def blocks(self) -> "set[Transformer | None]":
        """The blocks that strategies divide, with None if any of them divides layers."""
        places = product(range(len(self.models)), range(len(self.strategies)))
        return {self.find_blocks((model, 0, 0, at)) for model, at in places}

    @cached_property
    def layouts(self) -> tuple[Strategy, ...]:
        """The strategies whose cells layouts answer for."""
        return tuple(strategy for strategy in self.resolved if strategy.of_blocks)

    @cached_property
    def transformers(self) -> "tuple[Transformer | None, ...]":
        """The blocks of each model; None without any, and for Table III, which has no layouts."""
        if self.spec.oracle == "paper":
            return (None,) * len(self.models)
        from paradl.grids.models.transformers import find_transformer  # late: imports numpy

        return tuple(find_transformer(model, self.datasets) for model in self.models)

    def find_blocks(self, index: Index) -> "Transformer | None":
        """The blocks that the strategy of an index divides; None if it divides layers."""
        return None if self.strategies[index[3]].divides_layers else self.transformers[index[0]]

    def find_alone(self, index: Index) -> Strategy:
        """The strategy of one PE, whose time is what speedups and efficiencies divide by."""
        # Rates of layouts differ from those of other strategies, so they need one of their own.
        has_layouts = any(one.of_blocks for one in self.resolve_all(index[0]))
        return parse_strategy(ALONE) if has_layouts else Strategy("serial")

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
        """True if percentiles are among the outputs."""
        return any(name in INTERVALS for name in self.spec.outputs)

    def ask_intervals(self, draws: int = DRAWS) -> "Grid":
        """Return the same design space with percentiles; Table III has none."""
        if self.spec.oracle == "paper":
            return self
        # Any percentile makes the kernels draw.
        more = () if self.has_intervals else (next(iter(INTERVALS)),)
        outputs = {"outputs": (*self.spec.outputs, *more)}
        return replace(self, spec=self.spec.model_copy(update=outputs), draws=draws)

    @cached_property
    def options(self) -> Options:
        """The kernels' choices of formulas, by the oracle and keys of the spec."""
        spec, machine = self.spec, self.spec.oracle == "machine"
        # Without a stated input rate, none is computed.
        stated = "input_rate" in (*spec.axes.swept, *spec.parameters)
        bounded = stated or any(system.input_rate is not None for system in self.systems)
        return Options(
            oracle=spec.oracle,
            # Table III has rings.
            algorithm=spec.collectives if machine or spec.collectives != "auto" else "ring",
            waits_for_input=machine and bounded,
            **{name: getattr(spec, name) for name in AS_IN_SPEC},
        )

    @cached_property
    def _settings(self) -> Settings:
        # Each draw costs a cell as much as its times.
        spec, draws = self.spec, self.draws if self.has_intervals else 0
        fixed = spec.parameters, spec.scaling, self.options, spec.oracle
        rows = {name: axis.columns for name, axis in self.rows.items()}
        return Settings(*fixed, draws=draws, slopes=list_sloped(spec.outputs), rows=rows)

    @cached_property
    def _tables(self) -> dict[tuple[int, int], LayerTable | ShapeError]:
        # Cached, since every block of a sweep needs its pair's table.
        return {}

    def _infer_table(self, model: int, dataset: int) -> LayerTable | ShapeError:
        """Return the layers of a pair, or why its samples do not fit; inferred once per pair."""
        key = (model, dataset)
        if key not in self._tables:
            try:
                table = self.models[model].table(self.datasets[dataset])
                expect_divisible(self.strategies, table)
                self._tables[key] = table
            except ShapeError as error:  # cached like a table
                self._tables[key] = error
        return self._tables[key]

    def table(self, model: int, dataset: int) -> LayerTable | None:
        """Return the layer table of a pair; None if the samples do not fit the model."""
        table = self._infer_table(model, dataset)
        return table if isinstance(table, LayerTable) else None

    @cached_property
    def fitting(self) -> dict[tuple[int, int], LayerTable]:
        """Layer tables of all (model, dataset) pairs that fit."""
        pairs = product(range(len(self.models)), range(len(self.datasets)))
        return {pair: table for pair in pairs if (table := self.table(*pair)) is not None}

    def misfit(self, model: int, dataset: int) -> str | None:
        """Return why the samples do not fit the model; None if they do."""
        error = self._infer_table(model, dataset)
        return str(error) if isinstance(error, ShapeError) else None

    def case(
        self,
        index: Index,
        axes: Mapping[str, Floats] | None = None,
        strategy: Strategy | None = None,
    ) -> "Case | None":
        """Return the kernels' case of one (model, dataset, system, strategy); None: not possible.

        axes: a block's part of the numeric axes; by default all. strategy: replaces the grid's.
        """
        from paradl.grids.inputs.case import build_case  # late: JAX comes with it

        return self.build(build_case, index, axes, strategy)

    def groups(
        self,
        index: Index,
        axes: Mapping[str, Floats] | None = None,
        strategy: Strategy | None = None,
    ) -> "Groups | None":
        """Return the layers of a case by group, before they are reduced; None: not possible."""
        from paradl.grids.inputs.case import divide_rows

        divided = self.build(divide_rows, index, axes, strategy)
        return None if divided is None else divided.groups

    def build(
        self,
        build: "Callable[[Workload, Strategy, Mapping[str, Floats], Settings], Built]",
        index: Index,
        axes: Mapping[str, Floats] | None,
        strategy: Strategy | None,
    ) -> "Built | None":
        """Return what `build` makes of a case's workload; arguments and None: as of `case`."""
        workload = self.workload(*index[:3])
        if workload is None:
            return None
        return build(workload, strategy or self.strategy(index), axes or self.axes, self._settings)

    @cached_property
    def _workloads(self) -> "dict[tuple[int, int, int], Workload | None]":
        # Cached, since measured times are spread over the layers for each triple.
        return {}

    def workload(self, model: int, dataset: int, system: int) -> "Workload | None":
        """Return a model's layers with measured times; None if the samples do not fit."""
        key = (model, dataset, system)
        if key not in self._workloads:
            self._workloads[key] = self._make_workload(*key)
        return self._workloads[key]

    def _make_workload(self, model: int, dataset: int, system: int) -> "Workload | None":
        from paradl.grids.workloads import make_workload, place_workload

        table = self.table(model, dataset)
        if table is None:
            return None
        chosen, data, machine = self.models[model], self.datasets[dataset], self.systems[system]
        calibration = self.calibrations.get(machine.name)
        law = self.convergences.get((chosen.name, data.name))
        workload = make_workload(self.spec, chosen, data, machine, table, calibration, law)
        if not self._places_operators:  # a search takes seconds
            return workload
        return place_workload(self.spec, chosen.name, data.name, workload, self._settings)


def read_grid(spec: Source) -> Grid:
    """Return the design space of a spec file or mapping."""
    if isinstance(spec, Mapping):
        return Grid.from_spec(validate_spec(dict(spec), "spec"))
    if not isinstance(spec, str | Path):
        raise InputError(f"expected a YAML file or a mapping, got {shorten(spec)}", where="spec")
    path = Path(spec)
    checked, document = read_spec(path)
    return Grid.from_spec(checked, path.parent, document.where)
