"""Commands that predict published runs, each with a file of its network and one of its system.

Gradients in 16 bits have none.
"""

import hashlib
import re
import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from benchmarks.forecasts import Forecast
from benchmarks.layout_runs import (
    STACKS,
    Run,
    look_up_usual,
    set_parameters,
    write_network,
)
from paradl.grids.entries.layout_words import write_layout
from paradl.grids.entries.software import (
    SOFTWARE,
    LayoutFacts,
    SoftwareName,
    Switches,
    write_settings,
)

# Precisions that `predict` takes, by recipe: fp16 is amp on a device that is not said to have bf16.
PRECISIONS = {name: name for name in ("bf16", "fp8", "mxfp8", "nvfp4")} | {"fp16": "amp"}
# The nearest names first.
TRANSFORMERS: tuple[SoftwareName, ...] = ("megatron", "megatron-2021", "fsdp", "deepspeed", "jax")
IMAGES = "imagenet"


def write_command(row: Forecast) -> str:
    """The command that prints the forecast's seconds, from the folder of `write_files`; or ""."""
    run, precision = row.run, PRECISIONS.get(row.run.precision)
    if precision is None:
        return ""
    facts = STACKS[run.stack]
    software, switched = find_software(facts)
    # Runs have the parameters of the system, whatever their software.
    usual = look_up_usual(run)
    changed = {name: usual[name] for name in SOFTWARE[software].parameters if name in usual}
    fits = {name: np.array([value]) for name, value in row.values.items() if row.left_out}
    fitted = set_parameters(run, fits) if fits else {}
    parameters = changed | {name: float(value[0]) for name, value in fitted.items()}
    settings = {"software": software, **switched}
    (columns,) = run.layout.to_names()
    words = {
        "--model": f"networks/{name_network(run)}.yaml",
        "--system": f"systems/{name_system(run)}.yaml:{write_settings(settings)}",
        "--precision": precision,
        "--strategy": write_layout(columns),
        "--pe": str(int(run.layout.pes[0])),
        "--global-batch": str(run.training.batch),
        **(
            {"--dataset": IMAGES} if reads_images(run) else {"--sequence": str(run.training.length)}
        ),
        "--attention": "fused" if run.training.fused_attention else "unfused",
        "--loss": facts.loss,
    }
    options = [word for pair in words.items() for word in pair]
    options += [
        word for name, value in parameters.items() for word in ("--set", f"{name}={value:.7g}")
    ]
    return shlex.join(["paradl", "predict", *options])


def find_software(facts: LayoutFacts) -> tuple[SoftwareName, dict[str, bool | str]]:
    """The software that differs least from some, and what is switched."""
    found = {key: getattr(facts, key) for key in Switches.model_fields}
    switched = {
        name: {key: to for key, to in found.items() if to != getattr(SOFTWARE[name].layouts, key)}
        for name in TRANSFORMERS
    }
    return min(switched.items(), key=lambda software: len(software[1]))


def reads_images(run: Run) -> bool:
    """Whether the network's samples are images."""
    return bool(write_network(run.network)["rank"] == 2)


def name_network(run: Run) -> str:
    """The name of the file of a run's network, without its ending."""
    slug = re.sub(r"[^a-z0-9.]+", "-", run.model.lower())
    return f"{slug}-{hashlib.sha256(run.network.encode()).hexdigest()[:6]}"


def name_system(run: Run) -> str:
    """The name of the file of a run's system, without its ending."""
    return f"{run.system.name}-fp16" if run.precision == "fp16" else run.system.name


def describe_system(run: Run) -> dict[str, Any]:
    """The system of a run as a file says it."""
    entry: dict[str, Any] = run.system.definition()
    pe, precision = entry["pe"], entry["precision"]
    if run.precision == "fp16":
        precision = "amp"
        pe["tensor_peaks"] = {k: peak for k, peak in pe["tensor_peaks"].items() if k != "bf16"}
    return entry | {"name": name_system(run), "pe": pe, "precision": precision}


def write_files(runs: Iterable[Run], folder: Path) -> None:
    """Write the networks and systems of runs that have a command."""
    for kind in ("networks", "systems"):
        (folder / kind).mkdir(parents=True, exist_ok=True)
    for run in runs:
        network = write_network(run.network) | {"name": name_network(run), "title": run.model}
        network |= {"source": run.source, "customary": IMAGES if reads_images(run) else "pile"}
        for kind, name, entry in (
            ("networks", name_network(run), network),
            ("systems", name_system(run), describe_system(run)),
        ):
            text = yaml.safe_dump(entry, sort_keys=False, width=100)
            (folder / kind / f"{name}.yaml").write_text(text)
