"""Make design spaces from the options of a command, or of one configuration, without a store.

Options that are left out are searched: groups of hybrids, segments of pipelines, and batches in
powers of two up to the data set, memory and `max_global_batch`. Spatial splits take the least halo.
"""

import reprlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from numbers import Real
from pathlib import Path
from typing import Any

from paradl.grids.axes import expand_axis
from paradl.grids.entries.parameters import PARAMETERS
from paradl.grids.entries.strategies import Strategy, parse_strategy
from paradl.grids.entries.strategy_words import TABLE_III
from paradl.grids.grid import Grid, Index
from paradl.grids.library import look_up
from paradl.grids.outputs import MAIN_OUTPUTS
from paradl.grids.reading.errors import InputError, shorten
from paradl.grids.reading.yamlfile import join_keys
from paradl.grids.shorthands import (
    Shorthands,
    Values,
    expect_system,
    list_labels,
    reads_text,
    split_values,
)
from paradl.grids.spec import validate_spec
from paradl.kernels.names.parallelisms import DATA

# Outputs in addition to those of every cube: how PEs divide.
DEGREES = ("replicas", "group_size", "segment_count")
# Of networks with blocks: each cell takes the fastest layout that fits.
LAYOUTS = "layouts"
# Largest batch of a search: no PE in the catalogue holds a million of even the smallest samples.
MOST_BATCH = 2**20
# The same of layouts, whose micro-batches keep any batch in memory: from 64 on, times an epoch of
# Llama 2 7B on 1,024 H100s fall by less than 0.2 %.
MOST_SEQUENCES = 2**10


@dataclass(frozen=True)
class SpaceValues(Shorthands):
    """A design space as a user states it: values, lists, or texts such as `64,128` and `1..1024`.

    strategy: None for all ten of Table III, or LAYOUTS of networks that all have blocks. pe:
    None for all powers of two up to the largest machine. batch: None to search. parameters: fixed
    if one value is given, else axes. settings: keys of a spec other than its axes.
    """

    model: Values
    pe: Values | None = None
    batch: Values | None = None
    dataset: Values | None = None
    system: Values | None = None
    strategy: Values | None = None
    parameters: Mapping[str, Values] = field(default_factory=dict)
    settings: Mapping[str, object] = field(default_factory=dict)


def make_grid(options: SpaceValues, base: Path = Path()) -> Grid:
    """Make the grid of a design space. InputError: an unknown name, or a bad value."""
    parameters = {
        name: split_values(given, f"parameters: {name}")
        for name, given in options.parameters.items()
    }
    # All layouts, of which a parameter states some degrees or settings.
    every = parse_strategy(LAYOUTS)
    degrees = tuple((name, size) for name, size in every.degrees if name not in parameters)
    layouts = replace(every, degrees=degrees).label
    # Of networks that read text by blocks nothing else is asked, in whatever precision.
    has_layouts = options.settings.get("oracle") != "paper" and reads_text(options.model, base)
    usual = [layouts] if has_layouts else TABLE_III
    labels = usual if options.strategy is None else list_labels(options.strategy)
    fixed = {name: value for name, value in parameters.items() if not has_several(value)}
    swept = {name: values for name, values in parameters.items() if name not in fixed}
    subject, stated = options.write(
        {
            "model": list_labels(options.model),
            "system": options.system,
            "dataset": options.dataset,
            "batch": options.batch,
        },
        base,
    )
    if options.pe is None:  # powers of two up to the largest machine
        labels_of = tuple(list_labels(expect_system(options.system)))
        systems = look_up("system", labels_of, base, join_keys)
        options = replace(options, pe={"pow2": [1, max(one.most_pes for one in systems)]})
    # Batches that are searched begin as 1: their end depends on the data sets.
    axes: dict[str, object] = {
        **subject,
        "strategy": [
            _open_choices(parse_strategy(label, "strategy"), parameters) for label in labels
        ],
        "pe": split_values(options.pe, "pe"),
        "batch": split_values(subject.get("batch", 1), "batch"),
        **swept,
    }
    written = {
        "axes": axes,
        "parameters": fixed,
        "outputs": [*MAIN_OUTPUTS, *DEGREES],
        **stated,
        **options.settings,
    }
    grid = Grid.from_spec(validate_spec(written, ""), base)
    # By now networks are looked up: for those with blocks, layouts take the place of strategies.
    blocks = [grid.transformers[model] for model, _ in grid.fitting]
    if blocks and None not in blocks:
        opened = [layouts]
        if options.strategy is not None:
            # `data` alone is a layout, too, whose micro-batches are searched.
            opened = [
                _open_choices(one, parameters, has_blocks=one.base == DATA or one.in_layout_words)
                for one in grid.strategies
            ]
        if axes["strategy"] != opened:
            axes["strategy"] = opened
            grid = Grid.from_spec(validate_spec(written, ""), base)
    return grid if "batch" in subject else _search_batches(grid)


def _open_choices(
    strategy: Strategy, parameters: Mapping[str, object], has_blocks: bool = False
) -> str:
    """Label of a strategy whose group, degrees and segments are searched unless given."""
    cut = ("micro",) if has_blocks or strategy.needs_blocks else ()
    missing = [name for name in (*strategy.parts, *cut) if name not in parameters]
    # The degree of a hybrid's only parallelism is the size of its groups, too.
    if strategy.hybrid and strategy.group is None and missing and "group" not in parameters:
        strategy = replace(strategy, group="best")
    if cut or strategy.several:
        strategy = replace(strategy, degrees=strategy.complete(dict.fromkeys(missing, "best")))
    is_cut = strategy.cut_by_axis and not (cut or strategy.in_layout_words)
    if is_cut and strategy.segments is None and "segments" not in parameters:
        strategy = replace(strategy, segments="best")
    return strategy.label


def _search_batches(grid: Grid) -> Grid:
    """Add batches in powers of two up to one epoch per iteration, and that largest batch."""
    samples = max(dataset.samples for dataset in grid.datasets)
    stated = grid.spec.parameters.get("max_global_batch")
    largest = MOST_BATCH if None in grid.blocks else MOST_SEQUENCES
    most = max(1, min(samples, largest) if stated is None else int(min(stated, samples)))
    grid = _change(grid, "batch", [{"pow2": [1, most]}, most])
    if "max_global_batch" in (*grid.spec.parameters, *grid.spec.axes.swept):
        return grid
    # Otherwise a global batch of more than an epoch would only be marked, not forbidden.
    return bound_batches(grid, samples)


def is_unbounded(options: SpaceValues) -> bool:
    """True if only memory and the data set limit the searched batches."""
    is_searched = options.batch is None and options.global_batch is None
    return is_searched and "max_global_batch" not in options.parameters


def _change(grid: Grid, name: str, form: object) -> Grid:
    axes = grid.spec.axes.model_copy(update={name: expand_axis(form, PARAMETERS[name])})
    return replace(grid, spec=grid.spec.model_copy(update={"axes": axes}))


def make_product(
    axes: Mapping[str, object],
    parameters: Mapping[str, object],
    settings: Mapping[str, object],
    base: Path = Path(),
) -> Grid:
    """Make the grid of all combinations of the axes' values.

    parameters: a single value is fixed, several make an axis. settings: other keys of a spec.
    """
    swept = {name: values for name, values in parameters.items() if has_several(values)}
    fixed = {name: value for name, value in parameters.items() if name not in swept}
    plain: dict[str, object] = {
        "axes": {name: _list_values(values) for name, values in {**axes, **swept}.items()},
        "parameters": fixed,
        **settings,
    }
    return Grid.from_spec(validate_spec(plain, ""), base)


def _list_values(value: Any) -> Any:
    """Convert values to the plain lists, numbers and mappings of a spec."""
    # A mapping is a generator such as {pow2: [1, 64]}, which the spec expands.
    if isinstance(value, Mapping) or not has_several(value):
        return value
    return value.tolist() if hasattr(value, "tolist") else list(value)


def has_several(value: object) -> bool:
    """True for several values: a list, a range, an array, or a generator of a spec."""
    return hasattr(value, "__iter__") and not isinstance(value, str | bytes)


# Words whose values are those of an axis of labels.
SEVERAL = {"sequence": "dataset", "precision": "system"}
ONLY: Index = (0, 0, 0, 0)  # the labels' positions in a design space of one configuration


@dataclass(frozen=True)
class Configuration(Shorthands):
    """One configuration as a user states it. settings: keys of a spec other than its axes."""

    model: str | dict[str, object]
    strategy: str
    pe: int
    batch: int | None = None
    system: str | None = None
    dataset: str | None = None
    parameters: Mapping[str, object] | None = None
    settings: Mapping[str, object] | None = None

    def grid(self, base: Path = Path()) -> Grid:
        """Design space of this configuration. InputError: several values, or none."""
        parameters = expect_mapping(self.parameters, "parameters")
        settings = expect_mapping(self.settings, "settings")
        named = {"model": self.model, "system": self.system, "dataset": self.dataset}
        axes, stated = self.write({**named, "batch": self.batch}, base)
        if "batch" not in axes:
            advice = "such as 32 for each replica, or a global_batch of 1024"
            raise InputError("no batch is given", where="batch", advice=advice)
        batch = "batch" if self.global_batch is None else "global_batch"
        several = {
            name if has_several(getattr(self, name)) else of: axes[of]
            for name, of in SEVERAL.items()
            if len(axes.get(of, ())) > 1
        }
        single = {"pe": self.pe, batch: split_values(axes["batch"]), **parameters, **several}
        for name, value in single.items():
            if isinstance(value, list | tuple | dict):
                what, advice = (
                    f"expected one value, got {reprlib.repr(value)}",
                    "sweep over several",
                )
                raise InputError(what, where=name, advice=advice)
        # Settings are merged into the spec, and would replace these keys without a word.
        for name in ("axes", "parameters"):
            if name in settings:
                raise InputError(
                    f"{name!r} is not a setting", where="settings", advice="use its own argument"
                )
        axes |= {"model": [self.model], "strategy": [self.strategy], "pe": self.pe}
        return make_product(axes, parameters, {**stated, **settings}, base)


def expect_mapping(given: Mapping[str, object] | None, where: str) -> Mapping[str, object]:
    """The mapping, empty for None. InputError: anything else."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise InputError(f"expected names and values, got {shorten(given)}", where=where)
    return given


def expect_global_batch(most: object) -> None:
    """InputError: the largest global batch is no number from 1."""
    if not isinstance(most, Real) or float(most) < 1:
        raise InputError(f"expected at least 1, got {shorten(most)}", where="max_global_batch")


def bound_batches(grid: Grid, most: float) -> Grid:
    """The design space with larger global batches forbidden. InputError: no number from 1."""
    expect_global_batch(most)
    parameters = {**grid.spec.parameters, "max_global_batch": float(most)}
    return replace(grid, spec=grid.spec.model_copy(update={"parameters": parameters}))
