"""Summaries against a plain loop over the PE counts."""

from dataclasses import replace
from functools import reduce
from typing import Any

import jax
import numpy as np
import pytest

from paradl.kernels.arrays import AnyArray, use_numpy
from paradl.kernels.blocks.summary import (
    Line,
    extend_summary,
    summarise_nothing,
    tabulate,
    tabulate_line,
)
from paradl.kernels.names.flags import FORBIDS, Limit
from paradl.kernels.names.statistics import BEST, STATISTICS

TABULATE = jax.jit(tabulate_line)
TABULATE_PARTS, EXTEND = jax.jit(tabulate), jax.jit(extend_summary)
# More than twice the rows of a step of the race, and no multiple of them.
PES = (1.0, 2.0, 3.0, 4.0, 8.0, 12.0, *(16.0 * n for n in range(1, 14)))
SLICES = (5, 4)


def a_line(seed: int, *, trains: bool = False) -> Line:
    """Random answers; times vary along the first of two other dimensions, flags along both."""
    draw = np.random.default_rng(seed)
    shape = (len(PES), *SLICES)
    flags = draw.choice([0, 0, 0, 1, 2, 16, 17, 32, 64, 256], size=shape)
    line = Line(
        p=np.array(PES).reshape(-1, 1, 1),
        comp_time=draw.uniform(1, 2, (len(PES), SLICES[0], 1)),
        comm_time=draw.uniform(0, 2, (len(PES), SLICES[0], 1)),
        memory=draw.uniform(1, 9, (len(PES), 1, 1)),
        limit=flags.astype(np.uint16),
        enough=draw.uniform(2, 12, (1, SLICES[0], 1)).astype(np.float32),
    )
    if not trains:
        return line
    epochs = draw.uniform(20, 90, (len(PES), SLICES[0], 1))
    # Of a batch that never converges, where the flags say so or not.
    epochs[draw.integers(len(PES)), 0] = np.nan
    return replace(line, epochs=epochs, epochs_alone=epochs[:1] * 0 + 30)


def brute_force(line: Line, slice_: tuple[int, int]) -> dict[str, Any]:
    at = {
        name: np.broadcast_to(np.asarray(value), (len(PES), *SLICES))[(slice(None), *slice_)]
        for name, value in vars(line).items()
        if value is not None
    }
    times = at["comp_time"] + at["comm_time"]
    allowed = [n for n in range(len(PES)) if not int(at["limit"][n]) & FORBIDS]
    fastest = find_best(at, times, allowed, at["enough"][0])
    soonest = dict.fromkeys(fastest, np.nan)
    if line.epochs is not None:
        trained = times * at["epochs"]
        known = [n for n in allowed if np.isfinite(trained[n])]
        soonest = find_best(at, trained, known, at["enough"][0] * at["epochs_alone"][0])
    largest = max((PES[n] for n in allowed), default=0)
    reasons = [int(flags) & (FORBIDS & ~Limit.GROUP_DOES_NOT_DIVIDE) for flags in at["limit"]]
    later = (r for pe, r in zip(PES, reasons, strict=True) if pe > largest and r)
    return {
        **{BEST["epoch_time"][field]: value for field, value in fastest.items()},
        **{BEST["train_time"][field]: value for field, value in soonest.items()},
        "largest_pe": largest,
        "forbidden_by": next(later, 0),
        **{
            f"count_{str(limit.name).lower()}": sum(
                bool(int(flags) & limit) for flags in at["limit"]
            )
            for limit in Limit
        },
    }


def find_best(at: dict[str, Any], times: Any, known: list[int], enough: float) -> dict[str, Any]:
    """What is kept of the least of some times."""
    best = min(known, key=lambda n: times[n], default=None)
    quick = [n for n in known if times[n] * PES[n] <= enough]
    epochs = at.get("epochs", np.full(len(PES), np.nan))
    return {
        "pe": 0 if best is None else PES[best],
        "time": np.nan if best is None else times[best],
        "comp_time": np.nan if best is None else at["comp_time"][best],
        "memory": np.nan if best is None else at["memory"][best],
        "epochs": np.nan if best is None else epochs[best],
        "efficient_pe": max((PES[n] for n in quick), default=0),
    }


def named(table: jax.Array) -> dict[str, np.ndarray]:
    """Statistics, which lead in a table, by name."""
    return dict(zip(STATISTICS, np.asarray(table), strict=True))


@pytest.mark.parametrize("trains", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_every_slice_agrees_with_a_loop(seed, trains):
    query = a_line(seed, trains=trains)
    result = named(TABULATE(query))
    for slice_ in np.ndindex(SLICES):
        expected = brute_force(query, slice_)
        for name, value in expected.items():
            np.testing.assert_allclose(result[name][slice_], value, rtol=1e-6, err_msg=name)


def test_nothing_is_allowed():
    query = a_line(0)
    none = replace(query, limit=np.full((len(PES), *SLICES), 1, np.uint16))
    result = named(TABULATE(none))
    assert (result["largest_pe"] == 0).all()
    assert np.isnan(result["fastest_time"]).all()
    assert (result["forbidden_by"] == Limit.MEMORY).all()
    assert (result["count_memory"] == len(PES)).all()


@pytest.mark.parametrize("ties", [False, True])
def test_parts_of_a_line_make_the_summary_of_the_whole(ties):
    query = a_line(5, trains=True)
    if ties:  # the smallest of equally fast PE counts stays, in whichever part it is
        times = [np.ones_like(query.comp_time), np.zeros_like(query.comm_time)]
        epochs = np.full_like(query.epochs, 30)
        query = replace(query, comp_time=times[0], comm_time=times[1], epochs=epochs)
    first, second = (
        jax.tree.map(lambda leaf, part=part: leaf[part] if leaf.shape[0] > 1 else leaf, query)
        for part in (slice(None, 5), slice(5, None))
    )
    with use_numpy():
        nothing = summarise_nothing(SLICES, SLICES, trains=True)
    whole, parts = (
        np.asarray(TABULATE_PARTS(reduce(EXTEND, lines, nothing)))
        for lines in ([query], [first, second])
    )
    np.testing.assert_array_equal(parts, whole)
    if ties:
        slices = list(np.ndindex(SLICES))
        fastest = named(TABULATE_PARTS(reduce(EXTEND, [first, second], nothing)))["fastest_pe"]
        expected = [brute_force(query, slice_)["fastest_pe"] for slice_ in slices]
        assert [fastest[slice_] for slice_ in slices] == expected


def test_many_slices_are_summarised_as_few_are() -> None:
    """Their rows are folded one after the other, and not reduced."""
    few = [a_line(seed, trains=True) for seed in range(60)]
    few[0] = replace(few[0], limit=np.full_like(few[0].limit, Limit.MEMORY))

    def join(*leaves: AnyArray) -> AnyArray:
        wide = [np.broadcast_to(leaf, (len(leaf), SLICES[0], leaf.shape[2])) for leaf in leaves]
        return np.concatenate(wide, axis=1)

    many = replace(jax.tree.map(join, *few), p=few[0].p)
    expected = np.concatenate([TABULATE(line) for line in few], axis=1)
    np.testing.assert_array_equal(TABULATE(many), expected)
