"""The pipeline stages of a group that may be the fullest for some batch."""

from dataclasses import replace
from typing import Any

import jax
import numpy as np

from kernels.names.arrays import Flags, Floats, Integers
from kernels.oracle.formulas import Work
from kernels.work.group import GroupWork

# Stages kept at least, where there are as many. Few networks need more, so one compiled program
# serves most.
STAGES = 4


def fullest(work: Work, least: int) -> Work:
    """Return the work with only these stages, at least `least`: every stage costs time later."""
    if isinstance(work, GroupWork) and work.row_states is not None:
        return _pad_stages(work, least)
    if len(work.activations) == len(work.parameters) == 1:  # no choice: a tenth of the time
        return _repeat_stage(work, least)
    # A stage's memory is linear in the batch, with activations as slope and parameters as
    # intercept. The fullest for some batch form the upper envelope. Finding it compares triples, so
    # a first pass, which sorts, drops stages that another exceeds in both.
    for choose in (_find_not_exceeded, _find_not_between):
        activations, parameters = np.broadcast_arrays(work.activations, work.parameters)
        chosen = _take_first(choose(activations, parameters), least)
        work = replace(
            work,
            activations=np.take_along_axis(activations, chosen, axis=0),
            parameters=np.take_along_axis(parameters, chosen, axis=0),
        )
    return work


def _pad_stages(work: GroupWork, least: int) -> GroupWork:
    """Keep all stages: states of rows grow up to a bound, which is not linear in the batch."""
    held = (work.activations, work.parameters, work.row_states)
    activations, parameters, rows = jax.tree.map(lambda values: _pad(values, least), held)
    return replace(work, activations=activations, parameters=parameters, row_states=rows)


def _repeat_stage(work: Work, least: int) -> Work:
    """Return the work with its only stage repeated."""
    activations, parameters = (
        np.repeat(values, least, axis=0)
        for values in np.broadcast_arrays(work.activations, work.parameters)
    )
    return replace(work, activations=activations, parameters=parameters)


def _pad(stages: Any, least: int) -> Any:
    """Repeat the last stage up to `least` stages; a repeated stage changes no maximum."""
    padding = [(0, max(0, least - len(stages))), *[(0, 0)] * (stages.ndim - 1)]
    return np.pad(stages, padding, "edge")


def _take_first(kept: Flags, least: int) -> Integers:
    """Return positions of kept stages [stage, cells] first, as many as any cell keeps."""
    most = max(STAGES, kept.sum(axis=0).max())
    # Cells keep different numbers of stages; the array has room for the largest.
    chosen: Integers = _pad(np.argsort(~kept, axis=0, kind="stable")[:most], least)
    return chosen


def _find_not_exceeded(activations: Floats, parameters: Floats) -> Flags:
    """True for stages that no other exceeds in both."""
    # The sort is stable: of two equal stages the first stays.
    order = np.argsort(-activations, axis=0, kind="stable")
    sorted_parameters = np.take_along_axis(parameters, order, axis=0)
    most = np.maximum.accumulate(sorted_parameters, axis=0)[:-1]
    kept = np.concatenate([np.ones_like(order[:1], bool), sorted_parameters[1:] > most])
    return np.take_along_axis(kept, np.argsort(order, axis=0), axis=0)


def _find_not_between(activations: Floats, parameters: Floats) -> Flags:
    """True for stages on or above the line from one with more activations to one with fewer."""
    more, fewer = activations[:, None, None], activations[None, None]
    above, below = parameters[:, None, None], parameters[None, None]
    slope, height = activations[None, :, None], parameters[None, :, None]
    between = (more > slope) & (slope > fewer)
    under = (height - above) * (more - fewer) <= (below - above) * (more - slope)
    kept: Flags = _find_not_exceeded(activations, parameters) & ~np.any(
        between & under, axis=(0, 2)
    )
    return kept
