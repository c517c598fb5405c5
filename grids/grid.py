"""The grid: a spec with everything looked up, as labelled coordinates and kernel inputs.

The cube's dimensions are model, dataset, system, strategy, then the numeric axes, pe and batch
first. A grid writes itself down (`definition`) with all models, datasets and systems spelled out,
so that a store is complete: the same grid comes back where the user's files, or this catalogue, are
not. JAX is imported where kernel inputs are made: who asks for names and sizes does without it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Literal, overload

import numpy as np

from grids.entries import strategies
from grids.entries.calibration import CalibrationFile
from grids.entries.datasets import Dataset
from grids.entries.strategies import Strategy
from grids.entries.systems import System
from grids.library import Model, find
from grids.models.layers import Floats, LayerTable
from grids.reading.errors import InputError, ShapeError, shorten
from grids.reading.yamlfile import KeyPath
from grids.spec import Reference, Spec, validated

if TYPE_CHECKING:
    from grids.inputs.case import Workload
    from grids.inputs.groups import Groups
    from grids.inputs.values import Settings
    from kernels.case import Case
    from kernels.run import Options

Where = Callable[[KeyPath], str]
References = tuple[Reference, ...]

LABELS = ("model", "dataset", "system", "strategy")

Index = tuple[int, int, int, int]  # a position along each of the labelled dimensions


def in_spec(keypath: KeyPath) -> str:
    """The place of a key where there is no file."""
    return ".".join(map(str, keypath))


@dataclass(frozen=True)
class Grid:
    """A design space, ready to evaluate. `axes`: the numeric ones, values ascending."""

    spec: Spec
    models: tuple[Model, ...]
    datasets: tuple[Dataset, ...]
    systems: tuple[System, ...]
    strategies: tuple[Strategy, ...]
    calibration: CalibrationFile | None = None

    @classmethod
    def from_spec(cls, spec: Spec, base: Path = Path(), where: Where = in_spec) -> "Grid":
        """Look up what the spec names; files are relative to `base`.

        InputError tells the place of a key, as `where` gives it, that names what is not there.
        """
        models = _looked_up("model", spec.axes.model, base, where)
        systems = _looked_up("system", spec.axes.system, base, where)
        datasets = (
            _brought(models, where)
            if spec.axes.dataset is None
            else _looked_up("dataset", spec.axes.dataset, base, where)
        )
        chosen = tuple(strategies.parse(each) for each in spec.axes.strategy)
        calibration = _calibration(spec.calibration, base, where)
        found = cls(spec, models, datasets, systems, chosen, calibration)
        for dim, labels in found.labels.items():
            _once(labels, where(("axes", dim)))
        return found

    @classmethod
    def from_definition(cls, definition: dict[str, object]) -> "Grid":
        """The grid that wrote `definition`. InputError: it refers to what is not inside."""
        spec = validated(definition, "the store's spec")
        _check_self_contained(spec)
        return cls.from_spec(spec)

    def definition(self) -> dict[str, object]:
        """The spec as plain data, complete: nothing in it refers to a file or a catalogue."""
        plain = self.spec.model_dump(mode="json", exclude_unset=True)
        plain["axes"] |= {
            "model": [each.definition() for each in self.models],
            "dataset": [each.definition() for each in self.datasets],
            "system": [each.definition() for each in self.systems],
            "strategy": [each.label for each in self.strategies],
        }
        if self.calibration is not None:
            plain["calibration"] = self.calibration.definition()
        return plain

    def reduced(self) -> "Grid":
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
        """What is odd about model files, by line."""
        return [text for each in self.models for text in each.warnings]

    @cached_property
    def axes(self) -> dict[str, Floats]:
        """Values along the numeric dimensions, in SI units."""
        return {name: np.array(axis.values) for name, axis in self.spec.axes.numeric.items()}

    @property
    def dims(self) -> tuple[str, ...]:
        """Names of the cube's dimensions."""
        return (*LABELS, *self.axes)

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the cube's dimensions."""
        return tuple(map(len, (*self.labels.values(), *self.axes.values())))

    @cached_property
    def options(self) -> "Options":
        """The formulas that the spec chose."""
        from kernels.run import Options

        spec = self.spec
        return Options(spec.collectives, spec.allreduce, spec.iterations, spec.optimizer)

    @cached_property
    def _settings(self) -> "Settings":
        from grids.inputs.values import Settings

        return Settings(self.spec.parameters, self.spec.scaling, self.options)

    @cached_property
    def _tables(self) -> dict[tuple[int, int], LayerTable | ShapeError]:
        return {}

    def _table(self, model: int, dataset: int) -> LayerTable | ShapeError:
        key = (model, dataset)
        if key not in self._tables:
            try:
                self._tables[key] = self.models[model].table(self.datasets[dataset])
            except ShapeError as error:
                self._tables[key] = error
        return self._tables[key]

    def table(self, model: int, dataset: int) -> LayerTable | None:
        """The layer table of a pair, None where the samples do not fit the model."""
        found = self._table(model, dataset)
        return found if isinstance(found, LayerTable) else None

    @cached_property
    def fitting(self) -> dict[tuple[int, int], LayerTable]:
        """The layer tables of all (model, dataset) pairs that fit."""
        pairs = product(range(len(self.models)), range(len(self.datasets)))
        return {pair: table for pair in pairs if (table := self.table(*pair)) is not None}

    def misfit(self, model: int, dataset: int) -> str | None:
        """Why the samples do not fit the model, None where they do."""
        found = self._table(model, dataset)
        return str(found) if isinstance(found, ShapeError) else None

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

        workload = self.workload(*index[:3])
        if workload is None:
            return None
        chosen = strategy or self.strategies[index[3]]
        return build_case(workload, chosen, axes or self.axes, self._settings)

    def groups(
        self,
        index: Index,
        axes: Mapping[str, Floats] | None = None,
        strategy: Strategy | None = None,
    ) -> "Groups | None":
        """The layers of a case in its groups, before they are reduced; None: it cannot exist."""
        from grids.inputs.case import build_groups

        workload = self.workload(*index[:3])
        if workload is None:
            return None
        chosen = strategy or self.strategies[index[3]]
        return build_groups(workload, chosen, axes or self.axes, self._settings)

    @cached_property
    def _workloads(self) -> "dict[tuple[int, int, int], Workload | None]":
        return {}

    def workload(self, model: int, dataset: int, system: int) -> "Workload | None":
        """A model's layers with their measured times, None where the samples do not fit."""
        key = (model, dataset, system)
        if key not in self._workloads:
            self._workloads[key] = self._workload(*key)
        return self._workloads[key]

    def _workload(self, model: int, dataset: int, system: int) -> "Workload | None":
        from grids.inputs.calibrated import Calibrated
        from grids.inputs.case import Workload

        table = self.table(model, dataset)
        if table is None:
            return None
        machine = self.systems[system]
        chosen, data = self.models[model], self.datasets[dataset]
        known = self.spec.times == "measured"
        seconds = chosen.seconds(data, machine.pe.device) if known else None
        calibrated = None
        if self.calibration is not None:
            measured = seconds is not None
            calibrated = Calibrated(self.calibration, chosen.name, data.name, measured)
        return Workload(table, data.samples, machine, seconds, chosen.mask, calibrated)


@overload
def _looked_up(
    kind: Literal["model"], references: References, base: Path, where: Where
) -> tuple[Model, ...]: ...
@overload
def _looked_up(
    kind: Literal["dataset"], references: References, base: Path, where: Where
) -> tuple[Dataset, ...]: ...
@overload
def _looked_up(
    kind: Literal["system"], references: References, base: Path, where: Where
) -> tuple[System, ...]: ...
def _looked_up(
    kind: Literal["model", "dataset", "system"], references: References, base: Path, where: Where
) -> tuple[Model | Dataset | System, ...]:
    """The entries that an axis names."""
    found = []
    for position, reference in enumerate(references):
        try:
            found.append(find(kind, reference, base))
        except InputError as error:
            raise InputError(str(error), where=where(("axes", kind, position))) from None
    return tuple(found)


def _check_self_contained(spec: Spec) -> None:
    """InputError for a name or a file: who sends a store must not choose what is opened."""
    axes = spec.axes
    references = {"model": axes.model, "dataset": axes.dataset or (), "system": axes.system}
    if spec.calibration != "none":
        references["calibration"] = (spec.calibration,)
    for key, each in references.items():
        for reference in each:
            if isinstance(reference, str) or "file" in reference:
                raise InputError(
                    f"expected a whole definition, as sweeps write it, got {shorten(reference)}",
                    where=f"the store's spec: {key}",
                    advice="do not trust this store",
                )


def _calibration(reference: Reference, base: Path, where: Where) -> CalibrationFile | None:
    if reference == "none":
        return None
    try:
        return find("calibration", reference, base)
    except InputError as error:
        raise InputError(str(error), where=where(("calibration",))) from None


def _brought(models: tuple[Model, ...], where: Where) -> tuple[Dataset, ...]:
    """The datasets that model files bring."""
    for model in models:
        if model.own_dataset is None:
            raise InputError(
                f"no dataset is given, and model {model.name!r} brings none of its own",
                where=where(("axes", "dataset")),
                advice="name one, such as 'dataset: imagenet'",
            )
    own = {each.name: each for model in models if (each := model.own_dataset)}
    return tuple(own.values())


def _once(labels: tuple[str, ...], where: str) -> None:
    twice = next((each for each in labels if labels.count(each) > 1), None)
    if twice is not None:
        raise InputError(f"{twice!r} stands twice", where=where, advice="keep one")
