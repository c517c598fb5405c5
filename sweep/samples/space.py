"""The design space to draw rows from: a spec with ranges, or a cube.

Its grid has the listed values and one value for each range, which rows replace by their own.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from paradl.grids.axes import Axis, Law, Range
from paradl.grids.entries.parameters import PARAMETERS
from paradl.grids.grid import Grid
from paradl.grids.outputs import ELASTICITIES, INTERVALS, MAIN_OUTPUTS, TRAINING
from paradl.grids.reading.errors import InputError, shorten
from paradl.grids.reading.yamlfile import Where, join_keys
from paradl.grids.spec import Spec, read_spec, validate_spec
from paradl.kernels.configuration.places import PLACES
from paradl.kernels.names.arrays import Floats
from paradl.kernels.names.stored import EPOCH, TARGETS

Source = str | Path | Mapping[str, object]
Problem = tuple[int, int, int]

# Outputs of sweeps that rows always have, some by other names.
SAMPLED = (*MAIN_OUTPUTS, "replicas", "group_size", "segment_count")


@dataclass(frozen=True, eq=False)
class SampleSpace:
    """Design space of samples.

    grid: with one value for each range. inputs: continuous parameters with slopes: none, or ranges,
    then the batch, then others. notes: why rows lack outputs of a store.
    """

    grid: Grid
    ranges: Mapping[str, Range]
    inputs: tuple[str, ...]
    notes: tuple[str, ...] = ()

    @cached_property
    def outputs(self) -> tuple[str, ...]:
        """Requested percentiles; with a convergence law also epochs and time to the target."""
        percentiles = (name for name in self.grid.spec.outputs if name in INTERVALS)
        return (*(TRAINING if self.grid.convergences else ()), *percentiles)

    @cached_property
    def problems(self) -> tuple[Problem, ...]:
        """Positions of (model, dataset, system) whose data set fits the model."""
        systems = range(len(self.grid.systems))
        return tuple((*pair, system) for pair in self.grid.fitting for system in systems)

    @cached_property
    def layered(self) -> bool:
        """True if a range or an input changes the layers' times: each row sums its layers anew."""
        return any(PLACES[name].layered for name in (*self.ranges, *self.inputs))

    @cached_property
    def shares_machines(self) -> bool:
        """True if rows share a few machines: pipeline stages depend on a PE's speed, and cutting
        them for every row would be slow.
        """
        return self.layered and any(strategy.cut_by_axis for strategy in self.grid.strategies)

    @cached_property
    def drawn(self) -> dict[str, Range | Floats]:
        """Continuous parameters, which vary by row: ranges and listed values.

        Every other axis is a dimension of the tables.
        """
        return {
            name: self.ranges.get(name, values)
            for name, values in self.grid.axes.items()
            if name in PLACES and (self.layered or not PLACES[name].layered)
        }

    @cached_property
    def tabled(self) -> dict[str, Floats]:
        """Axes of the tables, and one value for each parameter that varies by row."""
        # The last value: the largest batch bounds the segments that a strategy may choose.
        return {
            name: values[-1:] if name in self.drawn else values
            for name, values in self.grid.axes.items()
        }

    def describe(self) -> dict[str, object]:
        """Return the complete spec as plain data, with ranges as the user wrote them."""
        definition = self.grid.definition()
        axes = definition["axes"]
        assert isinstance(axes, dict)
        axes |= {name: drawn.form for name, drawn in self.ranges.items()}
        return definition


def read_space(source: Source, inputs: Sequence[str] | None = ()) -> SampleSpace:
    """Read the space of a spec file, a mapping or a cube.

    inputs: parameters with slopes besides the ranges and the batch; None: no slopes. Lists of
    continuous parameters in a cube become ranges, and outputs that rows lack become notes.
    InputError: a bad spec, no continuous axis, an unknown input, outputs that rows lack.
    """
    name, base, where = "spec", Path(), join_keys
    if isinstance(source, Mapping):
        spec = validate_spec(dict(source), name)
    elif not isinstance(source, str | Path):
        raise InputError(f"expected a YAML file or a cube, got {shorten(source)}", where=name)
    # Any other path may be a cube's folder or URL.
    elif str(source).endswith((".yaml", ".yml")) or Path(source).is_file():
        spec, document = read_spec(Path(source))
        name, base, where = str(source), Path(source).parent, document.where
    else:
        from paradl.sweep.cube.store import open_cube  # late: zarr takes 0.2 s of CPU to import

        spec = _open_ranges(open_cube(str(source)).grid.spec)
        space = _make_space(spec, inputs, str(source), base, where)
        return replace(space, notes=tuple(_list_missing(spec, inputs)))
    if "outputs" in spec.model_fields_set:
        for missing in _list_missing(spec, inputs):
            raise InputError(missing, where=where(("outputs",)), advice="leave it out, or sweep")
    return _make_space(spec, inputs, name, base, where)


def _make_space(
    spec: Spec, inputs: Sequence[str] | None, name: str, base: Path, where: Where
) -> SampleSpace:
    ranges = spec.axes.ranges
    for axis in (*spec.axes.rows, *(axis for axis in ranges if axis not in PLACES)):
        raise InputError(
            f"{axis!r} cannot be sampled: a range is of one continuous parameter",
            where=where(("axes", axis)),
            advice="list the values of each parameter",
        )
    if not ranges:
        raise InputError(
            "no axis is a range: rows would repeat the cells of a grid",
            where=name,
            advice="add a range such as 'inter_bandwidth: {loguniform: [1e9, 1e11]}', or sweep",
        )
    # Each range becomes its largest value: the largest batch bounds choices of segments.
    largest = {axis: Axis(drawn.form, np.array([drawn.high])) for axis, drawn in ranges.items()}
    axes = spec.axes.model_copy(update=largest)
    grid = Grid.from_spec(spec.model_copy(update={"axes": axes}), base, where)
    for strategy in grid.resolved:
        if strategy.searched:
            raise InputError(
                f"samples do not choose layouts: {shorten(strategy.label)}",
                where=where(("axes", "strategy")),
                advice="state each setting, or sweep and export the cube: 'paradl export'",
            )
    if not grid.fitting:
        raise InputError("none of its data sets fits any of its models", where=name)
    known = [place for place in PLACES if PARAMETERS[place].oracle in (None, spec.oracle)]
    for parameter in inputs or ():
        if parameter not in known:
            raise InputError.unknown("input", parameter, known, where="gradient")
    # The batch always is an input; duplicates are dropped.
    sloped = () if inputs is None else dict.fromkeys((*ranges, "batch", *inputs))
    return SampleSpace(grid, ranges, tuple(sloped))


def _list_missing(spec: Spec, inputs: Sequence[str] | None) -> list[str]:
    """List what rows lack of a spec's outputs, such as terms."""
    sloped = {*spec.axes.ranges, "batch", *(inputs or ())}
    slopes = {
        name
        for name, (target, parameter) in ELASTICITIES.items()
        if target in (EPOCH, *TARGETS) and parameter in sloped
    }
    known = {*SAMPLED, *INTERVALS, *TRAINING, *slopes}
    return [
        f"rows have no {name}, only total times, memory, limits, and slopes in their gradients"
        for name in spec.outputs
        if name not in known
    ]


def _open_ranges(spec: Spec) -> Spec:
    """Replace lists of continuous parameters by ranges from their first to their last value."""
    opened = {}
    for name, axis in spec.axes.numeric.items():
        parameter, values = PARAMETERS[name], axis.values
        if name in PLACES and not parameter.whole and values.size > 1:
            low, high = float(values[0]), float(values[-1])
            law: Law = "loguniform" if low > 0 else "uniform"
            form = {law: [parameter.write(low), parameter.write(high)]}
            opened[name] = Range(law, low, high, form=form)
    return spec.model_copy(update={"axes": spec.axes.model_copy(update=opened)})
