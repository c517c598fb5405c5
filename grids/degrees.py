"""Stated degrees: the parts into which parallelisms divide a replica."""

from dataclasses import replace

from grids.entries.strategies import Strategy, parse_strategy
from grids.reading.errors import InputError, shorten
from grids.spec import Spec


def read_strategies(spec: Spec, where: str = "") -> tuple[Strategy, ...]:
    """Return the strategies of a spec. InputError: one leaves open how it divides PEs."""
    strategies = tuple(map(parse_strategy, spec.axes.strategy))
    for strategy in strategies:
        _expect_degrees(strategy, spec, where)
    return strategies


def _expect_degrees(strategy: Strategy, spec: Spec, where: str) -> None:
    """Raise InputError if a product of parallelisms leaves open how PEs divide among them.

    A degree is a setting of the strategy, a parameter or an axis. Without data parallelism one may
    be left open, and gets the remaining PEs.
    """
    if not strategy.several:
        return
    if spec.oracle == "paper":
        raise InputError(
            f"{shorten(strategy.label)} is no strategy of Table III, which divides a replica in "
            "one way; write 'oracle: machine'",
            where=where,
        )
    given = {*dict(strategy.degrees), *spec.parameters, *spec.axes.swept}
    missing = [name for name in strategy.parts if name not in given]
    if len(missing) > (0 if strategy.replicated else 1):
        stated = dict(strategy.degrees) | dict.fromkeys(missing, 2)
        degrees = ((name, stated.get(name)) for name in strategy.parts)
        example = replace(strategy, degrees=tuple(degrees))
        raise InputError(
            f"{shorten(strategy.label)}: no degree of {' and '.join(missing)}",
            where=where,
            advice=f"write {example.label!r}, or a parameter or an axis of that name",
        )
