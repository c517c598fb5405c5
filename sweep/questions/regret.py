"""Regret: the strategy that loses least when the machine is not known."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from paradl.grids.grid import LABELS
from paradl.grids.reading.errors import InputError, shorten, suggest_name
from paradl.kernels.names.flags import Limit
from paradl.kernels.names.statistics import BEST, EFFICIENCY, Objective
from paradl.sweep.answers.mapping import tabulate
from paradl.sweep.answers.objectives import expect_objective
from paradl.sweep.answers.system_settings import complete_rows
from paradl.sweep.answers.types.questions import LossFields, RegretRow
from paradl.sweep.cells.parts import Lines
from paradl.sweep.cells.selection import Selection, join_selection
from paradl.sweep.cells.source import Source, open_source, open_space
from paradl.sweep.cells.space import list_given

if TYPE_CHECKING:
    from paradl.grids.grid import Grid


def rank_regrets(
    cube: Source,
    selection: Selection | None = None,
    *,
    over: str = "system",
    objective: Objective = "epoch_time",
    **axes: object,
) -> list[RegretRow]:
    """Strategies of each place, the one with the least worst-case loss first.

    A place is a model, a data set, a system and a value of each machine parameter that is an axis,
    except for `over`. The loss of a strategy on a system, or at a value of another axis (`over`),
    is the time of its best configuration over that of the best strategy there, minus 1.

    A strategy that is infeasible somewhere has neither rank nor loss. InputError: an unknown axis,
    or one along which strategies choose.

    selection, axes: values to select, as in `{"pe": 64}` or `pe=64`.

    >>> import paradl
    >>> systems = ["abci", "dgx-a100"]
    >>> ds = paradl.compute_space(
    ...     "alexnet", dataset="imagenet-226", system=systems, pe=[1, 8, 64], batch=32
    ... )
    >>> losses = paradl.regret(ds).head(2)
    >>> [*zip(losses["strategy"], losses["worst_loss"].astype(float).round(2))]
    [('data', 0.0), ('data+channel:group=best', 1.73)]
    """
    selection = join_selection(selection, axes)
    expect_objective(objective)
    reader = open_source(cube)
    space = open_space(reader, selection)
    space.expect_one_kind()
    if len(space.places["strategy"]) < 2:
        raise InputError(
            "a worst case compares two strategies or more, got one",
            where="strategy",
            advice="add another, such as data,data+filter",
        )
    lines = reader.summarise(selection or {}, EFFICIENCY, objective)
    _check_axis(lines, over)
    return complete_rows(space, _regret_values(space.grid, lines, over, objective))


regret = tabulate("regret", rank_regrets)


def _check_axis(lines: Lines, over: str) -> None:
    known = [dim for dim in lines.coordinates if dim not in ("model", "dataset", "strategy")]
    if over not in known:
        raise InputError(
            f"expected a system or machine axis, got {shorten(over)}",
            where="over",
            advice=suggest_name(over, known),
        )


def _regret_values(grid: "Grid", lines: Lines, over: str, objective: Objective) -> list[RegretRow]:
    """Rows of all places, over the values of an axis."""
    dims = list(lines.coordinates)
    # An axis of one value would only repeat it in every row.
    given = [dim for dim in list_given(grid, dims) if len(lines.coordinates[dim]) > 1]
    kept = [dim for dim in dims if dim in (*LABELS, *given, over)]
    times = lines.arrays[BEST[objective]["time"]].astype(float)
    rest = tuple(at for at, dim in enumerate(dims) if dim not in kept)
    # A planner chooses along all other axes, so the best configuration counts.
    least = np.where(np.isnan(times), np.inf, times).min(axis=rest)
    fits = (lines.arrays["forbidden_by"] != Limit.INCOMPATIBLE).any(axis=rest)
    places = [dim for dim in kept if dim not in ("strategy", over)]
    order = [*places, "strategy", over]
    places_first = [kept.index(dim) for dim in order]
    table, fits = least.transpose(places_first), fits.transpose(places_first)
    rows: list[RegretRow] = []
    for place in np.ndindex(table.shape[: len(places)]):
        if fits[place].any():
            labels = {
                dim: _plain(lines.coordinates[dim][at])
                for dim, at in zip(places, place, strict=True)
            }
            rows += rank_losses(
                labels, lines.coordinates["strategy"], lines.coordinates[over], table[place]
            )
    return rows


def rank_losses(
    labels: Mapping[str, object],
    strategies: NDArray[Any],
    scenarios: NDArray[Any],
    times: NDArray[np.float64],
) -> list[RegretRow]:
    """Rows of one place; times [strategy, scenario], infinite where nothing is feasible."""
    # Ignore scenarios in which no strategy is feasible, unless that holds for all scenarios.
    possible = np.isfinite(times).any(axis=0)
    if possible.any():
        times, scenarios = times[:, possible], scenarios[possible]
        losses = times / times.min(axis=0) - 1
    else:
        losses = times  # infinite, too
    rows: list[LossFields] = []
    for strategy, loss in zip(strategies, losses, strict=True):
        infeasible = [_plain(scenario) for scenario in scenarios[np.isinf(loss)]]
        worst = int(loss.argmax())
        rows.append(
            {
                "strategy": str(strategy),
                "worst_loss": None if infeasible else float(loss[worst]),
                # A strategy that is always the best loses nowhere.
                "worst_at": None if infeasible or not loss[worst] else _plain(scenarios[worst]),
                "mean_loss": None if infeasible else float(loss.mean()),
                "infeasible_at": infeasible,
            }
        )
    rows.sort(key=lambda row: np.inf if row["worst_loss"] is None else row["worst_loss"])
    return [
        cast(RegretRow, {"rank": None if row["worst_loss"] is None else rank, **labels, **row})
        for rank, row in enumerate(rows, 1)
    ]


def _plain(value: Any) -> Any:
    """Convert a value to a Python number or text."""
    return value.item() if hasattr(value, "item") else str(value)
