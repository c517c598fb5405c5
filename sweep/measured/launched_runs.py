"""What a launch script states of measured runs, in the words of their mapping file."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from paradl.grids.reading.errors import InputError
from paradl.sweep.launching.reading import SETTINGS, read_launch


@dataclass(frozen=True)
class LaunchedRuns:
    """Columns that files of runs need not state, their machine and settings.

    models: definitions of networks by the names in these columns.
    """

    system: str | None
    values: Mapping[str, str | int] = field(default_factory=dict)
    settings: Mapping[str, object] = field(default_factory=dict)
    models: Mapping[str, dict[str, object]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @classmethod
    def from_script(cls, path: str, system: str | None) -> "LaunchedRuns":
        """Read a launch script. InputError: it, or the machine, does not say enough."""
        if system is None:
            raise InputError("no machine is named", where="system", advice="such as dgx-h100")
        script = read_launch(path)
        options: dict[str, Any] = script.find_options({"system": system})
        replicas, model = script.count_replicas(options), options["model"]
        name = model["name"] if isinstance(model, dict) else model
        samples, rest = divmod(int(options["global_batch"]), replicas)
        if rest:
            what = f"a global batch of {options['global_batch']} over {replicas} replicas"
            raise InputError(what, where=path, advice="write 'values' into mapping.yaml")
        label, precision = options["system"], options.get("precision")
        label += f",precision={precision}" if precision else ""
        length = int(options.get("sequence", 0))
        values = {
            **{"model": name, "strategy": options["strategy"], "p": options["pe"]},
            **({"dataset": f"pile:length={length}"} if length else {}),
            **{"samples_per_replica": samples, "replicas": replicas},
            "tokens_per_pe": samples * replicas * length // int(options["pe"]),
        }
        return cls(
            label,
            values,
            {key: options[key] for key in SETTINGS if key in options},
            {name: model} if isinstance(model, dict) else {},
            tuple(script.list_notes(options)),
        )
