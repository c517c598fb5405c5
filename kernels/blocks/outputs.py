"""Outputs: what a cube stores of an answer, by name.

Computed in double precision and kept in single: rounded once, an answer is the same however a cube
is cut into blocks, and whatever order of operations the compiler then finds best.
"""

from dataclasses import replace
from operator import attrgetter

from kernels.arrays import LIMITS, AnyArray, Cells, xp
from kernels.compiled import compiled
from kernels.configuration.answers import Answer, AnyCase, LayoutCase
from kernels.derivatives.output_slopes import find_output_slopes
from kernels.names.layout_terms import EVERY_TERM
from kernels.names.statistics import SUMMARISED
from kernels.names.stored import STORED, split_elasticity
from kernels.oracle.answer import Invariants, evaluate
from kernels.oracle.uncertainty import quantile

Outputs = dict[str, AnyArray]


def compute_outputs(case: AnyCase, *, names: tuple[str, ...]) -> Outputs:
    """Return what a block stores, and no more: the compiler drops the rest."""
    # Numpy has no derivatives.
    derived = any(map(split_elasticity, names)) and not isinstance(case, LayoutCase)
    compute = _differentiate if derived else _compute
    return compute(case, names=names)


@compiled("names", numpy=True)
def _compute(case: AnyCase, *, names: tuple[str, ...]) -> Outputs:
    return select_outputs(case, names)


@compiled("names")
def _differentiate(case: AnyCase, *, names: tuple[str, ...]) -> Outputs:
    return select_outputs(case, names)


def select_outputs(
    case: AnyCase, names: tuple[str, ...], invariants: Invariants | None = None
) -> Outputs:
    """Return outputs as they are stored, of size 1 along dimensions where they do not vary."""
    if not any(map(_split_percentile, names)):
        # Most of a program would be spreads, which are traced even if nothing reads them.
        case = replace(case, uncertainty=None)
    answer = evaluate(case, invariants)
    slopes = find_output_slopes(case, names)
    return {
        name: _as_stored(name, slopes[name] if name in slopes else read_output(answer, name))
        for name in names
    }


def read_output(answer: Answer, name: str) -> Cells:
    """Return a variable of the cube from an answer, except for elasticities."""
    if percentile := _split_percentile(name):
        return _percentile(answer, *percentile)
    if name in EVERY_TERM and not hasattr(answer.terms, name):
        # Layouts have no halo exchange, others no experts: nothing, where there are times.
        return xp.where(xp.isnan(answer.compute), xp.nan, 0.0)
    value: Cells = attrgetter(STORED[name])(answer)
    return value


def _split_percentile(name: str) -> tuple[str, int] | None:
    """Return the time and the percent of `epoch_time_p90` and the like; None for others."""
    time, _, percent = name.rpartition("_p")
    return (time, int(percent)) if percent.isdigit() else None


def _percentile(answer: Answer, time: str, percent: int) -> Cells:
    """Return a percentile of one of the times."""
    assert answer.spread is not None  # the spec's check: only a calibrated oracle has any
    times = {
        "comp_time": (answer.compute, answer.spread.compute),
        "comm_time": (answer.communication, answer.spread.communication),
        "epoch_time": (answer.epoch_time, answer.spread.total),
    }
    if answer.train_spread is not None:
        times["train_time"] = (answer.train_time, answer.train_spread)
    return quantile(*times[time], percent)


def _as_stored(name: str, values: Cells) -> AnyArray:
    # Two bytes hold all flags. Of times, single precision has more digits than are right.
    return xp.asarray(values).astype(LIMITS if name == "limit" else xp.float32)


def list_summarised(case: AnyCase) -> tuple[str, ...]:
    """List the outputs that a summary reads."""
    return SUMMARISED if case.training is None else (*SUMMARISED, "epochs")


def count_alone(case: AnyCase, rank: int) -> AnyArray | None:
    """Return epochs on one PE, with the rank of cells, without dimensions of choices."""
    if case.training is None:
        return None
    epochs = xp.asarray(case.training.count_epochs(case.run.batch_alone))
    return epochs.reshape(epochs.shape[epochs.ndim - rank :])
