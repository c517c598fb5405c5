"""Hybrid: when a hybrid trains to the target faster than data parallelism."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

from paradl.grids.convergence.entry import Convergence
from paradl.grids.notes import list_warnings
from paradl.grids.reading.errors import InputError, shorten
from paradl.grids.reading.units import parse_count, parse_quantity
from paradl.grids.shorthands import expect_system
from paradl.kernels.names.flags import Limit
from paradl.sweep.answers.mapping import AnswerMapping
from paradl.sweep.answers.numbers import finite
from paradl.sweep.answers.types.hybrid import BasisOfHybrids, HybridAnswer
from paradl.sweep.cube.variables import name_limits
from paradl.sweep.questions.hybrid.contenders import (
    Contender,
    list_contenders,
    list_counts,
    propose_pairs,
)
from paradl.sweep.questions.hybrid.epochs import choose_convergence, count_samples, make_draws
from paradl.sweep.questions.hybrid.lines import (
    AGAINST,
    SpeedupLine,
    describe_epochs,
    find_crossover,
    find_gain,
    list_rows,
    list_splits,
    make_lines,
)

if TYPE_CHECKING:
    from paradl.grids.grid import Grid
    from paradl.sweep.questions.hybrid.times import ContenderTimes


def hybrid(
    model: str,
    batch: int | str,
    pe: int | str | Sequence[int | str],
    *,
    strategies: Sequence[str] = (),
    speedups: Mapping[int, float] | None = None,
    scaling_efficiency: float | str | None = None,
    convergence: Path | str | Convergence = "auto",
    target: str | None = None,
    dataset: str | None = None,
    system: str | None = None,
    parameters: Mapping[str, object] | None = None,
    settings: Mapping[str, object] | None = None,
) -> AnswerMapping[HybridAnswer]:
    """Return speed-ups to the target, crossovers and the gain, as `paradl hybrid` prints them.

    strategies: hybrids; without strategies and speedups all hybrids of pairs are compared. batch:
    samples per replica. pe: PE counts of the rows; one number means the powers of two up to it.
    speedups: SU^M by M, and scaling_efficiency: SE, instead of those of the oracle. convergence: a
    file of measured epochs, a law, or auto, the catalogue's. InputError: bad input.

    >>> import paradl
    >>> measured = {"speedups": {2: 1.15}, "scaling_efficiency": 1}
    >>> answer = paradl.hybrid("gnmt_v2", 128, 256, dataset="wmt16-en-de", **measured)
    >>> round(answer["gain"]["gain"], 3)
    -0.055
    """
    proposed = not strategies and not speedups
    batch = parse_count(batch, "batch")
    # PE counts are set later.
    axes: dict[str, object] = {"model": model, "batch": batch, "pe": 1}
    axes |= {"dataset": dataset} if dataset is not None else {}

    def make_grid(labels: Sequence[str]) -> "Grid":
        from paradl.sweep.questions.hybrid.times import build_grid  # late: imports JAX

        asked = {**axes, "system": expect_system(system), "strategy": [*labels]}
        return build_grid(asked, parameters or {}, settings or {})

    if proposed:
        strategies = propose_pairs(make_grid(["data"]))
    contenders = list_contenders(strategies, speedups or {})
    counts = list_counts(pe, contenders)
    if scaling_efficiency is not None:
        scaling_efficiency = parse_quantity(scaling_efficiency, "1", "scaling_efficiency", "95%")
    _check_numbers(batch, scaling_efficiency)
    grid = None
    if scaling_efficiency is None or any(contender.split is None for contender in contenders):
        grid = make_grid([contender.strategy for contender in contenders if contender.strategy])
        _refuse_mixture(grid, [split for split in contenders if split.strategy])
        model, dataset = grid.labels["model"][0], grid.labels["dataset"][0]
    law = convergence
    if not isinstance(law, Convergence):
        known = grid.datasets[0].samples if grid else None
        law = choose_convergence(law, model, dataset, target, known)
    times, seconds, samples = _time_contenders(grid, counts[-1], batch)
    _check_batch(samples, law, grid)
    lines = make_lines(
        contenders, times, law, make_draws(), samples, counts[-1], scaling_efficiency
    )
    # Hybrids that the user named stay, with what forbids them.
    lines, left_out = _leave_out(lines) if proposed else (lines, [])
    data, *hybrids = lines
    answer: HybridAnswer = {
        "model": model,
        "dataset": dataset or law.dataset,
        "system": grid.labels["system"][0] if grid else None,
        "batch": batch,
        "iteration_time": seconds,
        "target": law.target,
        "epochs": describe_epochs(law, samples),
        "splits": list_splits(hybrids, given=scaling_efficiency is not None),
        "rows": list_rows(lines, counts, samples),
        "crossovers": [find_crossover(line, data, way) for line in hybrids for way in AGAINST],
        "gain": find_gain(hybrids, data),
        **_name_basis(grid),
        "warnings": [
            *(list_warnings(grid) if grid else []),
            *law.warnings,
            *left_out,
            *(_advise_memory(data, grid) if grid else []),
        ],
    }
    return AnswerMapping(answer)


def _check_numbers(batch: int, efficiency: float | None) -> None:
    if batch < 1:
        raise InputError(f"expected 1 or more, got {shorten(batch)}", where="batch")
    if efficiency is not None and not 0 < efficiency <= 1:
        raise InputError(
            f"expected a number above 0 and at most 1, got {efficiency}",
            where="scaling_efficiency",
            advice="of T_1 / T_N: 95 % is 0.95",
        )


def _refuse_mixture(grid: "Grid", timed: Sequence[Contender]) -> None:
    """Raise InputError if data parallelism of a network is a layout, and a hybrid is none.

    Times of layouts rest on rates of their own, so SU^M would compare the rates.
    """
    for contender, strategy in zip(timed, grid.strategies, strict=True):
        if contender.split is None and grid.transformers[0] and strategy.divides_layers:
            raise InputError(
                f"times of {contender.label} and of data parallelism of "
                f"{shorten(grid.labels['model'][0])} rest on different rates, and do not compare",
                where="strategies",
                advice="write a hybrid such as data+tensor:tensor=2, or give the speed-up of its "
                "groups",
            )


def _time_contenders(
    grid: "Grid | None", most: int, batch: int
) -> tuple[dict[str, "ContenderTimes"], float | None, float]:
    """Return times by strategy up to `most` PEs, seconds on one, and samples per replica."""
    if grid is None:
        return {}, None, float(batch)
    from paradl.sweep.questions.hybrid.times import time_strategies  # late: imports JAX

    times = time_strategies(grid, most)
    return times, finite(float(times["data"].seconds[0, 0])), times["data"].samples


def _check_batch(samples: float, convergence: Convergence, grid: "Grid | None") -> None:
    """Raise InputError if one PE's batch exceeds an epoch, or never converges."""
    bounds = {
        "the samples of an epoch": grid.datasets[0].samples
        if grid
        else count_samples(convergence.dataset),
        "the largest batch known to reach the target": convergence.converges_to,
    }
    for meaning, bound in bounds.items():
        if bound is not None and samples > bound:
            raise InputError(
                f"expected at most {bound:,}, {meaning}, got {samples:,.0f}", where="batch"
            )


def _leave_out(lines: Sequence[SpeedupLine]) -> tuple[list[SpeedupLine], list[str]]:
    """Drop proposed hybrids that are infeasible everywhere, with a note for each."""
    data, *hybrids = lines
    feasible = [line for line in hybrids if line.expected.any()]
    if not feasible:  # then their limits are the answer
        return list(lines), []
    notes = [
        f"{line.contender.label} is left out: {', '.join(name_limits(line.find_forbidding()))}"
        for line in hybrids
        if not line.expected.any()
    ]
    return [data, *feasible], notes


def _advise_memory(data: SpeedupLine, grid: "Grid") -> list[str]:
    """Return advice for a transformer whose data parallelism fits in memory on no PE count."""
    lacking = not data.expected.any() and data.find_forbidding() & Limit.MEMORY
    if not (grid.transformers[0] and lacking) or "zero" in grid.spec.parameters:
        return []
    return ["data does not fit in memory: set the parameter zero to 1, 2 or 3 to divide its states"]


def _name_basis(grid: "Grid | None") -> BasisOfHybrids:
    """Return what `predict` states, but `epochs` has the convergence; None without a grid."""
    if grid is None:
        names = ("oracle", "precision", "software", "times", "profile")
        return cast(BasisOfHybrids, {**dict.fromkeys(names), "notes": []})
    from paradl.sweep.questions.predict import describe_basis  # late: imports JAX

    basis = describe_basis(grid).items()
    return cast(BasisOfHybrids, {name: of for name, of in basis if name != "convergence"})
