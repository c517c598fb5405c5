"""Cases of layouts: all cells of a transformer's strategy, answered in numpy at once; and slopes.

Settings that a strategy leaves open (`best`) are chosen for each cell: the fastest of all allowed
candidates, as `kernels.oracle.answer` chooses groups.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import prod
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from paradl.grids.convergence.entry import Convergence
from paradl.grids.entries.strategies import Strategy
from paradl.grids.entries.transformer_rates import RIVAL_SPREAD, find_recipe
from paradl.grids.inputs import values as cells
from paradl.grids.inputs.layout_machine import find_reserved, read_fabric
from paradl.grids.inputs.layout_space import MACHINE, LayoutSpace, Numbers, cut, read_layouts
from paradl.grids.inputs.layout_uncertainty import find_spreads
from paradl.grids.inputs.runs import build_training, find_largest_batch
from paradl.grids.inputs.workload import Workload
from paradl.kernels.arrays import LIMITS, use_numpy
from paradl.kernels.batches import iterations
from paradl.kernels.configuration.answers import (
    Answer,
    LayoutCase,
    LayoutErrors,
    LayoutTerms,
    Spread,
)
from paradl.kernels.configuration.run import Run
from paradl.kernels.derivatives.differences import STEPS, find_elasticity, round_elasticity
from paradl.kernels.layouts.answers import MOST, LayoutAnswers, add_seconds, answer_layouts
from paradl.kernels.layouts.stacks import find_unsupported
from paradl.kernels.layouts.transformer import COLUMNS, Layouts
from paradl.kernels.names.arrays import Floats
from paradl.kernels.names.flags import FORBIDS, Limit
from paradl.kernels.names.stored import name_elasticity

Step = tuple[str, float]  # a parameter of MACHINE, and a factor on it


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
    candidates = lay_out(workload, strategy, axes, settings).count_candidates()
    # Each parameter with slopes takes the chosen layouts again at its steps.
    moved = 1 + len(STEPS) * len(settings.slopes) if settings.slopes else 0
    return candidates + moved * prod(values.size for values in axes.values())


def build_layout_case(
    space: LayoutSpace, law: Convergence | None, *, nearest: bool = False
) -> LayoutCase:
    """Build the case of all cells; where settings are open, with the fastest allowed layouts.

    nearest: with those that least forbids instead, and of these with those of the least memory.
    """
    # In parts: 4.5 million candidates at once took 2.1 instead of 0.3 GB, and 15.4 instead of 8.0 s
    # of CPU (2026-11).
    parts = [
        _choose(space, _answer(space, *part), nearest=nearest)
        for part in space.list_candidates(MOST)
    ]
    # Candidates of one cell may be in several parts.
    chosen = parts[0] if len(parts) == 1 else _choose(space, _join_parts(parts), nearest=nearest)
    return _make_case(space, chosen, law)


class Answered(NamedTuple):
    """Layouts with their cells and answers [layouts]; seconds: of an iteration, [terms, layouts].

    epochs: iterations of an epoch.
    """

    layouts: Layouts
    cell: Numbers
    exists: NDArray[np.bool_]
    seconds: Floats
    memory: Floats
    limit: Numbers
    epochs: Floats


def answer_at(
    space: LayoutSpace,
    layouts: Layouts,
    cell: Numbers,
    factors: Mapping[str, Floats] = MappingProxyType({}),
    draw: Numbers | None = None,
) -> LayoutAnswers:
    """Answer layouts at their cells: axes of parameters make several machines.

    factors: on parameters of MACHINE, by name [draw]; draw: the draw of each layout [layouts].
    """
    given = {name: space.flatten(name)[cell] for name in MACHINE if name in space.values}
    table = np.stack([*given.values(), np.zeros(cell.size) if draw is None else draw])
    distinct, machine = np.unique(table, axis=1, return_inverse=True)
    if distinct.shape[1] > 1:
        layouts = replace(layouts, machine=machine.reshape(-1))
    else:  # scalars: all have one machine
        distinct = distinct.sum(axis=1)
    *columns, drawn = distinct
    machines = cells.RowValues(
        dict(zip(given, columns, strict=True)),
        {name: values[drawn.astype(int)] for name, values in factors.items()},
    )
    # What is reserved may differ between cells, so it is added at the end.
    training = space.describe_training(reserved=0.0)
    rates, fabric = space.read_rates(machines), read_fabric(space.machine, machines)
    answers = answer_layouts(space.net, layouts, training, rates, fabric)
    reserved = space.flatten("reserved", find_reserved(space.machine))[cell]
    return answers._replace(memory=answers.memory + reserved)


def _flag(
    space: LayoutSpace,
    answers: LayoutAnswers,
    layouts: Layouts,
    cell: Numbers,
    exists: NDArray[np.bool_],
) -> Numbers:
    """Return all flags [layouts]; none but its own where degrees do not divide the PEs."""
    capacity = space.flatten("memory_capacity", space.system.pe.memory_capacity)[cell]
    assert layouts.batch is not None
    flags = (
        (answers.memory > capacity, Limit.MEMORY),
        (space.flatten("pe")[cell] > space.system.most_pes, Limit.MACHINE_TOO_SMALL),
        (space.flatten("pe")[cell] > layouts.pes, Limit.TOO_MANY_PES),
        (layouts.batch > space.samples, Limit.BATCH_EXCEEDS_DATASET),
    )
    limit = answers.limit + sum(mask * int(flag) for mask, flag in flags)
    return np.where(exists, limit, int(Limit.GROUP_DOES_NOT_DIVIDE))


def _answer(
    space: LayoutSpace, layouts: Layouts, cell: Numbers, exists: NDArray[np.bool_]
) -> Answered:
    answers = answer_at(space, layouts, cell)
    rounding = space.settings.options.iterations
    assert layouts.batch is not None
    epochs = np.maximum(iterations(np.asarray(float(space.samples)), layouts.batch, rounding), 1.0)
    return Answered(
        layouts=layouts,
        cell=cell,
        exists=exists,
        seconds=np.where(exists, answers.seconds, np.nan),
        memory=answers.memory,
        limit=_flag(space, answers, layouts, cell, exists),
        epochs=epochs,
    )


def _choose(space: LayoutSpace, found: Answered, *, nearest: bool) -> Answered:
    """Return the best layout of each cell, if settings are open: one that the software runs."""
    if not space.open:
        return found
    stack, training = space.system.software_facts.layouts.stack, space.describe_training()
    lacking = find_unsupported(stack, space.net, found.layouts, training, space.fixed)
    forbidden = np.bitwise_count(found.limit & int(FORBIDS))
    if nearest:
        best = _pick(found.cell, found.memory, 2 * forbidden + lacking)
    else:
        seconds = found.seconds.sum(axis=0) * found.epochs
        best = _pick(found.cell, seconds, 2 * (forbidden > 0) + lacking)
    return Answered(
        layouts=found.layouts.select(best),
        cell=found.cell[best],
        exists=found.exists[best],
        seconds=found.seconds[:, best],
        memory=found.memory[best],
        limit=found.limit[best],
        epochs=found.epochs[best],
    )


def _join_parts(parts: Sequence[Answered]) -> Answered:
    layouts, *arrays = zip(*parts, strict=True)
    rows = np.concatenate([some.to_rows() for some in layouts])
    batch, flushes = (
        np.concatenate([getattr(some, name) for some in layouts]) for name in ("batch", "flushes")
    )
    joined = replace(Layouts.from_rows(rows), batch=batch, flushes=flushes)
    return Answered(joined, *(np.concatenate(some, axis=-1) for some in arrays))


def _make_case(space: LayoutSpace, chosen: Answered, law: Convergence | None) -> LayoutCase:
    """Build the case from one layout per cell, in the order of the cells."""
    layouts, epochs = chosen.layouts, chosen.epochs
    seconds, memory = chosen.seconds * epochs, np.where(chosen.exists, chosen.memory, np.nan)
    values, rank = space.values, space.values.rank
    columns = {name: getattr(layouts, name).reshape(space.shape) for name in COLUMNS}
    passes = space.describe_training().count_micro_batches(layouts)
    run = Run(
        p=values.get("pe"),
        replicas=columns["data"].astype(float),
        degrees={name: columns[name].astype(float) for name in space.strategy.parts},
        spec_batch=values.get("batch"),
        samples=np.asarray(float(space.samples)),
        segments=np.reshape(passes, space.shape).astype(float),
        delta=np.ones((1,) * rank),
        gamma=np.ones((1,) * rank),
        phi=np.ones((1,) * rank),
        gradient_delta=np.ones((1,) * rank),
        accumulate=values.get("accumulate"),
        largest_batch=find_largest_batch(law, values),
        scaling=space.settings.scaling,
    )
    flags = chosen.limit.reshape(space.shape)
    if run.largest_batch is not None:
        flags = flags | np.where(run.global_batch > run.largest_batch, int(Limit.NO_CONVERGENCE), 0)
    training = build_training(law, values)
    with use_numpy():
        reached = training.count_epochs(run.global_batch) if training else None
        apart = training.spread_epochs(run.global_batch) if training else None
    spread = _find_spread(space, layouts) if space.settings.draws else None
    group = layouts.tensor * layouts.context * layouts.pipeline
    compute, communication = add_seconds(seconds)
    answer = Answer(
        terms=LayoutTerms(*(term.reshape(space.shape) for term in seconds)),
        compute=compute.reshape(space.shape),
        communication=communication.reshape(space.shape),
        memory=memory.reshape(space.shape),
        limit=flags.astype(LIMITS),
        replicas=run.replicas,
        group=group.reshape(space.shape).astype(float),
        segments=run.segments,
        batch=run.batch,
        global_batch=run.global_batch,
        iterations=epochs.reshape(space.shape),
        spread=spread,
        epochs=reached,
        epochs_spread=apart,
        train_spread=None if spread is None or apart is None else np.hypot(spread.total, apart),
    )
    return LayoutCase(
        answer=answer,
        run=run,
        columns=columns,
        uncertainty=LayoutErrors(spread.total, np.asarray(RIVAL_SPREAD)) if spread else None,
        training=training,
    )


def _find_spread(space: LayoutSpace, layouts: Layouts) -> Spread:
    """Return the spread of each cell's times."""
    basis = space.machine, find_recipe(space.system), bool(space.net.experts), space.calibrated
    draw = partial(time_factors, space, layouts, np.arange(len(layouts)))
    spreads = find_spreads(*basis, space.values, draw)
    return Spread(*(np.broadcast_to(one, len(layouts)).reshape(space.shape) for one in spreads))


def _pick(cell: Numbers, values: Floats, forbidden: NDArray[Any]) -> Numbers:
    """Return each cell's candidate that is least forbidden, and of these that of the least value.

    Those without a value are the last.
    """
    order = np.lexsort((np.where(np.isnan(values), np.inf, values), forbidden, cell))
    _, first = np.unique(cell[order], return_index=True)
    return order[first]


def add_slopes(space: LayoutSpace, case: LayoutCase) -> LayoutCase:
    """Return a case with the elasticities of its times and memory, by output [cells].

    NaN where a layout cannot exist, and of a time of 0. Elasticities of the time to the target are
    those of an epoch's: epochs do not depend on the machine.
    """
    layouts = read_layouts(case)
    memory = np.ravel(case.answer.memory)
    names = [name for name in space.settings.slopes if name in MACHINE]
    steps = [(name, step) for step in STEPS for name in names]
    computing, communicating = time_steps(space, layouts, np.arange(memory.size), steps)
    times = {
        "comp_time": computing,
        "comm_time": communicating,
        "epoch_time": computing + communicating,
        "train_time": computing + communicating,
    }
    reserved = space.flatten("reserved", find_reserved(space.machine))
    slopes = {}
    for name in space.settings.slopes:
        of_memory = reserved / memory if name == "reserved" else 0 * memory
        slopes[name_elasticity("memory", name)] = of_memory
        for time, (before, *after) in times.items():
            # Two steps of each parameter; of others, on which times do not depend, none.
            near, far = after[names.index(name) :: len(names)] if name in names else [before] * 2
            defined = np.where(before > 0, before, np.nan)
            slope = find_elasticity(near / defined, far / defined)
            slopes[name_elasticity(time, name)] = slope
    with use_numpy():
        shaped = {
            name: round_elasticity(slope.reshape(space.shape)) for name, slope in slopes.items()
        }
    return replace(case, slopes=shaped)


def time_steps(
    space: LayoutSpace, layouts: Layouts, cell: Numbers, steps: Sequence[Step]
) -> tuple[Floats, Floats]:
    """Return seconds computing and communicating, before and after each step [step, layouts]."""
    factors = {name: np.ones(len(steps) + 1) for name, _ in steps}
    for at, (name, factor) in enumerate(steps, 1):
        factors[name][at] = factor
    return time_factors(space, layouts, cell, factors or {MACHINE[0]: np.ones(1)})


def time_factors(
    space: LayoutSpace, layouts: Layouts, cell: Numbers, factors: Mapping[str, Floats]
) -> tuple[Floats, Floats]:
    """Return seconds computing and communicating with each factor on parameters [factor, layouts].

    factors: by parameter [factor], at least one.
    """
    number = len(next(iter(factors.values())))
    parts = [np.empty((2, number, 0))]
    for rows in cut(np.arange(cell.size), max(MOST // number, 1)):
        alike, draw = np.tile(rows, number), np.repeat(np.arange(number), rows.size)
        answers = answer_at(space, layouts.select(alike), cell[alike], factors, draw)
        parts.append(np.reshape(add_seconds(answers.seconds), (2, number, rows.size)))
    computing, communicating = np.concatenate(parts, axis=2)
    return computing, communicating
