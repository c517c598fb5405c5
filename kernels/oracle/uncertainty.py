"""Uncertainty of the machine oracle's times, as spreads of their logarithms.

Three causes add up: parameters of the machine and its software, drawn once for all cells; the time
of a model on one PE, drawn with them; and the model error, which grows for runs unlike the fitted
ones. Draws rather than derivatives, which vanish where communication is hidden and jump where
another algorithm becomes the fastest.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeVar

import jax

from paradl.kernels.arrays import AnyArray, Cells, Flags, in_numpy, pytree, repeat, take_item, xp
from paradl.kernels.compiled import compiled
from paradl.kernels.configuration.answers import Spread
from paradl.kernels.configuration.case import Case, Uncertainty
from paradl.kernels.configuration.run import Times
from paradl.kernels.machine.software import Software
from paradl.kernels.names.stored import PERCENTILES
from paradl.kernels.oracle.formulas import time_iteration
from paradl.kernels.work.group import GroupWork

# Parameters that are shares, and so at most 1.
PARTS = ("overlap", "rail", "flow")
Sums = tuple[AnyArray, AnyArray]  # of values, and of their squares
# Factors on parameters of software and of kernels, and on a model's time on one PE.
Draws = tuple[Software, Mapping[str, Cells], Cells]
Tree = TypeVar("Tree")
# In numpy more cells take one draw after another: all draws of 98,304 cells of layouts are 1.5 GB.
FEW_CELLS = 2**12
# [s] Replaces zero times, which have no logarithm.
NOTHING = 1e-30


@pytree
class Errors:
    """Model errors as spreads of logarithms: of computing, of gradients' rings, of other exchanges.

    rings: whether `reducing` applies to gradients. widening: factor on all errors. joint: one error
    of all terms together, in place of the others.
    """

    computing: Cells
    reducing: Cells
    exchanging: Cells
    rings: Flags
    widening: Cells
    joint: Cells | None = None


def spread(case: Case, now: Times) -> Spread:
    """Compute the spreads of an iteration's times `now`. The case has an uncertainty."""
    assert case.uncertainty is not None  # callers check it
    at_once = in_numpy() and xp.size(now.compute) <= FEW_CELLS
    drawn = (_find_variances_at_once if at_once else _find_variances)(case, now)
    times = now.compute, now.communication, now.compute + now.communication
    spreads = map(_add_error, drawn, _find_own_errors(now, case), times)
    return Spread(*spreads)


def draw_times(case: Case, *, beside: bool = False) -> tuple[AnyArray, Cells]:
    """Return total seconds of an iteration for each draw [draw, cells], and the model error.

    The error is the spread of the logarithm of the time. beside: of one run beside another of the
    same network, whose error is partly the same.
    """
    assert case.uncertainty is not None
    # All draws at once, as in `_find_variances_at_once`: `best` of two cells 0.37 -> 0.07 s of CPU.
    drawn = time_iteration(add_draws(case))
    times = xp.moveaxis(xp.asarray(drawn.compute + drawn.communication), -1, 0)
    if beside and case.uncertainty.beside is not None:
        return times, case.uncertainty.beside
    now = time_iteration(case)
    *_, error = _find_own_errors(now, case)
    return times, error / (now.compute + now.communication)


def quantile(time: Cells, sigma: Cells, percent: int) -> Cells:
    """Return the 10th, 50th or 90th percentile of a time whose logarithm has spread `sigma`."""
    return xp.asarray(time * xp.exp(PERCENTILES[percent] * sigma))


@compiled(numpy=True)
def percentiles(time: Cells, sigma: Cells) -> dict[int, Cells]:
    """Return all percentiles, by percent, for callers outside of compiled programs."""
    return {percent: quantile(time, sigma, percent) for percent in PERCENTILES}


def _find_variances(case: Case, now: Times) -> tuple[Cells, Cells, Cells]:
    """Compute the variances of the logarithms of the three times over all draws.

    now: times at the central parameters.
    """
    uncertainty = case.uncertainty
    assert uncertainty is not None

    count = xp.shape(uncertainty.serial)[0]
    draws = _list_draws(uncertainty)
    # Differences from the centre, whose squares lose no digits.
    centre = _list_times(now)

    def add(number: AnyArray | int, sums: list[Sums]) -> list[Sums]:
        drawn = _list_times(time_iteration(_move(case, *take_item(draws, number))))
        off = [xp.log(time / at) for time, at in zip(drawn, centre, strict=True)]
        # Three arrays: stacked into one, each cell took thirteen times as long.
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
    """Compute the same for all draws at once: in numpy an operation on one takes as long.

    For one cell 157 -> 29 ms (two shared cores).
    """
    drawn, centre = _list_times(time_iteration(add_draws(case))), _list_times(now)
    compute, communication, total = (
        xp.var(xp.log(time / at[..., None]), axis=-1)
        for time, at in zip(drawn, centre, strict=True)
    )
    return compute, communication, total


def _list_times(times: Times) -> list[AnyArray]:
    """List compute, communication and total time [s], each clamped above zero."""
    parts = (times.compute, times.communication, times.compute + times.communication)
    return [xp.maximum(xp.asarray(part), NOTHING) for part in parts]


def _move(case: Case, factors: Software, kernels: Mapping[str, Cells], serial: Cells) -> Case:
    """Multiply the case's parameters by drawn factors, and its layers' times by `serial`."""
    software: Software = jax.tree.map(xp.multiply, case.software, factors)
    # Drawn shares are at most 1, or the central value if that is above 1.
    bounded = {
        name: xp.minimum(getattr(software, name), xp.maximum(getattr(case.software, name), 1.0))
        for name in PARTS
    }
    pe = {name: getattr(case.pe, name) * factor for name, factor in kernels.items()}
    work = case.work
    if isinstance(work, GroupWork):
        # The update is unchanged: measurements are of FW + BW.
        passes, fixed = work.forward_backward * serial, work.fixed * serial
        work = replace(work, forward_backward=passes, fixed=fixed)
    return replace(
        case,
        work=work,
        pe=replace(case.pe, **pe),
        software=replace(software, **bounded),
    )


def _list_draws(uncertainty: Uncertainty) -> Draws:
    """List what is drawn, in the order in which `_move` takes it."""
    return uncertainty.factors, uncertainty.kernels, uncertainty.serial


def add_draws(case: Case) -> Case:
    """Return the case with all draws along a new last dimension, and without uncertainty."""
    uncertainty, rank = case.uncertainty, xp.ndim(case.run.p)
    assert uncertainty is not None
    drawn = _list_draws(uncertainty)
    factors = jax.tree.map(lambda leaf: xp.moveaxis(xp.asarray(leaf), 0, -1), drawn)
    return _move(add_dimension(replace(case, uncertainty=None), rank), *factors)


def add_dimension(tree: Tree, rank: int) -> Tree:
    """Append a dimension of size 1 to the cells.

    rank: number of dimensions of the cells; constants, such as a network's spans, have fewer.
    """

    def append(leaf: AnyArray | float) -> AnyArray:
        return xp.asarray(leaf)[..., None] if xp.ndim(leaf) >= rank else xp.asarray(leaf)

    wider: Tree = jax.tree.map(append, tree)
    return wider


def find_errors(case: Case) -> Errors:
    """Return the model errors of a case that has an uncertainty."""
    run, uncertainty = case.run, case.uncertainty
    assert uncertainty is not None
    alike = None if uncertainty.joint is not None else case.find_alike()
    return Errors(
        computing=xp.where(xp.equal(run.group, 1), uncertainty.whole, uncertainty.group),
        reducing=uncertainty.reduce,
        exchanging=uncertainty.exchange,
        # A spatial group's gradients go through host memory, with the errors of other exchanges.
        rings=xp.greater(run.replicas, 1) & (True if alike is None else xp.equal(alike.degree, 1)),
        widening=uncertainty.widening,
        joint=uncertainty.joint,
    )


def _find_own_errors(now: Times, case: Case) -> tuple[Cells, Cells, Cells]:
    """Return the model errors of compute, communication and total time [s]."""
    errors = find_errors(case)
    if errors.joint is not None:
        compute, communication = errors.joint * now.compute, errors.joint * now.communication
        return compute, communication, errors.joint * (now.compute + now.communication)
    computing = errors.computing * now.compute
    reduced = xp.where(errors.rings, now.terms.gradient_exchange, 0.0)
    rest = now.communication - reduced
    communicating = xp.hypot(errors.reducing * reduced, errors.exchanging * rest)
    both = errors.widening * computing, errors.widening * communicating
    return *both, xp.hypot(*both)


def _add_error(variance: Cells, error: Cells, time: Cells) -> Cells:
    """Combine the spreads of independent causes; 0 for zero times."""
    relative = error / xp.maximum(time, NOTHING)
    return xp.where(xp.greater(time, 0), xp.sqrt(variance + xp.square(relative)), 0.0)
