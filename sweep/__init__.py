"""paradl: how a network trains at scale under every way of parallelising it, and what stops it.

    import sweep
    ds = sweep.run("spec.yaml", "cube.zarr")
    sweep.limits(ds)
    ds.paradl.efficiency

What needs JAX, xarray or Dask is imported on first use, so that the command line answers at once.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from sweep.attach import attach

if TYPE_CHECKING:
    from grids.reading.errors import InputError
    from sweep.calibration.calibrate import calibrate
    from sweep.cells.memory_cube import compute_space
    from sweep.engine.run import open_dataset, run
    from sweep.errors import RunError
    from sweep.exports.export import export
    from sweep.measured.compare import compare
    from sweep.questions.best import best
    from sweep.questions.bottleneck import bottleneck
    from sweep.questions.crossovers import crossovers
    from sweep.questions.diff import diff
    from sweep.questions.explain import explain
    from sweep.questions.grad import grad
    from sweep.questions.hybrid.question import hybrid
    from sweep.questions.limits import limits
    from sweep.questions.needs import needs
    from sweep.questions.pareto import pareto
    from sweep.questions.place import place
    from sweep.questions.predict import predict
    from sweep.questions.provision import provision
    from sweep.questions.regret import regret
    from sweep.questions.sensitivity import sensitivity
    from sweep.samples.read import open_samples
    from sweep.samples.sample import sample
    from sweep.samples.stream import batches
    from sweep.surrogates.evaluate import evaluate_surrogate
    from sweep.surrogates.predict import predict_surrogate
    from sweep.surrogates.surrogate import load_surrogate
    from sweep.surrogates.train import train_surrogate

# The imports above are for type checkers and never run; this table is what runs. To import JAX,
# xarray and Zarr takes 949 ms, `paradl --help` 66 ms in all (`python -m benchmarks startup`,
# 2026-11-20).
_HOMES = {
    "batches": "sweep.samples.stream",
    "InputError": "grids.reading.errors",
    "RunError": "sweep.errors",
    "best": "sweep.questions.best",
    "bottleneck": "sweep.questions.bottleneck",
    "calibrate": "sweep.calibration.calibrate",
    "compare": "sweep.measured.compare",
    "diff": "sweep.questions.diff",
    "compute_space": "sweep.cells.memory_cube",
    "crossovers": "sweep.questions.crossovers",
    "explain": "sweep.questions.explain",
    "export": "sweep.exports.export",
    "grad": "sweep.questions.grad",
    "hybrid": "sweep.questions.hybrid.question",
    "limits": "sweep.questions.limits",
    "needs": "sweep.questions.needs",
    "open_dataset": "sweep.engine.run",
    "place": "sweep.questions.place",
    "pareto": "sweep.questions.pareto",
    "open_samples": "sweep.samples.read",
    "predict": "sweep.questions.predict",
    "regret": "sweep.questions.regret",
    "provision": "sweep.questions.provision",
    "run": "sweep.engine.run",
    "sensitivity": "sweep.questions.sensitivity",
    "sample": "sweep.samples.sample",
    "evaluate_surrogate": "sweep.surrogates.evaluate",
    "load_surrogate": "sweep.surrogates.surrogate",
    "predict_surrogate": "sweep.surrogates.predict",
    "train_surrogate": "sweep.surrogates.train",
}

__all__ = [
    "InputError",
    "RunError",
    "batches",
    "best",
    "bottleneck",
    "calibrate",
    "compare",
    "compute_space",
    "crossovers",
    "diff",
    "evaluate_surrogate",
    "explain",
    "export",
    "grad",
    "hybrid",
    "limits",
    "load_surrogate",
    "needs",
    "open_dataset",
    "open_samples",
    "pareto",
    "place",
    "predict",
    "predict_surrogate",
    "provision",
    "regret",
    "run",
    "sample",
    "sensitivity",
    "train_surrogate",
]


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
