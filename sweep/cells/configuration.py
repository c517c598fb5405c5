"""One configuration as a user states it, and its design space; no JAX, whose import takes 1 s."""

import reprlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from grids.grid import Grid, Index
from grids.reading.errors import InputError, shorten
from grids.spec import Spec, validate_spec

ONLY: Index = (0, 0, 0, 0)  # the labels' positions in a design space of one configuration


@dataclass(frozen=True)
class Configuration:
    """One configuration as a user states it. settings: keys of a spec other than its axes."""

    model: str | dict[str, object]
    strategy: str
    pe: int
    batch: int
    system: str = "abci"
    dataset: str | None = None
    parameters: Mapping[str, object] | None = None
    settings: Mapping[str, object] | None = None

    def grid(self, base: Path = Path()) -> Grid:
        """Design space of this configuration. InputError: several values, or none."""
        parameters = expect_mapping(self.parameters, "parameters")
        settings = expect_mapping(self.settings, "settings")
        self._check(parameters, settings)
        axes: dict[str, object] = {
            "model": [self.model],
            "system": [self.system],
            "strategy": [self.strategy],
            "pe": self.pe,
            "batch": self.batch,
        }
        if self.dataset is not None:
            axes["dataset"] = [self.dataset]
        spec: Spec = validate_spec({"axes": axes, "parameters": dict(parameters), **settings}, "")
        return Grid.from_spec(spec, base)

    def _check(self, parameters: Mapping[str, object], settings: Mapping[str, object]) -> None:
        """Raise InputError for several values, and for keys that are not settings."""
        for name, value in {"pe": self.pe, "batch": self.batch, **parameters}.items():
            if isinstance(value, list | tuple | dict):
                raise InputError(
                    f"expected one value, got {reprlib.repr(value)}",
                    where=name,
                    advice="sweep over several, as an axis of a spec",
                )
        for name in ("axes", "parameters"):
            if name in settings:
                raise InputError(
                    f"{name!r} is not a setting", where="settings", advice="use its own argument"
                )


def expect_mapping(given: Mapping[str, object] | None, where: str) -> Mapping[str, object]:
    """The mapping, empty for None. InputError: anything else."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise InputError(f"expected names and values, got {shorten(given)}", where=where)
    return given
