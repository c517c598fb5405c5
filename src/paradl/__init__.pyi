"""What `import paradl` gives: read by type checkers, and by `lazy_loader` at run time."""

# No name is here that is not imported below: adding one is a line, and one in docs/python.md.
__all__: list[str]

from .grids.reading.errors import InputError as InputError
from .sweep.calibration.calibrate import calibrate as calibrate
from .sweep.cells.memory_cube import compute_space as compute_space
from .sweep.engine.run import open_dataset as open_dataset
from .sweep.engine.run import run as run
from .sweep.errors import RunError as RunError
from .sweep.exports.export import export as export
from .sweep.importing.networks.torch_module import trace_torch as trace_torch
from .sweep.measured.compare import compare as compare
from .sweep.questions.best.question import best as best
from .sweep.questions.bottleneck import bottleneck as bottleneck
from .sweep.questions.catalogue import datasets as datasets
from .sweep.questions.catalogue import models as models
from .sweep.questions.catalogue import parameters as parameters
from .sweep.questions.catalogue import strategies as strategies
from .sweep.questions.catalogue import systems as systems
from .sweep.questions.crossovers import crossovers as crossovers
from .sweep.questions.diff import diff as diff
from .sweep.questions.explain import explain as explain
from .sweep.questions.grad import grad as grad
from .sweep.questions.hybrid.question import hybrid as hybrid
from .sweep.questions.limits import limits as limits
from .sweep.questions.needs import needs as needs
from .sweep.questions.pareto import pareto as pareto
from .sweep.questions.place.question import place as place
from .sweep.questions.predict import predict as predict
from .sweep.questions.provision import provision as provision
from .sweep.questions.regret import regret as regret
from .sweep.questions.sensitivity import sensitivity as sensitivity
from .sweep.report.report import write_report as write_report
from .sweep.samples.read import open_samples as open_samples
from .sweep.samples.sample import sample as sample
from .sweep.samples.stream import batches as batches
from .sweep.surrogates.evaluate import evaluate_surrogate as evaluate_surrogate
from .sweep.surrogates.surrogate import load_surrogate as load_surrogate
from .sweep.surrogates.surrogate import predict_surrogate as predict_surrogate
from .sweep.surrogates.train import train_surrogate as train_surrogate
