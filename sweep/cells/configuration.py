"""One configuration as a user names it, and its design space; without JAX, which takes a second."""

import reprlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from grids.grid import Grid, Index
from grids.reading.errors import InputError, shorten
from grids.spec import Spec, validate_spec

ONLY: Index = (0, 0, 0, 0)  # where a design space of one configuration has it


@dataclass(frozen=True)
class Configuration:
    """One configuration as a user names it; `settings` are the spec's keys beside its axes."""

    model: str | dict[str, object]
    strategy: str
    pe: int
    batch: int
    system: str = "abci"
    dataset: str | None = None
    parameters: Mapping[str, object] | None = None
    settings: Mapping[str, object] | None = None

    def grid(self, base: Path = Path()) -> Grid:
        """The design space of this configuration alone. InputError: several values, or none."""
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
        """Refuse several values, as an axis of a spec has, and keys that are no settings."""
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
                    f"{name!r} is no setting", where="settings", advice="use its own argument"
                )


def expect_mapping(given: Mapping[str, object] | None, where: str) -> Mapping[str, object]:
    """The names and values, none for None; InputError: no mapping."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise InputError(f"expected names and values, got {shorten(given)}", where=where)
    return given
