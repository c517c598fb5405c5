"""The oracle: time, memory and limits of every cell, in two compiled stages.

`reduce_layers` (formulas.py) sums the layers once, to arrays that vary only with what a layer
depends on; `evaluate` is closed-form and runs over all cells. Both are differentiable in every
continuous parameter.
"""

from dataclasses import replace
from functools import partial
from typing import TypeVar

import jax

from paradl.kernels.arrays import LIMITS, AnyArray, Cells, Flags, Limits, pytree, xp
from paradl.kernels.compiled import compiled, fetch
from paradl.kernels.configuration.answers import Answer
from paradl.kernels.configuration.case import Case
from paradl.kernels.configuration.run import Times, extend_to_epoch
from paradl.kernels.names.flags import FORBIDS
from paradl.kernels.oracle.formulas import (
    find_existing,
    find_fixed_paths,
    find_flags,
    find_memory,
    list_segments,
    mark_segmented,
    time_iteration,
)
from paradl.kernels.oracle.iteration import Paths
from paradl.kernels.oracle.limits import InvariantFlags, limits
from paradl.kernels.oracle.uncertainty import spread

Tree = TypeVar("Tree")
# Times with a smaller ratio count as equal, since such differences are rounding.
SAME = 1 + 1e-9


@pytree
class Invariants:
    """Part of stage two that has few dimensions and is computed once, before the cells.

    exists: whether a configuration can exist. paths: costs of the machine oracle's exchanges.
    """

    exists: Flags
    flags: InvariantFlags
    paths: Paths | None


def find_invariants(case: Case) -> Invariants:
    """Compute the invariants of a case."""
    return Invariants(find_existing(case), find_flags(case), find_fixed_paths(case))


def evaluate(
    case: Case, invariants: Invariants | None = None, memory: Cells | None = None
) -> Answer:
    """Compute the answer of every cell, for the best of its choices: stage two.

    NaN where the configuration cannot exist. invariants, memory: if already computed.
    """
    memory = find_memory(case) if memory is None else memory
    answer = _evaluate_all(case, invariants or find_invariants(case), memory)
    for _ in case.choices:
        answer = choose_answer(answer)
    return answer


def choose_answer(choices: Answer) -> Answer:
    """Choose the best answer of each cell along the leading dimension."""
    pick = _pick_choice(choices)
    chosen: Answer = jax.tree.map(lambda leaf: _take_choice(leaf, pick, pick.ndim + 1), choices)
    return chosen


def answer_case(case: Case, memory: Cells | None = None) -> Answer:
    """Compute the answer, as numpy arrays. memory: if already computed."""
    return fetch(_evaluate(case, memory=memory))


@compiled(numpy=True)
def find_limits(case: Case) -> Limits:
    """Return the flags of every cell, even of configurations that cannot exist."""
    return find_fit(case)[0]


@compiled(numpy=True)
def find_fit(case: Case) -> tuple[Limits, Cells]:
    """Return the flags of every cell and the memory that it needs [B], by choice."""
    memory, segmented = find_memory(case), mark_segmented(case)
    flagged = limits(segmented, find_flags(case), case.run, memory, case.pe.memory_capacity)
    return flagged, memory


def settle_choices(case: Case) -> Case:
    """Replace each cell's choices by the best one."""
    return fetch(_settle_choices(case)) if case.choices else case


_evaluate = compiled(numpy=True)(evaluate)


@compiled(numpy=True)
def _settle_choices(case: Case) -> Case:
    # Uncertainty does not affect the choice.
    return replace(take_best(replace(case, uncertainty=None), case), choices=())


def take_best(case: Case, tree: Tree) -> Tree:
    """Take arrays [..., choices, cells] at the best choice of each cell."""
    answer = _evaluate_all(case, find_invariants(case), find_memory(case))
    rank = xp.ndim(case.run.p)
    for done in range(len(case.choices)):
        pick = _pick_choice(answer)
        answer = choose_answer(answer)
        tree = jax.tree.map(partial(_take_choice, pick=pick, rank=rank - done), tree)
    return tree


def _evaluate_all(case: Case, invariants: Invariants, memory: Cells) -> Answer:
    """Compute the answers of all choices."""
    run, exists, training = case.run, invariants.exists, case.training
    segmented = mark_segmented(case)
    needed = xp.where(exists, memory, xp.nan)
    timed = time_iteration(case, invariants.paths)
    now: Times = jax.tree.map(lambda time: xp.where(exists, time, xp.nan), timed)
    times = extend_to_epoch(now, run, case.options)
    unsure = None if case.uncertainty is None else spread(case, now)
    epochs_spread = training.spread_epochs(run.global_batch) if training else None
    return Answer(
        terms=times.terms,
        compute=times.compute,
        communication=times.communication,
        memory=needed,
        limit=limits(segmented, invariants.flags, run, needed, case.pe.memory_capacity),
        replicas=run.replicas,
        group=run.group,
        segments=list_segments(case),
        batch=run.batch,
        global_batch=run.global_batch,
        iterations=run.iterations(case.options.iterations),
        spread=unsure,
        epochs=training.count_epochs(run.global_batch) if training else None,
        epochs_spread=epochs_spread,
        # Time per epoch and epochs are independent.
        train_spread=None
        if unsure is None or epochs_spread is None
        else xp.hypot(unsure.total, epochs_spread),
    )


def _pick_choice(choices: Answer) -> AnyArray:
    """Return the index of each cell's fastest feasible choice, or of any existing one if none is.

    With a law of epochs the fastest has the least time to the target.
    """
    time = choices.objective
    # `argmin` treats NaN as the least, so configurations that do not exist become infinitely slow.
    # The flags may vary along more dimensions than the time.
    time, _ = xp.broadcast_arrays(xp.where(xp.isnan(time), xp.inf, time), choices.limit)
    forbidden = (choices.limit & LIMITS(FORBIDS)) > 0
    allowed = xp.where(forbidden, xp.inf, time)
    return xp.where(xp.isinf(allowed).all(axis=0), _find_least(time), _find_least(allowed))


def _find_least(times: Cells) -> AnyArray:
    """Return the first choice as fast as the fastest: the smallest group, the fewest segments."""
    # All choices that wait for hosts take equally long, apart from rounding, which must not decide.
    return (times <= SAME * xp.min(times, axis=0)).argmax(axis=0)


def _take_choice(leaf: AnyArray | float, pick: AnyArray, rank: int) -> AnyArray:
    """Take a leaf [..., choice, cells] at each cell's choice: [..., cells].

    rank: number of dimensions of choice and cells; constants have fewer.
    """
    values = xp.asarray(leaf)
    axis = values.ndim - rank
    if axis < 0:
        return values
    if values.shape[axis] == 1:  # the same for all choices
        return xp.squeeze(values, axis)
    index = xp.expand_dims(pick, tuple(range(axis + 1)))
    leading, cells = values.shape[: axis + 1], values.shape[axis + 1 :]
    spread_out = xp.broadcast_to(values, leading + xp.broadcast_shapes(cells, pick.shape))
    return xp.take_along_axis(spread_out, index, axis=axis).squeeze(axis)
