"""Uncertainty: how far the machine oracle's times may be off, as spreads of their logarithms.

Three causes add up: the parameters of the machine and its software, which are drawn, the same draws
for every cell; the time of a model on one PE, drawn with them; and the model's own error, which
grows for runs unlike those that were fitted. Draws and no derivatives: these vanish where
communication is hidden, and where another algorithm takes over.
"""

from dataclasses import dataclass, replace
from typing import TypeVar

import jax

from kernels.arrays import AnyArray, Cells, Flags
from kernels.compiled import compiled
from kernels.configuration.case import Case
from kernels.configuration.run import Times
from kernels.machine.software import Software
from kernels.names.stored import PERCENTILES
from kernels.names.terms import Terms
from kernels.namespace import in_numpy, repeat, take_item, xp
from kernels.oracle.formulas import time_iteration
from kernels.work.group import slower

# Of the time computing, and of links: no more than all of it is there.
PARTS = ("overlap", "rail", "flow")
Sums = tuple[AnyArray, AnyArray]  # of values, and of their squares
Draws = tuple[Software, Cells]  # factors of parameters, and of a model's time on one PE
Tree = TypeVar("Tree")
# [s] stands for no time, which has no logarithm.
NOTHING = 1e-30


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Spread:
    """Standard deviations of the logarithms of the time computing, communicating, and in all."""

    compute: Cells
    communication: Cells
    total: Cells


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Errors:
    """The model's own errors, spreads of logarithms: of computing, of gradients' rings, of others.

    rings: where gradients have errors of their own. widening: the factor on all of them.
    """

    computing: Cells
    reducing: Cells
    exchanging: Cells
    rings: Flags
    widening: Cells


def spread(case: Case, now: Times) -> Spread:
    """The spreads of an iteration's times, now `now`. The case has an uncertainty."""
    assert case.uncertainty is not None  # whoever asks for a spread has one
    drawn = (_find_variances_at_once if in_numpy() else _find_variances)(case, now)
    terms = now.terms
    compute, communication = _find_own_errors(terms, case)
    return Spread(
        compute=_add_error(drawn[0], compute, terms.compute),
        communication=_add_error(drawn[1], communication, terms.communication),
        total=_add_error(
            drawn[2], xp.hypot(compute, communication), terms.compute + terms.communication
        ),
    )


def draw_times(case: Case) -> tuple[AnyArray, AnyArray]:
    """Seconds an iteration in all, for each draw [draw, cells]; and the model's own error.

    The error is the spread of the logarithm of the time.
    """
    assert case.uncertainty is not None
    # Side by side, as in `_find_variances_at_once`: `best` of two cells 0.37 -> 0.07 s of CPU.
    drawn = time_iteration(add_draws(case))
    times = xp.moveaxis(xp.asarray(drawn.compute + drawn.communication), -1, 0)
    now = time_iteration(case)
    errors = _find_own_errors(now.terms, case)
    return times, xp.hypot(*errors) / (now.compute + now.communication)


def quantile(time: Cells, sigma: Cells, percent: int) -> Cells:
    """The 10th, 50th or 90th percentile of a time whose logarithm has the spread `sigma`."""
    return xp.asarray(time * xp.exp(PERCENTILES[percent] * sigma))


@compiled(numpy=True)
def percentiles(time: Cells, sigma: Cells) -> dict[int, Cells]:
    """All percentiles, by their percent, for callers outside of compiled programs."""
    return {percent: quantile(time, sigma, percent) for percent in PERCENTILES}


def _find_variances(case: Case, now: Times) -> tuple[Cells, Cells, Cells]:
    """Variances of the logarithms of the three times over all draws.

    now: the times where no parameter is moved.
    """
    uncertainty = case.uncertainty
    assert uncertainty is not None

    def list_times(factors: Software, serial: Cells) -> list[AnyArray]:
        return _list_times(time_iteration(_move(case, factors, serial)))

    draws, count = (uncertainty.factors, uncertainty.serial), xp.shape(uncertainty.serial)[0]
    # Differences of logarithms, whose squares lose no digits.
    centre = _list_times(now)

    def add(number: AnyArray | int, sums: list[Sums]) -> list[Sums]:
        drawn = list_times(*take_item(draws, number))
        off = [xp.log(time / at) for time, at in zip(drawn, centre, strict=True)]
        # Three arrays: stacked to one, each cell took thirteen times as long.
        return [
            (first + log, second + log * log)
            for log, (first, second) in zip(off, sums, strict=True)
        ]

    nothing: list[Sums] = [(xp.zeros_like(time), xp.zeros_like(time)) for time in centre]
    sums = repeat(count, add, nothing)
    compute, communication, total = (
        xp.maximum(second / count - xp.square(first / count), 0.0) for first, second in sums
    )
    return compute, communication, total


def _find_variances_at_once(case: Case, now: Times) -> tuple[Cells, Cells, Cells]:
    """The same with all draws side by side: in numpy an operation takes as long for one of them.

    Of one cell 157 -> 29 ms (two cores, shared).
    """
    drawn, centre = _list_times(time_iteration(add_draws(case))), _list_times(now)
    compute, communication, total = (
        xp.var(xp.log(time / at[..., None]), axis=-1)
        for time, at in zip(drawn, centre, strict=True)
    )
    return compute, communication, total


def _list_times(times: Times) -> list[AnyArray]:
    """Compute, communication and total time [s], each clamped above zero."""
    parts = (times.compute, times.communication, times.compute + times.communication)
    return [xp.maximum(xp.asarray(part), NOTHING) for part in parts]


def _move(case: Case, factors: Software, serial: Cells) -> Case:
    """The case with other parameters, and of a model that takes `serial` times as long."""
    software: Software = jax.tree.map(xp.multiply, case.software, factors)
    bounded = {
        name: _bound(getattr(software, name), getattr(case.software, name)) for name in PARTS
    }
    work = slower(case.machine_work, serial)
    return replace(case, work=work, software=replace(software, **bounded))


def add_draws(case: Case) -> Case:
    """The case with each draw along a last dimension of its cells, and with no uncertainty left."""
    uncertainty, rank = case.uncertainty, xp.ndim(case.run.p)
    assert uncertainty is not None
    drawn = (uncertainty.factors, uncertainty.serial)
    factors, serial = jax.tree.map(lambda leaf: xp.moveaxis(xp.asarray(leaf), 0, -1), drawn)
    return _move(add_dimension(replace(case, uncertainty=None), rank), factors, serial)


def add_dimension(tree: Tree, rank: int) -> Tree:
    """The same numbers with one dimension more of cells, the last, of size 1.

    rank: dimensions of the cells; constants, such as a network's spans, have fewer.
    """

    def append(leaf: AnyArray | float) -> AnyArray:
        return xp.asarray(leaf)[..., None] if xp.ndim(leaf) >= rank else xp.asarray(leaf)

    wider: Tree = jax.tree.map(append, tree)
    return wider


def _bound(drawn: Cells, expected: Cells) -> Cells:
    """No more than the whole, unless more was expected."""
    return xp.minimum(drawn, xp.maximum(expected, 1.0))


def find_errors(case: Case) -> Errors:
    """The model's own errors of a case that has an uncertainty."""
    run, uncertainty, alike = case.run, case.uncertainty, case.find_alike()
    assert uncertainty is not None
    return Errors(
        computing=xp.where(xp.equal(run.group, 1), uncertainty.whole, uncertainty.group),
        reducing=uncertainty.reduce,
        exchanging=uncertainty.exchange,
        # A spatial group's gradients go through host memory, with the errors of other exchanges.
        rings=xp.greater(run.replicas, 1) & (True if alike is None else xp.equal(alike.degree, 1)),
        widening=uncertainty.widening,
    )


def _find_own_errors(terms: Terms, case: Case) -> tuple[Cells, Cells]:
    """The model's own error of the times computing and communicating [s]."""
    errors = find_errors(case)
    computing = errors.computing * terms.compute
    reduced = xp.where(errors.rings, terms.gradient_exchange, 0.0)
    rest = terms.communication - reduced
    communicating = xp.hypot(errors.reducing * reduced, errors.exchanging * rest)
    return errors.widening * computing, errors.widening * communicating


def _add_error(variance: Cells, error: Cells, time: Cells) -> Cells:
    """The spread of independent causes; 0 where there is no time."""
    relative = error / xp.maximum(time, NOTHING)
    return xp.where(xp.greater(time, 0), xp.sqrt(variance + xp.square(relative)), 0.0)
