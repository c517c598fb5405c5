"""Seconds of an iteration of layouts on a machine, with their interval."""

import numpy as np

from grids.entries.systems import System
from grids.entries.transformer_rates import SPREAD, read_rates
from kernels.layouts.time import TERMS, count_model_flops, time_iteration
from kernels.layouts.transformer import Column, Layouts, Training, Transformer
from kernels.machine.network import Network
from kernels.names.stored import PERCENTILES
from sweep.answers.types.fitting import TimeParts


class LayoutTimes:
    """What layouts take of a machine. precision: a recipe of bytes a parameter, with a peak.

    InputError: no such peak.
    """

    def __init__(
        self, net: Transformer, training: Training, machine: System, precision: str
    ) -> None:
        self._net, self._training = net, training
        self._rates = read_rates(machine, precision)
        self._network = read_network(machine)

    def time(self, layouts: Layouts) -> Column:
        """Seconds of an iteration by TERMS [terms, layouts]."""
        terms = time_iteration(self._net, layouts, self._training, self._rates, self._network)
        return np.stack([terms[name] for name in TERMS])

    def describe(self, pes: int, terms: Column) -> TimeParts:
        """A layout's time by TERMS [terms] on so many PEs, and what follows from it."""
        seconds = float(terms.sum())
        low, high = (float(np.exp(PERCENTILES[n] * SPREAD)) for n in (10, 90))
        return {
            "iteration_time": seconds,
            "iteration_time_p10": seconds * low,
            "iteration_time_p90": seconds * high,
            "tokens_per_second": self._training.batch * self._training.length / seconds,
            "mfu": count_model_flops(self._net, self._training)
            / (seconds * pes * self._rates.peak),
            "terms": dict(zip(TERMS, terms.tolist(), strict=True)),
        }


def read_network(machine: System) -> Network:
    """The levels of a machine, and the links of its nodes."""
    return Network(
        span=np.array([level.pes for level in machine.levels], float),
        latency=np.array([level.latency for level in machine.levels]),
        bandwidth=np.array([level.bandwidth for level in machine.levels]),
        pes_per_node=float(machine.pes_per_node),
        links_per_node=float(machine.links_per_node),
        staging_latency=0.0,
        staging_bandwidth=np.inf,
        phi_halo=1.0,
        phi_gather=1.0,
        oversubscription=np.array([level.oversubscription for level in machine.levels]),
    )
