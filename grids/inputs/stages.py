"""Stages: of a group's pipeline stages, those that may be the fullest, whatever the batch."""

from dataclasses import replace
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray

from grids.models.layers import Floats
from kernels.oracle.formulas import Work
from kernels.work.group import GroupWork

Flags = NDArray[np.bool_]

# Stages that are left at least, where there are as many: few networks need more, and so one
# compiled program serves most.
STAGES = 4


def fullest(work: Work, least: int) -> Work:
    """The work with these stages alone, `least` at least: in the second stage each costs time."""
    if isinstance(work, GroupWork) and work.row_states is not None:
        return _pad_stages(work, least)
    # A stage's memory is a line in the batch: activations are its slope, parameters its height at
    # 0. The fullest for some batch are the lines' upper envelope. Finding it compares triples; so a
    # first pass, which sorts, drops what another stage exceeds in both.
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
    """All stages: states of rows grow with the batch up to a bound, which is no line."""
    held = (work.activations, work.parameters, work.row_states)
    activations, parameters, rows = jax.tree.map(lambda values: _pad(values, least), held)
    return replace(work, activations=activations, parameters=parameters, row_states=rows)


def _pad(stages: Any, least: int) -> Any:
    """So many stages at least; one more is never wrong."""
    more = [(0, max(0, least - len(stages))), *[(0, 0)] * (stages.ndim - 1)]
    return np.pad(stages, more, "edge")


def _take_first(kept: Flags, least: int) -> NDArray[np.int64]:
    """Positions of what is kept [stage, cells], as many as are kept in any cell; then others."""
    most = max(STAGES, kept.sum(axis=0).max())
    # Cells keep different numbers of them: an array has as many as the one that keeps the most.
    chosen: NDArray[np.int64] = _pad(np.argsort(~kept, axis=0, kind="stable")[:most], least)
    return chosen


def _find_not_exceeded(activations: Floats, parameters: Floats) -> Flags:
    """The stages that no other has more of both than."""
    # Stable: of two equal stages the first stays.
    order = np.argsort(-activations, axis=0, kind="stable")
    of_fewer = np.take_along_axis(parameters, order, axis=0)
    most = np.maximum.accumulate(of_fewer, axis=0)[:-1]
    kept = np.concatenate([np.ones_like(order[:1], bool), of_fewer[1:] > most])
    return np.take_along_axis(kept, np.argsort(order, axis=0), axis=0)


def _find_not_between(activations: Floats, parameters: Floats) -> Flags:
    """The stages not below the line from one with more activations to one with fewer."""
    more, fewer = activations[:, None, None], activations[None, None]
    above, below = parameters[:, None, None], parameters[None, None]
    here = activations[None, :, None], parameters[None, :, None]
    between = (more > here[0]) & (here[0] > fewer)
    under = (here[1] - above) * (more - fewer) <= (below - above) * (more - here[0])
    kept: Flags = _find_not_exceeded(activations, parameters) & ~np.any(
        between & under, axis=(0, 2)
    )
    return kept
