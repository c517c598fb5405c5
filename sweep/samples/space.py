"""Space: what rows are drawn over, of a spec with ranges, or of a cube.

A grid of listed values stands for what is discrete; of a range it has one value, which each row
replaces by its own.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from pathlib import Path

import numpy as np

from grids.axes import Axis
from grids.entries.parameters import PARAMETERS
from grids.grid import Grid
from grids.lookup import Where, join_keys
from grids.models.layers import Floats
from grids.outputs import ELASTICITIES, INTERVALS, MAIN_OUTPUTS, TRAINING
from grids.ranges import Law, Range
from grids.reading.errors import InputError, shorten, suggest_name
from grids.spec import Spec, read_spec, validate_spec
from kernels.blocks.labels import EPOCH, TARGETS
from kernels.configuration.places import PLACES
from sweep.cube.store import open_cube

Source = str | Path | Mapping[str, object]
Problem = tuple[int, int, int]

# Outputs of sweeps that rows always have, some by other names.
SAMPLED = (*MAIN_OUTPUTS, "replicas", "group_size", "segment_count")


@dataclass(frozen=True, eq=False)
class Space:
    """grid: the design space with one value in the place of each range. inputs: continuous
    parameters in which there are slopes, those of ranges first, then the batch. notes: outputs of a
    store that rows do not have, and why.
    """

    grid: Grid
    ranges: Mapping[str, Range]
    inputs: tuple[str, ...]
    notes: tuple[str, ...] = ()

    @cached_property
    def outputs(self) -> tuple[str, ...]:
        """Outputs that rows have on request: percentiles; with a law of epochs, what follows."""
        percentiles = (name for name in self.grid.spec.outputs if name in INTERVALS)
        return (*(TRAINING if self.grid.convergences else ()), *percentiles)

    @cached_property
    def problems(self) -> tuple[Problem, ...]:
        """Positions of (model, dataset, system) whose samples fit their model."""
        pairs = product(self.grid.fitting, range(len(self.grid.systems)))
        return tuple((*pair, system) for pair, system in pairs)

    @cached_property
    def layered(self) -> bool:
        """Whether layers are reduced anew for each row, as one of the inputs says."""
        return any(PLACES[name].layered for name in self.inputs)

    @cached_property
    def shares_machines(self) -> bool:
        """Whether rows have PEs in common: which layers make a pipeline's stage follows from their
        speed, and is found ahead.
        """
        return self.layered and any(strategy.cut_by_axis for strategy in self.grid.strategies)

    @cached_property
    def drawn(self) -> dict[str, Range | Floats]:
        """The parameters that vary by row: ranges, and listed values of parameters with a place.

        Every other axis is a dimension of the tables.
        """
        listed = {
            name: values
            for name, values in self.grid.axes.items()
            if name in PLACES and (self.layered or not PLACES[name].layered)
        }
        return {name: self.ranges.get(name, listed[name]) for name in listed}

    @cached_property
    def tabled(self) -> dict[str, Floats]:
        """The axes of the tables, and one value of what rows have their own of."""
        # The largest batch bounds the segments that a strategy may choose.
        return {
            name: values[-1:] if name in self.drawn else values
            for name, values in self.grid.axes.items()
        }

    def describe(self) -> dict[str, object]:
        """The spec as plain data, complete, with its ranges as they were written."""
        definition = self.grid.definition()
        axes = definition["axes"]
        assert isinstance(axes, dict)
        axes |= {name: drawn.form for name, drawn in self.ranges.items()}
        return definition


def read_space(source: Source, inputs: tuple[str, ...] = ()) -> Space:
    """The space of a spec file, a mapping, or a cube; slopes in its ranges, the batch and `inputs`.

    Of a cube, listed values of continuous parameters become ranges, and outputs that rows do not
    have become notes. InputError: a bad spec, no continuous axis, an unknown input, outputs that
    rows do not have.
    """
    if isinstance(source, Mapping):
        written = validate_spec(dict(source), "spec")
        _expect_sampled(written, inputs, join_keys)
        return _make_space(written, inputs, "spec")
    if not isinstance(source, str | Path):
        raise InputError(f"expected a YAML file or a cube, got {shorten(source)}", where="spec")
    if _is_spec(source):
        spec, document = read_spec(Path(source))
        _expect_sampled(spec, inputs, document.where)
        return _make_space(spec, inputs, str(source), Path(source).parent, document.where)
    spec = open_cube(str(source)).grid.spec
    space = _make_space(_open_ranges(spec), inputs, str(source))
    return replace(space, notes=tuple(_list_missing(space.grid.spec, space.inputs).values()))


def _is_spec(source: str | Path) -> bool:
    """Whether a path names a file; what ends otherwise may be a cube's folder, or its URL."""
    return str(source).endswith((".yaml", ".yml")) or Path(source).is_file()


def _make_space(
    spec: Spec, inputs: tuple[str, ...], name: str, base: Path = Path(), where: Where = join_keys
) -> Space:
    ranges = spec.axes.ranges
    for axis in ranges:
        _expect_place(axis, where(("axes", axis)))
    if not ranges:
        raise InputError(
            "no axis is continuous: rows would be cells of a grid, many of them twice",
            where=name,
            advice="write an axis such as 'inter_bandwidth: {loguniform: [1e9, 1e11]}', or sweep",
        )
    settled = {axis: Axis(drawn.form, _settle(drawn)) for axis, drawn in ranges.items()}
    axes = spec.axes.model_copy(update=settled)
    grid = Grid.from_spec(spec.model_copy(update={"axes": axes}), base, where)
    if not grid.fitting:
        raise InputError("no samples of its data sets fit its models", where=name)
    for parameter in inputs:
        _expect_input(parameter, spec)
    # In their own order, each once: the batch is an input in any case.
    return Space(grid, ranges, tuple(dict.fromkeys((*ranges, "batch", *inputs))))


def _expect_sampled(spec: Spec, inputs: tuple[str, ...], where: Where) -> None:
    """InputError: the spec asks for what rows do not have, such as terms."""
    if "outputs" not in spec.model_fields_set:
        return
    for missing in _list_missing(spec, (*spec.axes.ranges, "batch", *inputs)).values():
        raise InputError(missing, where=where(("outputs",)), advice="leave it out, or sweep")


def _list_missing(spec: Spec, inputs: tuple[str, ...]) -> dict[str, str]:
    """Outputs of a spec that rows do not have, and why not, by name."""
    missing = {}
    for name in spec.outputs:
        if name in ELASTICITIES:
            target, parameter = ELASTICITIES[name]
            if target not in (EPOCH, *TARGETS):
                missing[name] = f"rows have no slopes of {target}"
            elif parameter not in inputs:
                missing[name] = f"rows have no slopes in {parameter}; ask for its gradient"
        elif name not in (*SAMPLED, *INTERVALS, *TRAINING):
            missing[name] = f"rows have no {name}: they have times in all, memory and limits"
    return missing


def _settle(drawn: Range) -> Floats:
    """One value in the place of a range; its largest, which bounds what is chosen by it."""
    return np.array([drawn.high])


def _expect_place(name: str, where: str) -> None:
    """InputError: rows cannot have values of their own of it."""
    if name not in PLACES:
        raise InputError(
            f"{name!r} is not drawn from a range: it is part of how layers are laid out or counted",
            where=where,
            advice="list its values",
        )


def _expect_input(name: str, spec: Spec) -> None:
    """InputError: no continuous parameter of the spec's oracle."""
    known = [place for place in PLACES if PARAMETERS[place].oracle in (None, spec.oracle)]
    if name not in known:
        raise InputError(
            f"unknown input {shorten(name)}", where="gradient", advice=suggest_name(name, known)
        )


def _open_ranges(spec: Spec) -> Spec:
    """The spec with a range, from first to last, for each list of a continuous parameter."""
    opened = {
        name: _open_range(name, axis.values)
        for name, axis in spec.axes.numeric.items()
        if name in PLACES and not PARAMETERS[name].whole and axis.values.size > 1
    }
    return spec.model_copy(update={"axes": spec.axes.model_copy(update=opened)})


def _open_range(name: str, values: Floats) -> Range:
    low, high = float(values[0]), float(values[-1])
    law: Law = "loguniform" if low > 0 else "uniform"
    write = PARAMETERS[name].write
    return Range(law, low, high, form={law: [write(low), write(high)]})
