"""Formulas: which of the kernels' choices a spec takes, by its oracle and its keys."""

from grids.spec import Spec
from kernels.options import Options


def choose_formulas(spec: Spec, *, bounded: bool) -> Options:
    """The kernels' options. bounded: whether hosts may feed samples too slowly."""
    machine = spec.oracle == "machine"
    return Options(
        oracle=spec.oracle,
        # Table III has rings.
        algorithm=spec.collectives if machine or spec.collectives != "auto" else "ring",
        allreduce=spec.allreduce,
        iterations=spec.iterations,
        optimizer=spec.optimizer,
        recompute=spec.recompute,
        waits_for_input=machine and bounded,
        conventions=spec.conventions,
    )
