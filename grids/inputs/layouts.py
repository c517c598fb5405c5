"""Cases of layouts: the layout of every cell of a strategy of blocks.

Settings that a strategy leaves open (`best`) are chosen for each cell: the fastest of all allowed
candidates, as `kernels.oracle.answer` chooses groups.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from paradl.grids.convergence.entry import Convergence
from paradl.grids.entries.strategies import Strategy
from paradl.grids.entries.transformer_rates import find_recipe
from paradl.grids.inputs import values as cells
from paradl.grids.inputs.layout_space import LayoutSpace, Numbers
from paradl.grids.inputs.layout_uncertainty import build_layout_uncertainty
from paradl.grids.inputs.machine import build_network, build_pe, build_software
from paradl.grids.inputs.runs import build_training, find_largest_batch
from paradl.grids.inputs.workload import Workload
from paradl.kernels.batches import iterations
from paradl.kernels.configuration.case import Case
from paradl.kernels.configuration.run import Run
from paradl.kernels.derivatives.differences import STEPS
from paradl.kernels.machine.device import PE
from paradl.kernels.machine.machines import Machines
from paradl.kernels.names.arrays import Floats
from paradl.kernels.names.flags import FORBIDS, Limit
from paradl.kernels.names.parallelisms import LAYOUT_DEGREES
from paradl.kernels.oracle.blocks import answer_layouts, make_work
from paradl.kernels.search.stacks import find_unsupported
from paradl.kernels.work.group import Bounds
from paradl.kernels.work.layouts import COLUMNS, Layouts

# Layouts per call: 2**16 makes some 60 arrays of 0.5 MB.
MOST = 2**16


def lay_out(
    workload: Workload, strategy: Strategy, axes: Mapping[str, Floats], settings: cells.Settings
) -> LayoutSpace:
    """The cells of a strategy that layouts answer for. InputError: a network without blocks."""
    assert workload.origin
    net, (_, data), machine = workload.transformer, workload.origin, workload.machine.for_layouts
    values = cells.Values(axes, settings, leading=len(strategy.choices))
    return LayoutSpace(net, data, machine, strategy, values, settings, workload.layout_time)


def count_layouts(
    workload: Workload, strategy: Strategy, axes: Mapping[str, Floats], settings: cells.Settings
) -> int:
    """Count the layouts that the case of a strategy is answered from; 0 where none answers it."""
    if not strategy.laid:
        return 0
    space = lay_out(workload, strategy, axes, settings)
    whole = prod(values.size for values in axes.values())
    # Each parameter with slopes takes the chosen layouts again at its steps.
    moved = 1 + len(STEPS) * len(settings.slopes) if settings.slopes else 1
    return (space.count_candidates() if space.open else 0) + moved * whole


def build_layout_case(
    space: LayoutSpace, law: Convergence | None, *, nearest: bool = False
) -> Case:
    """Build the case of all cells; where settings are open, with the fastest allowed layouts.

    nearest: with those that least forbids instead, and of these with those of the least memory.
    """
    machine, values, settings = space.machine, space.values, space.settings
    pe = build_pe(machine, values, "machine")
    software = build_software(machine, values, "machine")
    network = build_network(machine, values, "machine")
    machines = Machines.from_parts(pe, network, software, space.facts, values.rank)
    layouts, exists = _choose_all(space, pe, machines, nearest=nearest)
    columns = {name: np.reshape(getattr(layouts, name), space.shape) for name in COLUMNS}
    # PEs beyond a layout's degrees have no work.
    fits = values.get("pe") <= layouts.pes.reshape(space.shape)
    basis = machine, find_recipe(space.system), space.net.family, space.calibrated, values
    return Case(
        work=make_work(space.net, space.training, space.facts, columns, network),
        bounds=Bounds(fits, np.ones_like(fits), exists.reshape(space.shape)),
        run=_build_run(space, columns, law),
        network=network,
        pe=pe,
        uncertainty=build_layout_uncertainty(*basis, settings.draws) if settings.draws else None,
        training=build_training(law, values),
        software=software,
        options=settings.options,
    )


def _build_run(space: LayoutSpace, columns: Mapping[str, Numbers], law: Convergence | None) -> Run:
    values, one = space.values, np.ones((1,) * space.values.rank)
    return Run(
        p=values.get("pe"),
        replicas=columns["data"].astype(float),
        degrees={name: columns[name].astype(float) for name in LAYOUT_DEGREES},
        spec_batch=values.get("batch"),
        samples=np.asarray(float(space.samples)),
        segments=space.segments,
        delta=one,
        gamma=one,
        phi=one,
        gradient_delta=one,
        accumulate=values.get("accumulate"),
        largest_batch=find_largest_batch(law, values),
        scaling=space.settings.scaling,
    )


class CellLayouts(NamedTuple):
    """Layouts [layouts] with the cell of each, and whether its degrees divide its PEs.

    seconds: of an epoch. memory [B]. limit: flags.
    """

    layouts: Layouts
    cell: Numbers
    exists: NDArray[np.bool_]
    seconds: Floats
    memory: Floats
    limit: Numbers

    def select(self, rows: Numbers) -> "CellLayouts":
        """Select rows."""
        layouts, *arrays = self
        chosen: list[Any] = [array[rows] for array in arrays]
        return CellLayouts(layouts.select(rows), *chosen)


def _choose_all(
    space: LayoutSpace, pe: PE, machines: Machines, *, nearest: bool
) -> tuple[Layouts, NDArray[np.bool_]]:
    """Return the layout of each cell, and whether its degrees divide its PEs."""
    # In parts: 4.5 million candidates at once took 2.1 instead of 0.3 GB, and 15.4 instead of 8.0 s
    # of CPU (2026-11).
    listed = space.list_candidates(MOST)
    if not space.open:  # one layout a cell
        lists, _, exists = zip(*listed, strict=True)
        return Layouts.join(lists), np.concatenate(exists)
    parts = [
        _choose(space, _answer(space, pe, machines, *part), nearest=nearest) for part in listed
    ]
    # Candidates of one cell may be in several parts.
    chosen = parts[0] if len(parts) == 1 else _choose(space, _join(parts), nearest=nearest)
    return chosen.layouts, chosen.exists


def _join(parts: Sequence[CellLayouts]) -> CellLayouts:
    lists, *arrays = zip(*parts, strict=True)
    joined: list[Any] = [np.concatenate(array) for array in arrays]
    return CellLayouts(Layouts.join(lists), *joined)


def _answer(
    space: LayoutSpace,
    pe: PE,
    machines: Machines,
    layouts: Layouts,
    cell: Numbers,
    exists: NDArray[np.bool_],
) -> CellLayouts:
    """Answer layouts at their cells."""
    assert layouts.batch is not None
    batch, settings = layouts.batch, space.settings

    def take(values: Any) -> Any:
        return np.broadcast_to(values, space.shape).ravel()[cell]

    if machines.number > 1:
        layouts = replace(layouts, machine=take(machines.place))
    found = answer_layouts(space.net, layouts, space.training, machines.rates, machines.fabric)
    memory, pes = found.memory + take(pe.reserved), take(space.values.get("pe"))
    flags = (
        (memory > take(pe.memory_capacity), Limit.MEMORY),
        (pes > space.system.most_pes, Limit.MACHINE_TOO_SMALL),
        (pes > layouts.pes, Limit.TOO_MANY_PES),
        (batch > space.samples, Limit.BATCH_EXCEEDS_DATASET),
    )
    limit = found.limit + sum(mask * int(flag) for mask, flag in flags)
    rounding = settings.options.iterations
    epochs = np.maximum(iterations(np.asarray(float(space.samples)), batch, rounding), 1.0)
    return CellLayouts(
        layouts=replace(layouts, machine=None),
        cell=cell,
        exists=exists,
        seconds=np.where(exists, found.seconds.sum(axis=0) * epochs, np.nan),
        memory=memory,
        limit=np.where(exists, limit, int(Limit.GROUP_DOES_NOT_DIVIDE)),
    )


def _choose(space: LayoutSpace, found: CellLayouts, *, nearest: bool) -> CellLayouts:
    """Choose the best layout of each cell: one that the software runs."""
    stack = space.system.software_facts.layouts.stack
    lacking = find_unsupported(stack, space.net, found.layouts, space.training, space.fixed)
    forbidden = np.bitwise_count(found.limit & int(FORBIDS))
    if nearest:
        best = _pick(found.cell, found.memory, 2 * forbidden + lacking)
    else:
        best = _pick(found.cell, found.seconds, 2 * (forbidden > 0) + lacking)
    return found.select(best)


def _pick(cell: Numbers, values: Floats, forbidden: NDArray[Any]) -> Numbers:
    """Return each cell's candidate that is least forbidden, and of these that of the least value.

    Those without a value are the last.
    """
    order = np.lexsort((np.where(np.isnan(values), np.inf, values), forbidden, cell))
    _, first = np.unique(cell[order], return_index=True)
    return order[first]
