"""paradl: how a network trains at scale under every way of parallelising it, and what stops it.

    import sweep
    ds = sweep.run("spec.yaml", "cube.zarr")
    sweep.limits(ds)
    ds.paradl.efficiency

What needs JAX, xarray or Dask is imported on first use, so that the command line answers at once.
"""

import re
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sweep.attach import attach

if TYPE_CHECKING:
    from grids.reading.errors import InputError as InputError
    from sweep.calibration.calibrate import calibrate as calibrate
    from sweep.cells.memory_cube import compute_space as compute_space
    from sweep.engine.run import open_dataset as open_dataset
    from sweep.engine.run import run as run
    from sweep.errors import RunError as RunError
    from sweep.exports.export import export as export
    from sweep.importing.networks.jax_function import trace_model as trace_model
    from sweep.importing.networks.torch_module import trace_torch as trace_torch
    from sweep.measured.compare import compare as compare
    from sweep.questions.best import best as best
    from sweep.questions.bottleneck import bottleneck as bottleneck
    from sweep.questions.crossovers import crossovers as crossovers
    from sweep.questions.diff import diff as diff
    from sweep.questions.explain import explain as explain
    from sweep.questions.fit import fit as fit
    from sweep.questions.grad import grad as grad
    from sweep.questions.hybrid.question import hybrid as hybrid
    from sweep.questions.limits import limits as limits
    from sweep.questions.needs import needs as needs
    from sweep.questions.pareto import pareto as pareto
    from sweep.questions.place.question import place as place
    from sweep.questions.predict import predict as predict
    from sweep.questions.provision import provision as provision
    from sweep.questions.regret import regret as regret
    from sweep.questions.sensitivity import sensitivity as sensitivity
    from sweep.report.report import write_report as write_report
    from sweep.samples.read import open_samples as open_samples
    from sweep.samples.sample import sample as sample
    from sweep.samples.stream import batches as batches
    from sweep.surrogates.evaluate import evaluate_surrogate as evaluate_surrogate
    from sweep.surrogates.predict import predict_surrogate as predict_surrogate
    from sweep.surrogates.surrogate import load_surrogate as load_surrogate
    from sweep.surrogates.train import train_surrogate as train_surrogate

# The imports above are for type checkers and never run; this table is what runs. To import JAX,
# xarray and Zarr takes 949 ms, `paradl --help` 66 ms in all (2026-11-20).

# Questions are found by their files: `sweep.questions` has one named after each verb, or a folder
# with `question.py`. Those that take a `Source` are methods of `ds.paradl`, too.
_HERE = Path(__file__).parent
_TEXTS = {path.stem: path.read_text() for path in _HERE.glob("questions/*.py")}
_TEXTS |= {path.parent.name: path.read_text() for path in _HERE.glob("questions/*/question.py")}
_QUESTIONS = [
    name for name, text in _TEXTS.items() if re.search(rf"^(def )?{name}( = |\()", text, re.M)
]
_FOLDERS = {name for name in _QUESTIONS if (_HERE / "questions" / name).is_dir()}
OF_CUBES = [name for name in _QUESTIONS if "from sweep.cells.source import" in _TEXTS[name]]
_MEMBERS = {
    **{
        f"sweep.questions.{name}{'.question' if name in _FOLDERS else ''}": (name,)
        for name in _QUESTIONS
    },
    "sweep.engine.run": ("open_dataset", "run"),
    "sweep.cells.memory_cube": ("compute_space",),
    "sweep.calibration.calibrate": ("calibrate",),
    "sweep.importing.networks.jax_function": ("trace_model",),
    "sweep.importing.networks.torch_module": ("trace_torch",),
    "sweep.measured.compare": ("compare",),
    "sweep.exports.export": ("export",),
    "sweep.report.report": ("write_report",),
    "sweep.samples.read": ("open_samples",),
    "sweep.samples.sample": ("sample",),
    "sweep.samples.stream": ("batches",),
    "sweep.surrogates.evaluate": ("evaluate_surrogate",),
    "sweep.surrogates.predict": ("predict_surrogate",),
    "sweep.surrogates.surrogate": ("load_surrogate",),
    "sweep.surrogates.train": ("train_surrogate",),
    "grids.reading.errors": ("InputError",),
    "sweep.errors": ("RunError",),
}
_HOMES = {name: module for module, names in _MEMBERS.items() for name in names}

__all__ = sorted(_HOMES)


attach()  # `ds.paradl` of every Dataset


# PEP 562: called for what the module has no name for as yet.
def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        # `hasattr`, copy and pickle ask for names, and take this error, no other, for a no.
        raise AttributeError(f"module 'sweep' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    dunders = (name for name in globals() if name.startswith("__") and name.endswith("__"))
    return sorted((*dunders, *__all__))  # `help` looks up what is listed, and so shows it
